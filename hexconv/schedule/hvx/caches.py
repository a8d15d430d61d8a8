"""Rows in caches: from the end of a stripe to the start of the next, and zero points where nothing is."""

from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.conv import Address
from hexconv.schedule.hvx.stage import Group, Plane, Stage
from hexconv.schedule.rows import Rows, larger


@dataclass(frozen=True)
class Cache:
    """Some rows of a tensor, with the padding that its reader needs around them; all bytes are uint8.

    Attributes:
        buffer: the memory.
        planes: of the elements, or of their high bytes.
        rows: that it has.
        bytes: of all planes, and what may be read past them.
        low_bytes: from a plane of high bytes to that of the low ones; 0 where elements are bytes.
        reader: the conv that reads it.
    """

    buffer: tirx.Buffer
    planes: tuple[Plane, ...]
    rows: int
    bytes: int
    low_bytes: int
    reader: Stage

    @property
    def halves(self) -> tuple[tuple[int, int, int], ...]:
        """(first byte, bytes, zero) of what high and low bytes have; of all that elements of one byte have."""
        if not self.low_bytes:
            return ((0, self.bytes, self.reader.in_zero),)
        high, low = self.reader.in_zero_bytes
        return ((0, self.low_bytes, high), (self.low_bytes, self.bytes - self.low_bytes, low))


def fill(block: Block, buffer: tirx.Buffer, byte: Number, vectors: Number, value: int) -> None:
    """Set whole vectors from `byte` on."""

    def one(at: Block, index: tirx.Expr) -> None:
        at.store(buffer, vector.at(index * vector.BYTES + byte), vector.stored(vector.filled(value)))

    block.loop("vector", vectors, one)


def clear(block: Block, cache: Cache, by_vectors: bool) -> None:
    """Fill a cache with the zero point, padding and all, before its first rows arrive.

    Not by vectors where scalar stores follow: LLVM 22 puts a vector store and a later scalar store to the same bytes in
    one packet, and there the vector store comes last, whatever the order was (HVX stores issue in slot 0 only).
    """
    for start, size, zero in cache.halves:
        if by_vectors:
            fill(block, cache.buffer, start, size // vector.BYTES, zero)
        else:
            _fill_by_words(block, cache.buffer, start, size // 8, zero)


def _fill_by_words(block: Block, buffer: tirx.Buffer, byte: int, words: int, value: int) -> None:
    """Set whole doublewords from `byte` on."""
    filled = tirx.Broadcast(tirx.IntImm("uint8", value), 8)
    block.loop("word", words, lambda at, index: at.store(buffer, tirx.Ramp(index * 8 + byte, 1, 8), filled))


def roll(block: Block, rows: Rows, tensor: int, cache: Cache, stripe: Number) -> None:
    """Move the rows that this stripe reads again to the top of the cache, and clear the bottom padding."""

    def move(at: Block) -> None:
        shift = at.bind("shift", rows.base(tensor, stripe) - rows.base(tensor, stripe - 1))
        kept = at.bind("kept", rows.kept(tensor, stripe))
        for plane, first_byte, _ in _all_planes(cache):
            source = shift * plane.row_bytes + first_byte
            _move(at, cache.buffer, source, first_byte, kept * (plane.row_bytes // vector.BYTES))

    if rows.stripes > 1:
        block.when(stripe > 0, move)
    if rows.has_bottom_padding(tensor):
        base = block.bind("base", rows.base(tensor, stripe))
        first = block.bind("first", larger(rows.height(tensor) - base, int32(0)))
        padding = block.bind("padding", larger(rows.wanted_end(tensor, stripe) - base - first, int32(0)))
        for plane, first_byte, zero in _all_planes(cache):
            vectors = padding * (plane.row_bytes // vector.BYTES)
            fill(block, cache.buffer, first * plane.row_bytes + first_byte, vectors, zero)


def _all_planes(cache: Cache) -> list[tuple[Plane, int, int]]:
    """Planes of high bytes and of low bytes: where each starts, and the zero that it has."""
    return [(plane, plane.first_byte + start, zero) for start, _, zero in cache.halves for plane in cache.planes]


def _move(block: Block, buffer: tirx.Buffer, source: Number, target: Number, vectors: Number) -> None:
    """Whole vectors to a lower address."""

    def one(at: Block, index: tirx.Expr) -> None:
        moved = at.bind("moved", vector.moved(vector.load(buffer, index * vector.BYTES + source)), vector.VECTOR)
        at.store(buffer, vector.at(index * vector.BYTES + target), vector.stored(moved))

    block.loop("vector", vectors, one)


def zero_fringe(block: Block, stage: Stage, output: tirx.Buffer, address: Address) -> None:
    """Zero what no tile of the last conv writes: the rows below, and the columns that no tile's stores reach."""
    pixels = 1 if stage.narrowing is None else 4 // stage.result_bytes  # of a vector
    height, width = stage.out_size
    rows, columns = -(-height // 8) * 8, -(-width // 8) * 8
    whole = Group(0, 1, stage.out_blocks, wide=False)

    def store(at: Block, row: tirx.Expr, column: tirx.Expr, number: tirx.Expr) -> None:
        first = address(row, column, whole, number, 0)
        if stage.narrowing is None:
            at.store(output, tirx.Ramp(first, 1, vector.WORDS), vector.filled(0))
        else:
            at.store(output, vector.at(first * stage.result_bytes), vector.stored(vector.filled(0)))

    def line(at: Block, row: tirx.Expr, start: int) -> None:
        def blocks(inner: Block, index: tirx.Expr) -> None:
            column = index * pixels + start
            inner.loop("block", stage.out_blocks, lambda last, number: store(last, row, column, number))

        at.loop("columns", (columns - start) // pixels, blocks)

    block.loop("row", rows - height, lambda at, index: line(at, index + height, 0))
    block.loop("row", height, lambda at, row: line(at, row, -(-width // pixels) * pixels))
