"""Moving rows: into the input cache, from the end of a stripe to the start of the next, zeros to where nothing is."""

from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.block import Block, int32
from hexconv.schedule.hvx.convolve import Address
from hexconv.schedule.hvx.rows import Rows, larger
from hexconv.schedule.hvx.stage import CHANNELS, Group, Plane, Stage


@dataclass(frozen=True)
class Cache:
    """Some rows of a tensor, with the padding that its reader needs around them."""

    buffer: tirx.Buffer
    planes: tuple[Plane, ...]
    rows: int
    bytes: int


def zero(block: Block, buffer: tirx.Buffer, byte: tirx.Expr, vectors: "int | tirx.Expr") -> None:
    """Zero whole vectors from `byte` on."""
    block.loop("vector", vectors, lambda at, index: at.store(buffer, vector.at(byte + index * vector.BYTES), vector.stored(vector.zeros())))


def clear(block: Block, cache: Cache, by_vectors: bool) -> None:
    """Zero a cache, padding and all, before its first rows arrive.

    Not by vectors where scalar stores fill it: LLVM 22 puts a vector store and a later scalar store to the same bytes in
    one packet, and there the vector store comes last, whatever the order was (HVX stores issue in slot 0 only).
    """
    if by_vectors:
        zero(block, cache.buffer, int32(0), cache.bytes // vector.BYTES)
        return
    nothing = tirx.Broadcast(tirx.IntImm("uint8", 0), 8)
    block.loop("word", cache.bytes // 8, lambda at, index: at.store(cache.buffer, tirx.Ramp(index * 8, 1, 8), nothing))


def fills_by_vectors(stage: Stage) -> bool:
    """Whether `fill_input` has no scalar stores."""
    return stage.in_channels % 8 == 0 and stage.in_size[1] * stage.in_channels % vector.BYTES == 0


def roll(block: Block, rows: Rows, tensor: int, cache: Cache, stripe: tirx.Expr) -> None:
    """Move the rows that this stripe reads again to the top of the cache, and zero the bottom padding."""

    def move(at: Block) -> None:
        base = rows.base(tensor, stripe)
        shift = at.bind("shift", base - rows.base(tensor, stripe - 1))
        kept = at.bind("kept", larger(rows.end(tensor, stripe - 1) - base, int32(0)))
        for plane in cache.planes:
            _copy(at, cache.buffer, shift * plane.row_bytes + plane.first_byte, plane.first_byte, kept * (plane.row_bytes // vector.BYTES))

    if rows.stripes > 1:
        block.when(stripe > 0, move)
    if rows.has_bottom_padding(tensor):
        base = block.bind("base", rows.base(tensor, stripe))
        first = block.bind("first", larger(rows.height(tensor) - base, int32(0)))
        padding = block.bind("padding", larger(rows.wanted_end(tensor, stripe) - base - first, int32(0)))
        for plane in cache.planes:
            zero(block, cache.buffer, first * plane.row_bytes + plane.first_byte, padding * (plane.row_bytes // vector.BYTES))


def _copy(block: Block, buffer: tirx.Buffer, source: tirx.Expr, target: "int | tirx.Expr", vectors: tirx.Expr) -> None:
    """Whole vectors to a lower address."""

    def one(at: Block, index: tirx.Expr) -> None:
        moved = at.bind("moved", vector.moved(vector.load(buffer, source + index * vector.BYTES)), vector.VECTOR)
        at.store(buffer, vector.at(index * vector.BYTES + target), vector.stored(moved))

    block.loop("vector", vectors, one)


def fill_input(block: Block, rows: Rows, source: tirx.Buffer, cache: Cache, stripe: tirx.Expr) -> None:
    """Copy the new rows of the input into its cache, pixels widened to whole words."""
    stage, [plane] = rows.stages[0], cache.planes
    begin = block.bind("begin", rows.begin(0, stripe))
    base = block.bind("base", rows.base(0, stripe))
    count = block.bind("count", rows.end(0, stripe) - begin)
    line = stage.in_size[1] * stage.in_channels

    def one(at: Block, index: tirx.Expr) -> None:
        from_byte = at.bind("from_byte", (begin + index) * line)
        to_byte = at.bind("to_byte", (begin + index - base) * plane.row_bytes + stage.padding[1] * plane.pixel_bytes)
        if stage.in_channels == plane.pixel_bytes:
            _copy_line(at, source, from_byte, cache.buffer, to_byte, line)
        else:
            _copy_pixels(at, stage, plane, source, from_byte, cache.buffer, to_byte)

    block.loop("line", count, one)


def _copy_line(block: Block, source: tirx.Buffer, from_byte: tirx.Expr, target: tirx.Buffer, to_byte: tirx.Expr, size: int) -> None:
    """`size` bytes, a multiple of 4: vectors, then words."""
    vectors, rest = divmod(size, vector.BYTES)

    def one(at: Block, index: tirx.Expr) -> None:
        moved = vector.moved(vector.load(source, from_byte + index * vector.BYTES))
        at.store(target, vector.at(to_byte + index * vector.BYTES), vector.stored(moved))

    def word(at: Block, index: tirx.Expr) -> None:
        byte = index * 4 + vectors * vector.BYTES
        at.store(target, tirx.Ramp(to_byte + byte, 1, 4), tirx.BufferLoad(source, [tirx.Ramp(from_byte + byte, 1, 4)]))

    block.loop("vector", vectors, one)
    block.loop("word", rest // 4, word)


def _copy_pixels(block: Block, stage: Stage, plane: Plane, source: tirx.Buffer, from_byte: tirx.Expr, target: tirx.Buffer, to_byte: tirx.Expr) -> None:
    def channel(at: Block, pixel: tirx.Expr, number: tirx.Expr) -> None:
        at.store(target, to_byte + pixel * plane.pixel_bytes + number, tirx.BufferLoad(source, [from_byte + pixel * stage.in_channels + number]))

    block.loop("pixel", stage.in_size[1], lambda outer, pixel: outer.loop("channel", stage.in_channels, lambda at, number: channel(at, pixel, number)))


def zero_fringe(block: Block, stage: Stage, output: tirx.Buffer, address: Address) -> None:
    """Zero what no tile of the last conv writes: the rows below, and the four columns that no tile reaches."""
    height, width = stage.out_size
    rows, four = -(-height // 8) * 8, int32(4)
    whole = Group(0, 1, stage.out_blocks, wide=False)

    def four_pixels(at: Block, row: tirx.Expr, column: tirx.Expr, number: tirx.Expr) -> None:
        zero(at, output, address(row, column, whole, number, 0), 1)

    def line(at: Block, row: tirx.Expr, first: int, count: int) -> None:
        at.loop("four", count, lambda inner, index: inner.loop("block", stage.out_blocks, lambda last, number: four_pixels(last, row, index * four + first, number)))

    across = -(-width // 8) * 2
    block.loop("row", rows - height, lambda at, index: line(at, index + height, 0, across))
    if 1 <= width % 8 <= 4:
        block.loop("row", height, lambda at, row: line(at, row, (across - 1) * 4, 1))
