"""Correct sums for the zero point of the filter, by the sum of each window.

sum(a * (w - zw)) = sum(a * w) - zw * sum(a), over the window of an output pixel

`sum(a)` is the same for all output channels. For each row of outputs it is computed once, before the tiles. First come
channels and rows of taps: instructions multiply with ones, and a tree of deals turns the lanes of 32 pixels into one
vector. Then come the columns of taps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.channels import channel_form
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BYTES
from hexconv.lower.hvx import instructions
from hexconv.tir.statements import Block, int32, vector_register

PIXELS = instructions.WORDS
"""Pixels whose sums one vector holds."""
MOST_INLINE = 16
"""Planes, or vectors of a pixel, of which each has statements of its own; more of them are a loop."""
ONES = 0x01010101
WHOLE = tirx.Ramp(0, 1, instructions.WORDS)

RowOfTaps = Callable[[Block, tirx.Expr], tirx.Expr]


@dataclass(frozen=True)
class Windows:
    """The scratch for the windows of one conv.

    Attributes:
        columns: int32; for each column of the source, the sum over its channels and over rows of taps.
        corrections: int32; for each output column, the sum of its window times minus the filter's zero point; the sum
            itself where the sums of the conv saturate.
    """

    columns: tirx.Buffer
    corrections: tirx.Buffer


def correct_row(block: Block, conv: RowConv, source: tirx.Buffer, row: RowOfTaps, windows: Windows) -> None:
    """Compute the corrections of one row of outputs; `row` returns the byte where a row of taps begins."""
    rows = [row(block, int32(tap)) for tap in range(conv.spec.kernel[0])]
    vectors = conv.plane.columns * conv.plane.pixel_bytes // VECTOR_BYTES
    of_group = PIXELS * conv.plane.pixel_bytes // VECTOR_BYTES

    def group(at: Block, index: tirx.Expr, there: int) -> None:
        first = index * (of_group * VECTOR_BYTES)
        total = _tree(at, _Bytes(conv, source, rows, conv.is_signed or conv.is_wide), first, range(of_group), there)
        if conv.is_wide:
            low = _tree(at, _Bytes(conv, source, rows, False, conv.plane.low_bytes), first, range(of_group), there)
            total = instructions.shift_left_add(low, total, 8)
        at.store(windows.columns, tirx.Ramp(index * PIXELS, 1, PIXELS), total)

    whole, rest = divmod(vectors, of_group)
    block.loop("group", whole, lambda at, index: group(at, index, of_group))
    if rest:
        group(block, int32(whole), rest)
    first = conv.target.valid_columns[0] * conv.spec.stride[1]
    if conv.spec.stride[1] == 1:
        block.loop(
            "group",
            channel_form(conv).window_pixels // PIXELS,
            lambda at, index: _vector(at, conv, windows, index, first),
        )
    else:
        block.loop("column", conv.columns, lambda at, column: _one(at, conv, windows, column, first))


@dataclass(frozen=True)
class _Bytes:
    """The bytes that a tree of deals sums.

    Attributes:
        conv: the conv whose windows are summed.
        source: the flat buffer of the source.
        rows: the bytes at which the rows of taps begin.
        is_signed: whether the summed bytes are signed.
        start: bytes from the start of a row to the first byte that is summed.
    """

    conv: RowConv
    source: tirx.Buffer
    rows: Sequence[tirx.Expr]
    is_signed: bool
    start: int = 0


def _tree(block: Block, over: _Bytes, first: tirx.Expr, vectors: range, there: int) -> tirx.Expr:
    """Sum the pixels in some vectors, of which the first `there` exist; each deal halves the lanes that a pixel has."""
    per_pixel = max(over.conv.plane.pixel_bytes // VECTOR_BYTES, 1)
    if vectors.start >= there:
        return instructions.splat(0)
    if len(vectors) == per_pixel:
        return _leaf(block, over, first + vectors.start * VECTOR_BYTES, per_pixel)
    half = vectors.start + len(vectors) // 2
    low = _tree(block, over, first, range(vectors.start, half), there)
    high = _tree(block, over, first, range(half, vectors.stop), there)
    pair = block.bind("pair", instructions.deal_words(high, low), "int32x64")
    return block.bind("halved", instructions.lower(pair) + instructions.upper(pair), instructions.VECTOR)


def _leaf(block: Block, over: _Bytes, first: tirx.Expr, parts: int) -> tirx.Expr:
    """Sum 4 channels per lane, over rows of taps, planes and the vectors of a pixel."""
    register, plane = vector_register(block, "columns"), over.conv.plane
    block.store(register, WHOLE, instructions.splat(0))

    def add(at: Block, row: tirx.Expr, number: tirx.Expr, part: tirx.Expr) -> None:
        loaded = instructions.load(over.source, row + number * plane.bytes + first + part * VECTOR_BYTES + over.start)
        total = tirx.BufferLoad(register, [WHOLE])
        at.store(register, WHOLE, _sum_of_four(over.is_signed, total, loaded))

    def add_plane(at: Block, row: tirx.Expr, number: tirx.Expr) -> None:
        if parts > MOST_INLINE:
            at.loop("part", parts, lambda inner, part: add(inner, row, number, part))
            return
        for part in range(parts):
            add(at, row, number, int32(part))

    planes = channel_form(over.conv).planes
    for row in over.rows:
        if planes <= MOST_INLINE:
            for number in range(planes):
                add_plane(block, row, int32(number))
        else:
            block.loop("plane", planes, lambda at, number, row=row: add_plane(at, row, number))
    return block.bind("dots", tirx.BufferLoad(register, [WHOLE]), instructions.VECTOR)


def _sum_of_four(is_signed: bool, total: tirx.Expr, loaded: tirx.Expr) -> tirx.Expr:
    """Add to `total` the sum of the four bytes of each lane."""
    if is_signed:
        return instructions.signed_bytes_dot4_add(total, loaded, instructions.splat(ONES))
    return instructions.dot4_add(total, loaded, int32(ONES))


def _vector(block: Block, conv: RowConv, windows: Windows, group: tirx.Expr, first: int) -> None:
    """Store the corrections of 32 windows of stride 1."""
    starts = [group * PIXELS + (first + tap * conv.spec.dilation[1]) for tap in range(conv.spec.kernel[1])]
    taps = [tirx.BufferLoad(windows.columns, [tirx.Ramp(start, 1, PIXELS)]) for start in starts]
    total = sum(taps[1:], start=taps[0])
    block.store(windows.corrections, tirx.Ramp(group * PIXELS, 1, PIXELS), total * instructions.splat(_factor(conv)))


def _one(block: Block, conv: RowConv, windows: Windows, column: tirx.Expr, first: int) -> None:
    spec = conv.spec
    places = [column * spec.stride[1] + (first + tap * spec.dilation[1]) for tap in range(spec.kernel[1])]
    taps = [tirx.BufferLoad(windows.columns, [place]) for place in places]
    block.store(windows.corrections, column, sum(taps[1:], start=taps[0]) * int32(_factor(conv)))


def _factor(conv: RowConv) -> int:
    return -conv.filter_zero if conv.raised is None else 1


def splats(block: Block, windows: Windows, x: tirx.Expr, pixels: int) -> list[tirx.Expr]:
    """Load the corrections of a tile's pixels, each into every lane."""
    return [_splat(block, word) for word in _loaded(windows, x, pixels)]


def splats_apart(
    block: Block, conv: RowConv, windows: Windows, x: tirx.Expr, pixels: int
) -> tuple[list[tirx.Expr], list[tirx.Expr]]:
    """Load the sums of the windows of a tile's pixels; return the corrections of sums of high and of low bytes."""
    words = [block.bind("window", word) for word in _loaded(windows, x, pixels)]
    high = [_splat(block, tirx.shift_right(word, int32(8)) * -conv.filter_zero) for word in words]
    low = [_splat(block, tirx.bitwise_and(word, int32(255)) * -conv.filter_zero) for word in words]
    return high, low


def _loaded(windows: Windows, x: tirx.Expr, pixels: int) -> list[tirx.Expr]:
    return [tirx.BufferLoad(windows.corrections, [x + pixel]) for pixel in range(pixels)]


def _splat(block: Block, word: tirx.Expr) -> tirx.Expr:
    return block.bind("correction", instructions.splat(word), instructions.VECTOR)
