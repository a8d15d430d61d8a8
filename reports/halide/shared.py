"""What all of Halide's pipelines share: the package, its target, buffers, and how sums are requantised."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hexconv.errors import ToolMissing
from hexconv.spec import Chain, Conv2d, Padding, Requantize

TARGET = "hexagon-32-noos-hvx_128-hvx_v66-no_runtime-no_asserts-no_bounds_query"
INSTALL = 'pip install "hexconv[bench]"'
BLOCK, WORD, VECTOR_BYTES = 32, 4, 128
MOST_SHIFT = 15  # the longest shift of 32 bits that Halide narrows to 16 bits as it shifts

Halide = Any
"""Type of Halide's module and of all that it makes, since Halide comes without types."""


def module() -> Halide:
    """Return the package `halide`.

    Raises:
        ToolMissing: it isn't installed.
    """
    try:
        return importlib.import_module("halide")
    except ImportError as missing:
        raise ToolMissing(f"Halide is not installed ({missing}); {INSTALL}") from None


def is_depthwise(chain: Chain, stride: int) -> bool:
    """Whether a chain is a depthwise 3x3 conv of a uint8 image, with padding 1, int8 filters, a bias, zero points 0."""
    (*others, conv), channels, how = chain.conv, chain.input[3], chain.conv[-1].requantize
    stated = Conv2d(
        out_channels=channels,
        kernel=(3, 3),
        stride=(stride, stride),
        padding=Padding(top=1, left=1, bottom=1, right=1),
        groups=channels,
        bias=True,
        bias_limit=conv.bias_limit,
        filter_l1=conv.filter_l1,
        requantize=how,
    )
    typed = (chain.dtype, chain.dtype_of_filters, chain.input[0], chain.zero_point) == ("uint8", "int8", 1, 0)
    return not others and typed and conv == stated and narrows(how)


def narrows(how: Requantize | None) -> bool:
    """Tell whether `requantized` serves: one multiplier and shift for all channels, zero point 0, rounded twice."""
    if how is None or how.zero_point or how.clamp or how.vectors:
        return False
    return not how.shifts_left and how.rounding != "even"


def requantized(hl: Halide, sums: Halide, how: Requantize | None) -> Halide:
    """Requantise sums: by two rounding shifts if the multiplier is a power of two.

    Results below zero are cut off, so it doesn't matter which way ties go there.
    """
    assert how
    assert isinstance(how.multiplier, int)
    assert isinstance(how.shift, int)
    if how.multiplier & (how.multiplier - 1) == 0:
        halfwords = hl.i16_sat(hl.rounding_shift_right(sums, hl.u32(32 - how.multiplier.bit_length())))
        return hl.u8_sat(hl.rounding_shift_right(halfwords, hl.u16(-how.shift)))
    high = hl.rounding_mul_shift_right(sums, hl.i32(how.multiplier), hl.u32(31))
    last = min(-how.shift, MOST_SHIFT)
    high = high >> (-how.shift - last) if -how.shift > last else high
    return hl.u8_sat(hl.i16_sat(hl.rounding_shift_right(high, hl.u32(last))))


def _describe(buffer: Halide, extents: tuple[int, ...]) -> None:
    """A dense buffer from index 0 on, the first axis innermost."""
    stride = 1
    for axis, extent in enumerate(extents):
        buffer.dim(axis).set_bounds(0, extent).set_stride(stride)
        stride *= extent
    buffer.set_host_alignment(VECTOR_BYTES)


Buffer = tuple[Halide, tuple[int, ...]]
"""A parameter or a function of a pipeline, and its extents, the first axis innermost."""


def compile_object(hl: Halide, made: Buffer, inputs: list[Buffer], name: str, path: Path) -> None:
    """Compile a pipeline to an object file with one function `name` of its inputs and its output, dense buffers all."""
    for buffer, extents in (*inputs, (made[0].output_buffer(), made[1])):
        _describe(buffer, extents)
    files = {hl.OutputFileType.object: str(path)}
    made[0].compile_to(files, [buffer for buffer, _ in inputs], name, hl.Target(TARGET))


@dataclass(frozen=True)
class Schedule:
    """How two fused convs are computed.

    Attributes:
        tiles: per conv, (columns, rows) of the pixels that are computed together for all output channels, in registers.
        channels: per conv, how many input channels a step of the reduction takes.
        rolls: how many rows of the intermediate a ring buffer holds, each computed once; 0: no ring buffer, and rows
            are recomputed for each row of tiles.
    """

    tiles: tuple[tuple[int, int], tuple[int, int]]
    channels: tuple[int, int]
    rolls: int = 0


@dataclass(frozen=True)
class Depthwise:
    """How a depthwise conv of stride 1 is computed.

    Attributes:
        rows: how many rows of the output are computed together, for 128 neighbouring elements of a row.
    """

    rows: int


@dataclass(frozen=True)
class Strided:
    """How a depthwise conv of stride 2 is computed.

    Attributes:
        pairs: how many pairs of rows are computed together, for 128 neighbouring elements of two rows.
    """

    pairs: int


@dataclass(frozen=True)
class FirstLayer:
    """How the first conv of a network is computed.

    Attributes:
        tile: (pairs of pixels, rows) of the output that are computed together for all channels, in registers.
    """

    tile: tuple[int, int]


AnySchedule = Schedule | Depthwise | Strided | FirstLayer

_POINTWISE = Schedule(tiles=((2, 2), (2, 2)), channels=(16, 16))
_THREE_BY_THREE = Schedule(tiles=((7, 1), (6, 1)), channels=(4, 4), rolls=4)

SCHEDULES: dict[str, AnySchedule] = {
    "a-shift": _POINTWISE,
    "a-multiplier": _POINTWISE,
    "a-filter-zero": _POINTWISE,
    "a-int8-filters": _POINTWISE,
    "b-shift": _THREE_BY_THREE,
    "b-multiplier": _THREE_BY_THREE,
    "b-filter-zero": _THREE_BY_THREE,
    "b-int8-filters": _THREE_BY_THREE,
    "depthwise": Depthwise(rows=4),
    "depthwise-stride-2": Strided(pairs=1),
    "first-layer": FirstLayer(tile=(2, 2)),
}
"""The schedules by the name of the case in `schedules/hvx`."""
