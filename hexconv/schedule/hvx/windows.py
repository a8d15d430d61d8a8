"""The zero point of the filter: what every sum over a window has too much, or too little.

    sum(a * (w - zw)) = sum(a * w) - zw * sum(a), over the window of an output pixel

`sum(a)` is the same for all output channels. It is made once per pixel: channels and rows of taps first, by vrmpy with
ones and a tree of deals that turns 32 pixels' lanes into one vector of 32 pixels, then the columns of taps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.offsets import ONES
from hexconv.schedule.hvx.stage import Plane, Stage

PIXELS = vector.WORDS  # that the tree takes at a time


@dataclass(frozen=True)
class Windows:
    """Scratch of one conv's window sums.

    Attributes:
        columns: int32, per source column the sum of its channels and rows of taps.
        corrections: int32 [row of the stripe, output column], minus the filter's zero point times the window's sum.
        width: of a row of `corrections`.
        slack: whether 32 pixels past the end of a row are inside the source.
        low_bytes: from the source's planes of high bytes to those of low bytes; 0 where elements are bytes.
    """

    columns: tirx.Buffer
    corrections: tirx.Buffer
    width: int
    slack: bool
    low_bytes: int


def served(stage: Stage, planes: Sequence[Plane], slack: bool) -> bool:
    """Whether the tree serves this source: pixels of 4, 8, .. 64 or of 128n channels, 32 of them readable anywhere.

    `slack` says that 32 pixels past a row's end are inside the buffer; without it the rows have to be that wide.
    """
    fits = all(plane.channels % vector.BYTES == 0 or vector.BYTES % plane.channels == 0 for plane in planes)
    dense = all(plane.pixel_bytes == plane.channels and plane.channels % 4 == 0 for plane in planes)
    return fits and dense and (slack or stage.in_size[1] >= PIXELS)


def slack_bytes(planes: Sequence[Plane]) -> int:
    """What a cache needs after its last plane so that 32 pixels are readable from any of its columns."""
    return PIXELS * max(plane.pixel_bytes for plane in planes)


def column_words(stage: Stage) -> int:
    """Elements of `Windows.columns`: whole groups of 32, and what the last group of windows reads past them."""
    reach = (stage.kernel[1] - 1) * stage.dilation[1]
    return math.ceil((stage.padded_columns + PIXELS + reach) / PIXELS) * PIXELS


def row_words(stage: Stage) -> int:
    """Elements of a row of `Windows.corrections`."""
    return math.ceil(stage.out_size[1] / PIXELS) * PIXELS


def correct_row(
    block: Block,
    stage: Stage,
    planes: Sequence[Plane],
    source: tirx.Buffer,
    top: tirx.Expr,
    windows: Windows,
    row: tirx.Expr,
) -> None:
    """Fill row `row` of the corrections; `top` is the row of the source where its windows start."""

    def group(at: Block, index: tirx.Expr) -> None:
        first = index * PIXELS
        if not windows.slack:
            first = at.bind("first", tirx.Min(first, int32(stage.padded_columns - PIXELS)))
        total = _column_sums(at, stage, planes, source, top, first)
        if windows.low_bytes:
            low = _column_sums(at, stage, planes, source, top, first, windows.low_bytes)
            total = vector.shift_left_add(low, total, 8)
        at.store(windows.columns, tirx.Ramp(first, 1, PIXELS), total)

    block.loop("group", math.ceil(stage.padded_columns / PIXELS), group)
    if stage.stride[1] == 1:
        block.loop("group", windows.width // PIXELS, lambda at, index: _vector_windows(at, stage, windows, row, index))
    else:
        block.loop("column", stage.out_size[1], lambda at, column: _one_window(at, stage, windows, row, column))


def _column_sums(
    block: Block,
    stage: Stage,
    planes: Sequence[Plane],
    source: tirx.Buffer,
    top: tirx.Expr,
    column: tirx.Expr,
    after: int = 0,
) -> tirx.Expr:
    """32 columns' sums over channels and rows of taps, of what lies `after` bytes behind the planes."""
    total: tirx.Expr | None = None
    for plane in planes:
        lanes = min(plane.channels, vector.BYTES) // 4
        starts = [(column + pixel) * plane.pixel_bytes + after for pixel in range(0, PIXELS, vector.WORDS // lanes)]
        summed = _tree(block, stage, plane, source, top, starts)
        total = summed if total is None else block.bind("total", total + summed, vector.VECTOR)
    assert total is not None
    return total


def _tree(
    block: Block, stage: Stage, plane: Plane, source: tirx.Buffer, top: tirx.Expr, starts: Sequence[tirx.Expr]
) -> tirx.Expr:
    """The sums of the pixels at `starts`, in order; deals halve the lanes that a pixel has."""
    if len(starts) == 1:
        return _leaf(block, stage, plane, source, top, starts[0])
    half = len(starts) // 2
    low = _tree(block, stage, plane, source, top, starts[:half])
    high = _tree(block, stage, plane, source, top, starts[half:])
    pair = block.bind("pair", vector.deal_words(high, low), "int32x64")
    return block.bind("halved", vector.lower(pair) + vector.upper(pair), vector.VECTOR)


def _leaf(block: Block, stage: Stage, plane: Plane, source: tirx.Buffer, top: tirx.Expr, start: tirx.Expr) -> tirx.Expr:
    """Sums of 4 channels per lane, over the rows of taps and, in a pixel of several vectors, over those."""
    total: tirx.Expr | None = None
    for tap in range(stage.kernel[0]):
        row = (top + tap * stage.dilation[0]) * plane.row_bytes + plane.first_byte
        for part in range(max(plane.channels // vector.BYTES, 1)):
            loaded = vector.load(source, row + start + part * vector.BYTES)
            dots = vector.dot4(loaded, int32(ONES)) if total is None else vector.dot4_add(total, loaded, int32(ONES))
            total = block.bind("dots", dots, vector.VECTOR)
    assert total is not None
    return total


def _vector_windows(block: Block, stage: Stage, windows: Windows, row: tirx.Expr, group: tirx.Expr) -> None:
    """32 windows of stride 1."""
    firsts = [group * PIXELS + tap * stage.dilation[1] for tap in range(stage.kernel[1])]
    taps = [tirx.BufferLoad(windows.columns, [tirx.Ramp(first, 1, PIXELS)]) for first in firsts]
    total = sum(taps[1:], start=taps[0])
    at = tirx.Ramp(row * windows.width + group * PIXELS, 1, PIXELS)
    block.store(windows.corrections, at, total * vector.splat(-stage.filter_zero))


def _one_window(block: Block, stage: Stage, windows: Windows, row: tirx.Expr, column: tirx.Expr) -> None:
    columns = [column * stage.stride[1] + tap * stage.dilation[1] for tap in range(stage.kernel[1])]
    taps = [tirx.BufferLoad(windows.columns, [index]) for index in columns]
    total = sum(taps[1:], start=taps[0])
    block.store(windows.corrections, row * windows.width + column, total * int32(-stage.filter_zero))
