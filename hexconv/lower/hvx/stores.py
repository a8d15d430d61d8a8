"""Store the results of a tile: narrowed, in whole vectors, at their place in the target, with the fringe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import tvm
from tvm import tirx

from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BLOCKS, filled_columns
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.narrow_sums import Lanes, deal_pixels, narrow, split, two_pixels
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.tir.statements import Block, Number, int32

BLOCK_PIXELS = ROW_BLOCK * COLUMN_BLOCK


@dataclass(frozen=True)
class Target:
    """One row of what a step makes, for one tile of channels.

    Attributes:
        conv: the conv that makes the row.
        buffer: the cache, flat.
        pixel: from (block of the tile, stored column) to the element where these channels begin; where several blocks
            make up a vector, the element where those of the first block begin.
        blocks: the channel blocks of the tile.
        is_ragged: whether its last block is the conv's last one, with fewer than 32 channels.
        lanes: the per-channel values of a block for narrowing; None where there are none.
        table: the table that results are looked up in; None where there is none.
    """

    conv: RowConv
    buffer: tirx.Buffer
    pixel: Callable[[Number, Number], Number]
    blocks: int
    is_ragged: bool
    lanes: Callable[[Block, int], Lanes] | None = None
    table: tirx.Buffer | None = None

    @property
    def vector_pixels(self) -> int:
        """How many pixels a vector holds."""
        if self.conv.units.is_narrow:
            return self.conv.units.vector_pixels
        return VECTOR_BLOCKS // self.conv.narrowed_blocks // self.conv.result_bytes

    def channels(self, part: int) -> int:
        """Return how many logical channels a block has."""
        return self.conv.last_channels if self.is_ragged and part == self.blocks - 1 else CHANNEL_BLOCK

    def units(self, part: int) -> range:
        """Return the numbers of the narrow blocks of channels in a block of the tile."""
        return range(ceil(self.channels(part) / self.conv.units.together))

    def unit(self, part: int, number: int, column: Number) -> Number:
        """Return the element where a narrow block of channels of a pixel begins, in a target of such blocks."""
        return self.pixel(int32(part), column) + number * self.conv.units.elements


def store_vector(block: Block, target: Target, element: Number, value: tirx.Expr) -> None:
    """Store a vector as elements of the target's dtype."""
    lanes = instructions.BYTES // tvm.DataType(target.buffer.dtype).itemsize
    block.store(target.buffer, tirx.Ramp(element, 1, lanes), tirx.reinterpret(f"{target.buffer.dtype}x{lanes}", value))


def as_codes(block: Block, conv: RowConv, held: tirx.Buffer | None, results: tirx.Expr) -> tirx.Expr:
    """Turn uint8 results into the codes that a conv stores: look them up, or flip their first bit for int8."""
    if held is not None:
        loads = [instructions.load(held, half * instructions.BYTES) for half in range(2)]
        table = [block.bind("table", load, instructions.VECTOR) for load in loads]
        codes = block.bind("codes", instructions.looked_up(results, table), instructions.VECTOR)
        return instructions.flipped(codes) if conv.is_signed and conv.makes_unsigned else codes
    return results if conv.makes_unsigned else instructions.flipped(results)


def kept(conv: RowConv, ordered: tirx.Expr, channels: Sequence[int], together: int = CHANNEL_BLOCK) -> tirx.Expr:
    """Keep the channels that exist, as many of each block of a vector as `channels` says, and fill in the fringe.

    A block has `together` channels.
    """
    size = conv.result_bytes
    exists = [
        byte // (together * size) < len(channels) and byte // size % together < channels[byte // (together * size)]
        for byte in range(instructions.BYTES)
    ]
    if all(exists):
        return ordered
    kept = tirx.bitwise_and(ordered, instructions.repeated([255 if element else 0 for element in exists]))
    fringe = instructions.repeated([0 if element else conv.fringe & 0xFF for element in exists])
    return tirx.bitwise_or(kept, fringe) if conv.fringe else kept


def block_of_output(row: Number, column: Number, blocks: int, block: Number, columns: int) -> Number:
    """Return the element of an output cache (NHWC8h8w32c) where the channels of a pixel begin."""
    high, low = tirx.shift_right(row, int32(3)), tirx.bitwise_and(row, int32(7))
    column = int32(column) if isinstance(column, int) else column
    right, inside = tirx.shift_right(column, int32(3)), tirx.bitwise_and(column, int32(7))
    tile = (high * (columns // COLUMN_BLOCK) + right) * blocks + block
    return (tile * BLOCK_PIXELS + low * COLUMN_BLOCK + inside) * CHANNEL_BLOCK


def stores(
    target: Target, column: Number, sums: Sequence[Sequence[tirx.Expr]], apart: int = 0
) -> list[Callable[[Block], None]]:
    """Return the stores of some pixels from a stored column on, 128 bytes each; a store also narrows its sums.

    Args:
        target: the row that is stored to.
        column: the stored column of the first pixel.
        sums: for each pixel, the sums of its blocks.
        apart: the columns from these pixels to those whose channels are the upper half of each vector; 0 if all
            channels of a vector belong to these pixels.
    """
    if apart:
        return [lambda at: _store_two(at, target, column, apart, [total for row in sums for total in row])]
    together, pixels = target.conv.narrowed_blocks, target.vector_pixels
    if target.conv.units.is_narrow:
        return [
            partial(
                _store_narrow,
                target=target,
                part=part,
                column=column + first,
                sums=[row[part] for row in sums[first : first + pixels]],
            )
            for part in range(target.blocks)
            for first in range(0, len(sums), pixels)
        ]
    if target.conv.narrowing is None:
        return [
            lambda at, part=part, pixel=pixel: _store_sums(at, target, part, column + pixel, sums[pixel][part])
            for part in range(target.blocks)
            for pixel in range(len(sums))
        ]
    return [
        lambda at, part=part, first=first: _store_bytes(
            at, target, part, column + first, [row[part : part + together] for row in sums[first : first + pixels]]
        )
        for part in range(0, target.blocks, together)
        for first in range(0, len(sums), pixels)
    ]


def fill_columns(block: Block, target: Target) -> None:
    """Fill the columns of a row that no tile stores to, or that a later tile stores to in part only."""
    _fill(block, target, columns_filled(target))


def columns_filled(target: Target) -> Sequence[int]:
    """Return the columns where vectors begin that no tile stores to, or that a later tile stores to in part only."""
    (first, end), pixels = target.conv.target.valid_columns, target.vector_pixels
    if target.conv.units.is_narrow:
        return filled_columns(target.conv.target, pixels)
    if target.conv.makes_blocks:
        return range(ceil(end / pixels) * pixels, target.conv.target_columns, pixels)
    return [at for at in range(0, target.conv.target_columns, pixels) if at < first or at + pixels > end]


def fill_row(block: Block, target: Target) -> None:
    """Fill a whole row that has no logical element."""
    pixels, together = target.vector_pixels, target.conv.narrowed_blocks

    def part(at: Block, number: tirx.Expr) -> None:
        def some(inner: Block, index: tirx.Expr) -> None:
            _store_filled(inner, target, target.pixel(number * together, index * pixels))

        at.loop("column", target.conv.target_columns // pixels, some)

    if target.conv.units.is_narrow:
        units = sum(len(target.units(number)) for number in range(target.blocks))
        vectors = units * target.conv.target_columns // pixels
        block.loop("vector", vectors, lambda at, i: _store_filled(at, target, target.pixel(int32(0), i * pixels)))
        return
    block.loop("block", target.blocks // together, part)


def _fill(block: Block, target: Target, columns: Sequence[int]) -> None:
    for part in range(0, target.blocks if columns else 0, target.conv.narrowed_blocks):
        for column in columns:
            if not target.conv.units.is_narrow:
                _store_filled(block, target, target.pixel(part, int32(column)))
                continue
            for number in target.units(part):
                _store_filled(block, target, target.unit(part, number, int32(column)))


def _store_filled(block: Block, target: Target, element: Number) -> None:
    """Store a vector of the fringe: what the target holds where it has no element."""
    conv, fringe = target.conv, instructions.filled(target.conv.fringe & 0xFF)
    if conv.narrowing is None:
        block.store(target.buffer, tirx.Ramp(element, 1, instructions.WORDS), fringe)
        return
    for start in (0, conv.target_low_bytes) if conv.target_low_bytes else (0,):
        store_vector(block, target, element + start, fringe)


def _store_sums(block: Block, target: Target, part: int, column: Number, total: tirx.Expr) -> None:
    """Store 32 channels of a pixel as int32."""
    channels = target.channels(part)
    if channels < CHANNEL_BLOCK:
        exists = instructions.repeated([255 if byte // 4 < channels else 0 for byte in range(instructions.BYTES)])
        total = tirx.bitwise_and(total, exists)
    block.store(target.buffer, tirx.Ramp(target.pixel(part, column), 1, CHANNEL_BLOCK), total)


def _store_bytes(block: Block, target: Target, part: int, column: Number, sums: Sequence[Sequence[tirx.Expr]]) -> None:
    """Store some blocks of 32 channels of some pixels, a vector in all; the fringe goes where there is no element."""
    conv, together = target.conv, target.conv.narrowed_blocks
    assert conv.narrowing
    there = [total for pixel in sums for total in pixel]
    channels = [target.channels(part + index % together) for index in range(len(there))]
    place = target.pixel(part, column)
    if conv.result_bytes == 2:
        lanes = _lanes(block, target, part, len(there), 2)
        pixels = two_pixels(block, _filled_up(there, 2), conv.narrowing, lanes)
        pixels = instructions.clamped_halfwords(pixels, *conv.codes)
        store_vector(block, target, place, kept(conv, pixels, channels))
    elif conv.target_low_bytes:
        lanes = _lanes(block, target, part, len(there))
        high, low = split(block, _filled_up(there, VECTOR_BLOCKS), conv.narrowing, lanes, conv.codes)
        for start, half in ((0, high), (conv.target_low_bytes, low)):
            store_vector(block, target, place + start, kept(conv, deal_pixels(block, half), channels))
    else:
        lanes = _lanes(block, target, part, len(there))
        narrowed = narrow(block, _filled_up(there, VECTOR_BLOCKS), conv.narrowing, lanes)
        ordered = deal_pixels(block, instructions.clamped_bytes(narrowed, *conv.codes))
        store_vector(block, target, place, kept(conv, as_codes(block, conv, target.table, ordered), channels))


def _store_narrow(block: Block, target: Target, part: int, column: Number, sums: Sequence[tirx.Expr]) -> None:
    """Store a block of 32 channels of the pixels of a vector, in narrow blocks; the fringe goes where no element is.

    The last block of channels may fit a narrow one. Then lanes without a channel take those of other pixels before sums
    are narrowed. Otherwise two vectors have the even and the odd pixels, and exchange the upper half of the channels.
    """
    conv, channels, unit = target.conv, target.channels(part), target.conv.units.together
    if channels <= unit:
        together = [sums[at : at + conv.units.folded] for at in range(0, len(sums), conv.units.folded)]
        codes = [
            _codes(block, target, part, [instructions.folded(block, some, conv.units.folded) for some in together])
        ]
    else:
        even, odd = (_codes(block, target, part, some or sums) for some in (sums[::2], sums[1::2]))
        pair = block.bind("both", instructions.exchange(odd, even, unit), "int32x64")
        codes = [instructions.lower(pair), instructions.upper(pair)]
    for number, value in enumerate(codes):
        there = [min(channels - number * unit, unit)] * len(sums)
        store_vector(block, target, target.unit(part, number, column), kept(conv, value, there, unit))


def _codes(block: Block, target: Target, part: int, sums: Sequence[tirx.Expr]) -> tirx.Expr:
    """Narrow up to four vectors of sums of a block of channels to codes, vector after vector; they come in turn."""
    assert target.conv.narrowing
    lanes = [target.lanes(block, part)] * VECTOR_BLOCKS if target.lanes else []
    in_turn = [sums[at % len(sums)] for at in range(VECTOR_BLOCKS)]
    narrowed = narrow(block, in_turn, target.conv.narrowing, lanes)
    ordered = deal_pixels(block, instructions.clamped_bytes(narrowed, *target.conv.codes))
    return as_codes(block, target.conv, target.table, ordered)


def _store_two(block: Block, target: Target, column: Number, apart: int, sums: Sequence[tirx.Expr]) -> None:
    """Store 16 channels of some pixels and of as many others, a vector each; the fringe fills what doesn't exist."""
    conv, channels = target.conv, target.channels(0)
    assert conv.narrowing
    given = target.lanes(block, 0) if target.lanes else None
    lanes = {name: instructions.twice(block, value) for name, value in given.items()} if given is not None else None
    narrowed = narrow(block, sums, conv.narrowing, [lanes] * len(sums) if lanes is not None else [])
    codes = as_codes(block, conv, target.table, deal_pixels(block, instructions.clamped_bytes(narrowed, *conv.codes)))
    fringe = instructions.filled(conv.fringe & 0xFF)
    pair = block.bind("both", instructions.exchange(fringe, codes, CHANNEL_BLOCK // 2), "int32x64")
    for place, half in ((column, instructions.lower(pair)), (column + apart, instructions.upper(pair))):
        is_full = channels == CHANNEL_BLOCK // 2
        value = half if is_full else kept(conv, half, [channels] * VECTOR_BLOCKS)
        store_vector(block, target, target.pixel(0, place), value)


def _filled_up(there: Sequence[tirx.Expr], count: int) -> list[tirx.Expr]:
    """Repeat the last sum until there are as many as an instruction takes."""
    return [*there, *[there[-1]] * (count - len(there))]


def _lanes(block: Block, target: Target, part: int, there: int, count: int = VECTOR_BLOCKS) -> list[Lanes]:
    """Return the per-channel values for `count` vectors of sums; the last existing vector stands for missing ones."""
    if target.lanes is None:
        return []
    together = target.conv.narrowed_blocks
    by_block = [target.lanes(block, part + index) for index in range(together)]
    found = [by_block[index % together] for index in range(there)]
    return [*found, *[found[-1]] * (count - there)]
