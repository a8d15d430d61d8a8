"""The way out of a tile: narrowed, four pixels of 32 channels a vector, zero where the output has no element."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from tvm import tirx

from hexconv.lower.hvx.inner import VECTOR_BLOCKS, InnerConv
from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.requantize import deal_pixels, narrow
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK

BLOCK_PIXELS = ROW_BLOCK * COLUMN_BLOCK


@dataclass(frozen=True)
class Target:
    """One row of what a step makes, for one tile of channels.

    Attributes:
        conv: that makes it.
        buffer: the cache, flat.
        pixel: element where the channels of a stored column begin: (block of the tile, column); of blocks that make up
            a vector, where those of the first begin.
        blocks: of the tile.
        is_ragged: whether its last block is the conv's last one, with fewer than 32 channels.
    """

    conv: InnerConv
    buffer: tirx.Buffer
    pixel: Callable[[Number, Number], Number]
    blocks: int
    is_ragged: bool

    @property
    def vector_pixels(self) -> int:
        """Pixels of a vector."""
        return VECTOR_BLOCKS // self.conv.narrowed_blocks // self.conv.result_bytes

    def channels(self, part: int) -> int:
        """Logical channels of a block."""
        return self.conv.last_channels if self.is_ragged and part == self.blocks - 1 else CHANNEL_BLOCK


def stores(target: Target, column: Number, sums: Sequence[Sequence[tirx.Expr]]) -> list[Callable[[Block], None]]:
    """The stores of some pixels from a stored column on, 128 bytes each; what they need of the sums comes with them."""
    together, pixels = target.conv.narrowed_blocks, target.vector_pixels
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
    (first, end), pixels = target.conv.target.valid_columns, target.vector_pixels
    if target.conv.is_last:
        _fill(block, target, range(ceil(end / pixels) * pixels, target.conv.target_columns, pixels))
        return
    columns = range(0, target.conv.target_columns, pixels)
    _fill(block, target, [at for at in columns if at < first or at + pixels > end])


def fill_row(block: Block, target: Target) -> None:
    """Fill a whole row that has no logical element."""
    pixels, together = target.vector_pixels, target.conv.narrowed_blocks

    def part(at: Block, number: tirx.Expr) -> None:
        def some(inner: Block, index: tirx.Expr) -> None:
            _store_filled(inner, target, target.pixel(number * together, index * pixels))

        at.loop("column", target.conv.target_columns // pixels, some)

    block.loop("block", target.blocks // together, part)


def _fill(block: Block, target: Target, columns: Sequence[int]) -> None:
    for part in range(0, target.blocks if columns else 0, target.conv.narrowed_blocks):
        for column in columns:
            _store_filled(block, target, target.pixel(part, int32(column)))


def _store_filled(block: Block, target: Target, element: Number) -> None:
    """A vector of what the target holds where it has no element."""
    fringe = vector.filled(target.conv.fringe & 0xFF)
    if target.conv.narrowing is None:
        block.store(target.buffer, tirx.Ramp(element, 1, vector.WORDS), fringe)
    else:
        block.store(target.buffer, vector.at(element), _typed(target, fringe))


def _typed(target: Target, value: tirx.Expr) -> tirx.Expr:
    """A vector as the bytes that the target holds."""
    return tirx.reinterpret(f"{target.buffer.dtype}x{vector.BYTES}", value)


def _store_sums(block: Block, target: Target, part: int, column: Number, total: tirx.Expr) -> None:
    """32 channels of a pixel, as int32."""
    channels = target.channels(part)
    if channels < CHANNEL_BLOCK:
        exists = vector.repeated([255 if byte // 4 < channels else 0 for byte in range(vector.BYTES)])
        total = tirx.bitwise_and(total, exists)
    block.store(target.buffer, tirx.Ramp(target.pixel(part, column), 1, CHANNEL_BLOCK), total)


def _store_bytes(block: Block, target: Target, part: int, column: Number, sums: Sequence[Sequence[tirx.Expr]]) -> None:
    """Some blocks of 32 channels of some pixels, a vector in all; what is no element holds the fringe."""
    conv, together = target.conv, target.conv.narrowed_blocks
    assert conv.narrowing
    there = [total for pixel in sums for total in pixel]
    four = [*there, *[there[-1]] * (VECTOR_BLOCKS - len(there))]
    ordered = deal_pixels(block, narrow(block, four, conv.narrowing))
    ordered = vector.flipped(ordered) if conv.is_signed else ordered
    channels = [target.channels(part + index % together) for index in range(len(there))]
    exists = [
        byte // CHANNEL_BLOCK < len(there) and byte % CHANNEL_BLOCK < channels[byte // CHANNEL_BLOCK]
        for byte in range(vector.BYTES)
    ]
    if not all(exists):
        kept = tirx.bitwise_and(ordered, vector.repeated([255 if element else 0 for element in exists]))
        fringe = vector.repeated([0 if element else conv.fringe & 0xFF for element in exists])
        ordered = tirx.bitwise_or(kept, fringe) if conv.fringe else kept
    block.store(target.buffer, vector.at(target.pixel(part, column)), _typed(target, ordered))


def block_of_output(row: Number, column: Number, blocks: int, block: Number, columns: int) -> Number:
    """Element of an output cache, NHWC8h8w32c, where the channels of a pixel begin."""
    high, low = tirx.shift_right(row, int32(3)), tirx.bitwise_and(row, int32(7))
    column = int32(column) if isinstance(column, int) else column
    right, inside = tirx.shift_right(column, int32(3)), tirx.bitwise_and(column, int32(7))
    tile = (high * (columns // COLUMN_BLOCK) + right) * blocks + block
    return (tile * BLOCK_PIXELS + low * COLUMN_BLOCK + inside) * CHANNEL_BLOCK
