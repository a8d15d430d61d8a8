"""Lay out what tiles multiply where lanes are pixels: rows of the source as planes.

planes:  for row of a window: for plane: words of 4 bytes, lane by lane (`hexconv.kernel.planes`)

Activations are then the unsigned bytes of a product, and weights are the signed ones if their zero point is 128. So no
sums of windows are needed, neither for int8 activations, which become uint8 on the way, nor for int8 filters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

from tvm import tirx

from hexconv.kernel.planes import Merged, PixelPlanes
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BYTES, WORD_BYTES
from hexconv.lower.conv_step import Rows, in_ring
from hexconv.lower.hvx import instructions
from hexconv.tir.statements import Block, Number, int32


@dataclass(frozen=True)
class Planes:
    """The scratch of a conv that multiplies rows which it lays out anew.

    Attributes:
        conv: the conv that multiplies the planes.
        layout: how the planes lie in `memory`.
        row_bytes: the bytes of a row there.
        memory: uint8, the planes of a window's rows; behind them one row before its words go on. None where the source
            is multiplied as it lies. Or the copies of a window's dense rows; behind them what sums windows.
    """

    conv: RowConv
    layout: PixelPlanes
    row_bytes: int
    memory: tirx.Buffer | None

    @property
    def laid(self) -> tirx.Buffer:
        """The memory of planes that are laid out."""
        assert self.memory is not None, "the source is multiplied as it lies"
        return self.memory

    def row(self, row: Number) -> Number:
        """Return the byte at which the planes of a row begin; rows are counted from the first that the step reads."""
        return tirx.floormod(row, int32(self.layout.rows)) * self.row_bytes


def each_new_row(
    block: Block,
    planes: Planes,
    source: Rows,
    top: tirx.Expr,
    is_first: tirx.Expr,
    lay: Callable[[Block, tirx.Expr, Number], None],
) -> None:
    """Lay out the rows that the windows of a row of outputs are the first to read.

    Args:
        block: the block to emit into.
        planes: the memory that they are laid out in.
        source: the rows of the source.
        top: the first row of the windows.
        is_first: whether no row of outputs came before: then all of them are new.
        lay: lays out one row, from a byte of the source on, to a byte of the memory.
    """
    layout = planes.layout
    new = block.bind("new", tirx.Select(is_first, int32(layout.rows), int32(layout.new_rows)))

    def one(at: Block, index: tirx.Expr) -> None:
        row = at.bind("row", top + (layout.rows - new) + index)
        byte = in_ring(source, source.first + row) * layout.source.row_bytes + source.origin
        lay(at, at.bind("source_row", byte), planes.row(row))

    block.loop("laid", new, one)


def lay_rows(block: Block, planes: Planes, source: Rows, top: tirx.Expr, is_first: tirx.Expr) -> None:
    """Lay out new rows as planes."""
    layout = planes.layout
    of_plane = layout.words * layout.stride * layout.plane_bytes

    def one(at: Block, byte: tirx.Expr, to: Number) -> None:
        to = at.bind("planes_row", to)
        laid = layout.rows * layout.row_bytes if layout.goes_on else to

        def plane(inner: Block, number: tirx.Expr) -> None:
            _lay_plane(inner, planes, source.buffer, byte + number * layout.source.bytes, laid + number * of_plane)

        at.loop("plane", layout.source.count, plane)
        if layout.goes_on:
            at.loop("lanes", layout.read_vectors, lambda inner, number: _merge(inner, planes, number, to))

    each_new_row(block, planes, source, top, is_first, one)


def _lay_plane(block: Block, planes: Planes, source: tirx.Var, byte: Number, to: Number) -> None:
    """Lay out one plane of a row of the source, 32 lanes at a time."""
    layout = planes.layout
    of_lanes, row_bytes = layout.chunk_loads * layout.loaded_bytes, layout.source.columns * layout.source.pixel_bytes
    whole = max(row_bytes - (of_lanes - layout.loaded_bytes + VECTOR_BYTES) + of_lanes, 0) // of_lanes
    apart = layout.phase_bytes if layout.goes_on else layout.plane_bytes

    def some(at: Block, number: tirx.Expr, size: int) -> None:
        loaded = _loaded(at, source, byte + number * of_lanes, layout, size)
        for place, pixels in enumerate(_by_phase(at, loaded, layout)):
            value = pixels if planes.conv.reads_unsigned else instructions.flipped(pixels)
            if layout.goes_on or layout.source.is_dense:
                value = _only_channels(value, layout, planes.conv.in_zero)
            at.store(
                planes.laid, instructions.at(to + place * apart + number * VECTOR_BYTES), instructions.stored(value)
            )

    block.loop("chunk", whole, lambda at, number: some(at, number, of_lanes))
    for number in range(whole, ceil(row_bytes / of_lanes)):
        some(block, int32(number), row_bytes - number * of_lanes)


def _only_channels(value: tirx.Expr, layout: PixelPlanes, zero: int) -> tirx.Expr:
    """Keep the bytes of channels, and put zero into the others, or the zero point where words don't go on."""
    there = (1 << 8 * layout.channels) - 1
    kept, others = tirx.bitwise_and(value, instructions.splat(there)), 0x01010101 * zero & 0xFFFFFFFF & ~there
    if layout.goes_on or not others:
        return kept
    return tirx.bitwise_or(kept, instructions.splat(instructions.signed(others)))


def _loaded(block: Block, source: tirx.Var, byte: Number, layout: PixelPlanes, size: int) -> list[tirx.Expr]:
    """Load the vectors of 32 lanes of a row that still has `size` bytes, without what lies behind the row.

    Dense pixels are spread to a word each.

    Behind the row is another one, or the end of the cache. So the last vectors are loaded from an earlier byte, so that
    they end with the row, and then rotated. Vectors beyond the row may hold anything.
    """
    bound = []
    for start in range(0, min(size, layout.chunk_loads * layout.loaded_bytes), layout.loaded_bytes):
        missing = max(start + VECTOR_BYTES - size, 0)
        value = instructions.load(source, byte + (start - missing))
        value = instructions.rotated(value, missing) if missing else value
        if layout.source.is_dense:
            value = instructions.spread_runs(value, layout.source.pixel_bytes, layout.source.pixel_bytes, 4)
        bound.append(block.bind("pixels", value, instructions.VECTOR))
    return [*bound, *[bound[-1]] * (layout.chunk_loads - len(bound))]


def _by_phase(block: Block, loaded: Sequence[tirx.Expr], layout: PixelPlanes) -> list[tirx.Expr]:
    """Return 32 lanes for each word of a pixel that counts, and in each word for each phase."""
    words = layout.source.words
    dealt = [_dealt(block, loaded[at : at + words], layout.words) for at in range(0, len(loaded), words)]
    if layout.stride == 1:
        return dealt[0]
    pairs = [
        block.bind("phases", instructions.deal_words(high, low), "int32x64") for low, high in zip(*dealt, strict=True)
    ]
    return [half for pair in pairs for half in (instructions.lower(pair), instructions.upper(pair))]


def _dealt(block: Block, vectors: Sequence[tirx.Expr], wanted: int) -> list[tirx.Expr]:
    """Deal the first `wanted` words of pixels to vectors of their own, from as many vectors as a pixel has words.

    Words with even numbers lie in the even lanes of two neighbouring vectors, those with odd numbers in the odd lanes.
    """
    if len(vectors) == 1 or not wanted:
        return list(vectors[:wanted])
    pairs = [
        block.bind("dealt", instructions.deal_words(high, low), "int32x64")
        for low, high in zip(vectors[::2], vectors[1::2], strict=True)
    ]
    even = _dealt(block, [instructions.lower(pair) for pair in pairs], ceil(wanted / 2))
    odd = _dealt(block, [instructions.upper(pair) for pair in pairs], wanted // 2)
    return [words for both in zip_longest(even, odd) for words in both if words is not None]


def _merge(block: Block, planes: Planes, number: tirx.Expr, to: Number) -> None:
    """Lay out 32 lanes of all planes of a row whose words take bytes of several pixels."""
    layout = planes.layout
    for place, plane in enumerate(layout.merged):
        value = block.bind("words", _merged(planes, plane, number), instructions.VECTOR)
        block.store(
            planes.laid,
            instructions.at(to + place * layout.plane_bytes + number * VECTOR_BYTES),
            instructions.stored(value),
        )


def _merged(planes: Planes, plane: Merged, number: tirx.Expr) -> tirx.Expr:
    """Put together words that take bytes of neighbouring pixels."""
    layout, value = planes.layout, instructions.splat(0)
    first = layout.rows * layout.row_bytes + number * VECTOR_BYTES
    for phase, lanes, moved in layout.parts(plane):
        pixels = instructions.load(planes.laid, first + (phase * layout.phase_bytes + lanes * WORD_BYTES))
        if moved <= 0:
            value = instructions.shift_right_logical(pixels, -8 * moved) if moved else pixels
        else:
            value = instructions.shift_left_add(value, pixels, 8 * moved)
    return value
