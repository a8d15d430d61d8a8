"""Rows in caches: copy new rows in, move rows that the next stripe reads again, and zero the padding."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops import vector
from hexconv.host.loops.bands import NewRows
from hexconv.host.loops.rows import larger, smaller
from hexconv.host.loops.stage import Lines, Stage
from hexconv.schedule.block import Block, Number, int32

Step = Callable[[Block, Number, int], None]
"""What to do with some elements, given the block to write to, the first element and their number."""


@dataclass(frozen=True)
class Cache:
    """A cache of some rows of a tensor, with the padding that its reader needs around them.

    Attributes:
        buffer: the flat buffer that holds the caches of all bands, one after the other.
        first: the element at which this band's rows start.
        lines: where pixels lie.
        reader: the conv that reads the cache.
        elements: the elements of one band's cache.
        lanes: the lanes of the vectors that move its rows.
        has_bottom_padding: whether some stripe reads rows past the last one.
    """

    buffer: tirx.Buffer
    first: Number
    lines: Lines
    reader: Stage
    elements: int
    lanes: int
    has_bottom_padding: bool


def allocate(block: Block, name: str, elements: int) -> tirx.Buffer:
    """Allocate memory for float32 vectors."""
    return block.allocate(tirx.decl_buffer((elements,), "float32", name, data_alignment=vector.ALIGNMENT_BYTES))


def fill(block: Block, buffer: tirx.Buffer, first: Number, elements: Number, lanes: int) -> None:
    """Set elements to zero."""
    _in_vectors(
        block, elements, lanes, lambda at, index, width: vector.store(at, buffer, index + first, _zero(width), width)
    )


def clear(block: Block, cache: Cache) -> None:
    """Zero a cache that has padding before its first rows arrive; without padding nothing is read unwritten."""
    if cache.reader.has_padding:
        fill(block, cache.buffer, cache.first, cache.elements, cache.lanes)


def roll(block: Block, rows: NewRows, cache: Cache, stripe: Number) -> None:
    """Move the rows that this stripe reads again to the top of the cache, and zero the bottom padding."""

    def move(at: Block) -> None:
        shift = at.bind("shift", rows.base - rows.base_before)
        again = larger(rows.end_before - rows.base, int32(0))
        if cache.reader.may_start_in_padding:  # the stripe before has perhaps read no row that exists
            again = tirx.Select(rows.end_before > 0, again, int32(0))
        kept = at.bind("kept", again)
        source = shift * cache.lines.row + cache.first
        _copy(at, cache.buffer, source, cache.buffer, cache.first, kept * cache.lines.row, cache.lanes)

    if not isinstance(stripe, int):
        block.when(stripe > 0, move)
    if cache.has_bottom_padding:
        first = block.bind("first", larger(int32(cache.reader.in_size[0]) - rows.base, int32(0)))
        padding = block.bind("padding", larger(rows.wanted_end - rows.base - first, int32(0)))
        fill(block, cache.buffer, first * cache.lines.row + cache.first, padding * cache.lines.row, cache.lanes)


def fill_input(block: Block, rows: NewRows, source: tirx.Buffer, cache: Cache, image: Number) -> None:
    """Copy the new rows of an image into its cache."""
    stage = cache.reader
    line = stage.in_size[1] * stage.in_channels

    def one(at: Block, index: tirx.Expr) -> None:
        row = at.bind("row", rows.begin + index)
        line_start = (row - rows.base) * cache.lines.row + cache.first
        target = at.bind("target", line_start + stage.conv.padding.left * cache.lines.pixel)
        _copy(at, source, (image * stage.in_size[0] + row) * line, cache.buffer, target, line, cache.lanes)

    block.loop("line", rows.end - rows.begin, one, part="input cache read")


def save_seam(
    block: Block, rows: NewRows, edge: Number, count: int, cache: Cache, seam: tirx.Buffer, to: Number
) -> None:
    """Keep `count` rows from row `edge` on for the band above."""
    source = (edge - rows.base) * cache.lines.row + cache.first
    present = smaller(int32(count), rows.end - edge)
    _copy(block, cache.buffer, source, seam, to, present * cache.lines.row, cache.lanes)


def take_seam(block: Block, rows: NewRows, cut: Number, cache: Cache, seam: tirx.Buffer, first: Number) -> None:
    """Copy the new rows that the band below has computed: those from row `cut` on."""
    begin = block.bind("taken", larger(rows.begin, cut))
    elements = larger(rows.end - begin, int32(0)) * cache.lines.row
    target = (begin - rows.base) * cache.lines.row + cache.first
    _copy(block, seam, (begin - cut) * cache.lines.row + first, cache.buffer, target, elements, cache.lanes)


def _copy(
    block: Block,
    source: tirx.Buffer,
    first: Number,
    target: tirx.Buffer,
    to: Number,
    elements: Number,
    lanes: int,
) -> None:
    """Copy elements from one place to another, or to a lower address of the same buffer."""

    def one(at: Block, index: Number, width: int) -> None:
        vector.store(at, target, index + to, vector.load(source, index + first, width), width)

    _in_vectors(block, elements, lanes, one)


def _in_vectors(block: Block, elements: Number, lanes: int, one: Step) -> None:
    """Go over elements in whole vectors, then over the rest element by element."""
    whole, rest = elements // lanes, elements % lanes
    block.loop("vector", whole, lambda at, index: one(at, index * lanes, lanes))
    block.loop("element", rest, lambda at, index: one(at, index + whole * lanes, 1))


def _zero(lanes: int) -> tirx.Expr:
    return vector.filled(0, lanes) if lanes > 1 else tirx.const(0, "float32")
