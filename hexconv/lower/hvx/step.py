"""One step of a conv: offsets where its channels come for the first time, then rows of tiles.

for tile of channels: for row: fill what is no element; for tile of pixels: sums, narrowing, stores
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from tvm import tirx

from hexconv.kernel.forms import overlaps_tiles, tile_pixels
from hexconv.lower.conv_steps import ConvStep, Rows
from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv, inner_convs
from hexconv.lower.hvx.tile import ONES, Operands, Tile, allocate, offset_of, reduce, results, start, start_with_words
from hexconv.lower.hvx.windows import Windows, correct_row, splats, windows_of
from hexconv.lower.hvx.write import Target, block_of_output, fill_columns, fill_row, stores
from hexconv.schedule.block import Block, Number, int32, vector_register
from hexconv.schedule.hvx import vector
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.narrowing import FixedPoint

__all__ = ["Scratch", "emit_step", "inner_convs", "scratch_of"]

WHOLE = tirx.Ramp(0, 1, vector.WORDS)


@dataclass(frozen=True)
class Scratch:
    """Memory of a conv beside its caches.

    Attributes:
        bias: the argument, if there is one.
        offsets: int32, what is added to the sums of every channel; None where that is one constant.
        windows: for the filter's zero point, where windows are summed before the tiles.
    """

    bias: tirx.Buffer | None
    offsets: tirx.Buffer | None
    windows: Windows | None

    @property
    def memory(self) -> list[tirx.Buffer]:
        """What is allocated."""
        windows = [self.windows.columns, self.windows.corrections] if self.windows else []
        return [*([self.offsets] if self.offsets is not None else []), *windows]


def scratch_of(conv: InnerConv, arguments: Mapping[str, tirx.Buffer], scope: str) -> Scratch:
    """What a conv needs beside its caches."""
    channels = conv.out_blocks * CHANNEL_BLOCK
    name = f"offset{conv.number}"
    offsets = tirx.decl_buffer((channels,), "int32", name, scope=scope, data_alignment=vector.BYTES)
    bias = arguments.get(f"bias{conv.number}")
    return Scratch(bias, offsets if conv.has_offsets else None, windows_of(conv, scope))


def emit_step(conv: InnerConv, scratch: Scratch, step: ConvStep) -> tirx.Stmt:
    """The statements of one step."""
    block = Block()
    full = step.most_blocks * conv.narrowed_blocks
    rest = conv.out_blocks % full or full
    is_ragged = conv.last_channels < CHANNEL_BLOCK
    if conv.out_blocks <= full or not (is_ragged or rest < full):
        _channels(block, conv, scratch, step, full if conv.out_blocks > full else conv.out_blocks, is_ragged)
        return block.statement()
    block.when(step.block + full < conv.out_blocks, lambda at: _channels(at, conv, scratch, step, full, False))
    block.when(step.block + full >= conv.out_blocks, lambda at: _channels(at, conv, scratch, step, rest, is_ragged))
    return block.statement()


def _channels(block: Block, conv: InnerConv, scratch: Scratch, step: ConvStep, blocks: int, is_ragged: bool) -> None:
    """All blocks of channels of a step, a tile's at a time."""
    if scratch.offsets is not None:
        block.when(step.is_first, lambda at: _stage_offsets(at, conv, scratch, step, blocks))
    full, rest = divmod(blocks, conv.tile_blocks)
    apart = 1 if is_ragged and not rest and full else 0  # the last tile differs from the others
    block.loop(
        "group",
        full - apart,
        lambda at, number: _tile_channels(at, conv, scratch, step, number * conv.tile_blocks, conv.tile_blocks, False),
    )
    if apart or rest:
        first = int32((full - apart) * conv.tile_blocks)
        _tile_channels(block, conv, scratch, step, first, rest or conv.tile_blocks, is_ragged)


@dataclass(frozen=True)
class _Channels:
    """Blocks of channels that one tile computes."""

    conv: InnerConv
    scratch: Scratch
    step: ConvStep
    first: tirx.Expr
    blocks: int
    is_ragged: bool


def _tile_channels(
    block: Block, conv: InnerConv, scratch: Scratch, step: ConvStep, first: tirx.Expr, blocks: int, is_ragged: bool
) -> None:
    """All rows of a step, for the channels of one tile."""
    channels = _Channels(conv, scratch, step, first, blocks, is_ragged)
    unit = ROW_BLOCK if conv.is_last else 1
    slab = step.slab * unit
    top, bottom = conv.target.valid_rows
    begin, end = block.bind("begin", step.begin * unit), block.bind("end", step.end * unit)
    first_row = block.bind("first_row", tirx.max(begin, top - slab)) if top else begin
    last_row = block.bind("last_row", tirx.min(end, bottom - slab))

    def padding(at: Block, row: tirx.Expr) -> None:
        fill_row(at, _target(at, channels, row))

    if top:
        above = block.bind("above", tirx.min(first_row, end))
        block.loop("padding", tirx.max(above - begin, 0), lambda at, index: padding(at, at.bind("y", index + begin)))
    block.loop(
        "y",
        tirx.max(last_row - first_row, 0),
        lambda at, index: _row(at, channels, at.bind("y", _counted(channels, index) + first_row)),
    )
    if conv.is_last or bottom < conv.target.rows:
        below = block.bind("below", tirx.max(last_row, begin))
        block.loop("padding", tirx.max(end - below, 0), lambda at, index: padding(at, at.bind("y", index + below)))


def _row(block: Block, channels: _Channels, y: tirx.Expr) -> None:
    """One row of tiles."""
    conv = channels.conv
    target = _target(block, channels, y)
    fill_columns(block, target)
    if channels.scratch.windows:
        correct_row(block, conv, channels.step.source.buffer, _source_row(channels, y), channels.scratch.windows)
    pixels = tile_pixels(channels.blocks)
    whole, rest = divmod(conv.columns, pixels)
    if whole:
        tile = allocate(block, conv, pixels, channels.blocks)
        tiles = _Tiles(channels, target, tile, y, whole)
        _overlapped(block, tiles) if _overlaps(tiles) else _one_by_one(block, tiles)
    if rest:
        tile = allocate(block, conv, rest, channels.blocks)
        _one_tile(block, _Tiles(channels, target, tile, y, 1), int32(whole * pixels))


@dataclass(frozen=True)
class _Tiles:
    """The tiles of a row that are alike."""

    channels: _Channels
    target: Target
    tile: Tile
    y: tirx.Expr
    count: int

    @property
    def operands(self) -> Operands:
        """What they multiply."""
        step = self.channels.step
        row = _source_row(self.channels, self.y)
        return Operands(step.source.buffer, row, step.filter, _filter_byte(self.channels))

    def column(self, x: tirx.Expr) -> tirx.Expr:
        """The stored column of a logical one."""
        return x + self.channels.conv.target.left

    def left(self, block: Block, x: tirx.Expr) -> tirx.Expr:
        """The byte of the window of a logical column, from the start of its row."""
        conv = self.channels.conv
        return block.bind("left", self.column(x) * (conv.stride[1] * conv.plane.pixel_bytes))


def _one_by_one(block: Block, tiles: _Tiles) -> None:
    """Tiles that end before the next one starts."""

    def one(at: Block, index: tirx.Expr) -> None:
        _one_tile(at, tiles, at.bind("x", _counted(tiles.channels, index)) * tiles.tile.pixels)

    block.loop("x", tiles.count, one)


def _one_tile(block: Block, tiles: _Tiles, x: tirx.Expr) -> None:
    """Start, reduce, store."""
    tile = tiles.tile
    start(block, tile, _initial(block, tiles.channels, x, tile.pixels))
    reduce(block, tile, tiles.operands, tiles.left(block, x))
    for store in stores(tiles.target, tiles.column(x), results(tile)):
        store(block)


def _overlaps(tiles: _Tiles) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed."""
    conv, blocks = tiles.channels.conv, tiles.channels.blocks
    is_one_run = conv.kernel[1] == 1 or conv.dilation[1] == 1
    return (
        is_one_run
        and not tiles.tile.windows
        and overlaps_tiles(conv.kernel[0], conv.plane.count, conv.filter_steps, blocks, tiles.count)
    )


def _overlapped(block: Block, tiles: _Tiles) -> None:
    """Software pipelining over tiles, by hand: LLVM does it within a tile only.

    before:  for tile: start; reduce; store
    after:   first words of tile 0
             for tile: reduce the rest; store, and first words of the next tile (of the last one again, at the end)

    With shifts, narrowing is short and goes where the multiplications leave room. A multiplier takes both pipes of HVX
    for two packets per sum: then what narrows and what starts alternate, narrowing one ahead.
    """
    tile, operands = tiles.tile, tiles.operands

    def starts(at: Block, x: tirx.Expr) -> list[Callable[[], None]]:
        conv, scratch = tiles.channels.conv, tiles.channels.scratch
        is_zero = scratch.offsets is None and scratch.windows is None and conv.offset == 0
        first = None if is_zero else _initial(at, tiles.channels, x, tile.pixels)
        return start_with_words(at, tile, operands, tiles.left(at, x), first)

    def one(at: Block, index: tirx.Expr) -> None:
        x = at.bind("x", index * tile.pixels)
        reduce(at, tile, operands, tiles.left(at, x), skip_pairs=1)
        sums = [[at.bind("sum", total, vector.VECTOR) for total in row] for row in results(tile)]
        following = at.bind("following", tirx.min(index + 1, tiles.count - 1) * tile.pixels)
        written = [lambda store=store: store(at) for store in stores(tiles.target, tiles.column(x), sums)]
        begun = starts(at, following)
        if isinstance(tiles.channels.conv.narrowing, FixedPoint):
            lead, *rest = written
            order = [lead, *(step for pair in zip_longest(rest, begun) for step in pair if step)]
        else:
            order = begun + written
        for step in order:
            step()

    for begin in starts(block, int32(0)):
        begin()
    block.loop("x", tiles.count, one)


def _counted(channels: _Channels, index: tirx.Expr) -> tirx.Expr:
    """The index of a loop around tiles.

    LLVM carries an address of its own for each pixel of a tile from trip to trip. Tiles of one block of channels have
    more of them than there are registers: there it isn't told that the index counts.
    """
    planes, taps = channels.conv.plane.count, channels.conv.kernel[0] * channels.conv.kernel[1]
    return vector.concealed(index) if channels.blocks == 1 and planes > 1 and taps > 1 else index


def _source_row(channels: _Channels, y: tirx.Expr) -> Callable[[Block, tirx.Expr], tirx.Expr]:
    """The byte of the source where a row of taps begins."""
    conv, source = channels.conv, channels.step.source

    def row(at: Block, tap: tirx.Expr) -> tirx.Expr:
        index = source.first + y * conv.stride[0] + tap * conv.dilation[0]
        return at.bind("row", _in_ring(source, index) * conv.plane.row_bytes + source.origin)

    return row


def _in_ring(rows: Rows, index: tirx.Expr) -> tirx.Expr:
    return tirx.floormod(index, int32(rows.ring)) if rows.ring else index


def _filter_byte(channels: _Channels) -> tirx.Expr:
    """Where the filter of a tile's first block begins."""
    conv = channels.conv
    group = tirx.floordiv(channels.first, int32(conv.side_by_side))
    return channels.step.filter_origin + group * conv.group_bytes


def _initial(block: Block, channels: _Channels, x: tirx.Expr, pixels: int) -> Callable[[int, int], tirx.Expr]:
    """What the sums of a pixel and a block of channels start from."""
    offsets, windows = channels.scratch.offsets, channels.scratch.windows
    by_block = [offset_of(channels.conv.offset)] * channels.blocks
    if offsets is not None:
        first = channels.step.block + channels.first
        places = [tirx.Ramp((first + part) * CHANNEL_BLOCK, 1, CHANNEL_BLOCK) for part in range(channels.blocks)]
        by_block = [block.bind("offset", tirx.BufferLoad(offsets, [place]), vector.VECTOR) for place in places]
    if windows is None:
        return lambda _pixel, part: by_block[part]
    by_pixel = splats(block, windows, x, pixels)
    return lambda pixel, part: by_pixel[pixel] + by_block[part]


def _target(block: Block, channels: _Channels, y: tirx.Expr) -> Target:
    """Where the results of a row go."""
    conv, place = channels.conv, channels.step.target
    if conv.is_last:
        columns, row = conv.target_columns, block.bind("target_row", y + place.first * ROW_BLOCK)

        def pixel(part: Number, column: Number) -> Number:
            at = channels.first + part
            return place.origin + block_of_output(row, column, channels.step.most_blocks, at, columns)
    else:
        block_bytes, together = conv.target_columns * CHANNEL_BLOCK, conv.narrowed_blocks
        index = _in_ring(place, place.first + y) * (conv.out_blocks * block_bytes)
        base = block.bind("target_row", place.origin + index + channels.first * block_bytes)

        def pixel(part: Number, column: Number) -> Number:
            return base + part * block_bytes + column * (CHANNEL_BLOCK * together)

    return Target(conv, place.buffer, pixel, channels.blocks, channels.is_ragged)


def _stage_offsets(block: Block, conv: InnerConv, scratch: Scratch, step: ConvStep, blocks: int) -> None:
    """What is added to the sums of the step's channels: their bias, and the zero point of the input.

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

    The tiles take care of sum(a). Channels that the source lacks hold its zero point, so that they count nothing,
    whatever the filter has there.
    """
    offsets = scratch.offsets
    assert offsets is not None
    words = conv.filter_steps * 4
    constant = offset_of(conv.offset + words * conv.in_zero * conv.filter_zero)

    def one(at: Block, part: tirx.Expr) -> None:
        first = at.bind("first", (step.block + part) * CHANNEL_BLOCK)
        value: tirx.Expr = constant
        if scratch.bias is not None:
            value = value + _bias(at, conv, scratch.bias, offsets, first)
        if conv.in_zero:
            value = value - _filter_sum(at, conv, step, part) * vector.splat(conv.in_zero)
        at.store(offsets, tirx.Ramp(first, 1, CHANNEL_BLOCK), value)

    block.loop("block", blocks, one)


def _bias(block: Block, conv: InnerConv, bias: tirx.Buffer, offsets: tirx.Buffer, first: tirx.Expr) -> tirx.Expr:
    """The bias of 32 channels; by way of the offsets where the argument ends inside of a block."""
    lanes = tirx.Ramp(first, 1, CHANNEL_BLOCK)
    if conv.last_channels == CHANNEL_BLOCK:
        return block.bind("bias", tirx.BufferLoad(bias, [lanes]), vector.VECTOR)

    def channel(at: Block, lane: tirx.Expr) -> None:
        place = tirx.min(first + lane, conv.out_channels - 1)
        at.store(offsets, first + lane, tirx.BufferLoad(bias, [place]))

    block.loop("channel", CHANNEL_BLOCK, channel)
    return block.bind("bias", tirx.BufferLoad(offsets, [lanes]), vector.VECTOR)


def _filter_sum(block: Block, conv: InnerConv, step: ConvStep, part: tirx.Expr) -> tirx.Expr:
    """The sum of each channel's filter."""
    register = vector_register(block, "filter_sum")
    block.store(register, WHOLE, vector.splat(0))
    side = int32(conv.side_by_side)
    first = tirx.floordiv(part, side) * conv.group_bytes + tirx.floormod(part, side) * VECTOR_BYTES
    base = block.bind("base", step.filter_origin + first)

    def add(at: Block, index: tirx.Expr) -> None:
        weights = vector.load(step.filter, base + index * (conv.side_by_side * VECTOR_BYTES))
        at.store(register, WHOLE, vector.dot4_add(tirx.BufferLoad(register, [WHOLE]), weights, int32(ONES)))

    block.loop("step", conv.filter_steps, add)
    return block.bind("filter_sum", tirx.BufferLoad(register, [WHOLE]), vector.VECTOR)
