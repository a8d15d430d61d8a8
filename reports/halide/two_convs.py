"""Two convs of uint8 in Halide, fused: the second reads rows of the first, which are never stored whole.

sums[k, x, y]  = -filter zero point * window[x, y]
    sums[k, x, y] += filter * source, over channels and taps
    made[k, x, y]  = requantised sums

int8 filters are given to it as uint8 with a zero point of 128: no schedule with `vrmpy` of signed filters is as fast.

Filters come as [tap row][tap column][k/32][c/4][32 k][4 c]: four channels by 32 output channels are then one vector,
and Halide finds `vrmpy` with the four activations as a scalar.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hexconv.errors import Unsupported
from hexconv.run.measurement import Array
from hexconv.run.tensors import Tensors
from hexconv.spec import Chain, Conv2d
from reports.halide.shared import BLOCK, WORD, Buffer, Halide, Schedule, compile_object, module, requantized

PIXELS = 8  # pixels whose window sums are reduced together


@dataclass(frozen=True)
class _Conv:
    """One conv's functions and axes of reduction; a conv without a filter zero point has no function of windows."""

    made: Halide
    sums: Halide
    axes: Halide
    channel_sums: Halide
    channel_axis: Halide
    windows: Halide
    window_axes: Halide


@dataclass(frozen=True)
class _Axes:
    """The pure axes that all functions share."""

    k: Halide
    x: Halide
    y: Halide


def build(chain: Chain, schedule: Schedule, name: str, path: Path) -> None:
    """Compile a chain to an object file with one function `name(input, filter1, filter2, output)`, all of uint8.

    Raises:
        ToolMissing: Halide isn't installed.
        Unsupported: these schedules don't serve the chain.
    """
    check(chain)
    chain, hl = _unsigned(chain), module()
    axes = _Axes(hl.Var("k"), hl.Var("x"), hl.Var("y"))
    image = hl.ImageParam(hl.UInt(8), 3, "input")
    filters = [hl.ImageParam(hl.UInt(8), 6, f"filter{number}") for number in (1, 2)]
    first = _conv(hl, axes, chain, 0, image, filters[0])
    second = _conv(hl, axes, chain, 1, first.made, filters[1])
    _schedule(hl, axes, chain, schedule, first, second)
    inputs: list[Buffer] = [(image, (chain.input[3], chain.input[2], chain.input[1]))]
    for conv, filter, shape in zip(chain.conv, filters, chain.shapes, strict=False):
        inputs.append((filter, (WORD, BLOCK, shape[3] // WORD, conv.out_channels // BLOCK, *reversed(conv.kernel))))
    _, rows, columns, channels = chain.shapes[-1]
    compile_object(hl, (second.made, (channels, columns, rows)), inputs, name, path)


def check(chain: Chain) -> None:
    """Two convs of whole blocks, of stride 1 and without padding, on uint8.

    Raises:
        Unsupported: the chain is any other.
    """
    served = chain.dtype == "uint8" and len(chain.conv) == 2 and chain.input[0] == 1 and chain.zero_point == 0
    whole = all(shape[3] % BLOCK == 0 for shape in chain.shapes)
    if not (served and whole and all(map(_is_plain, chain.conv))):
        raise Unsupported(
            "the bench has Halide schedules for one uint8 image and two convs of whole blocks of 32 channels, stride "
            "1, no padding, no bias, activations with zero point 0; it measures no other chain"
        )


def inputs(chain: Chain, tensors: Tensors) -> list[Array]:
    """Return the image and the packed filters, as the pipeline takes them."""
    del chain
    return [tensors.image[0], *map(packed, tensors.filters)]


def packed(filter: Array) -> Array:
    """Pack a filter from OIHW to [tap row][tap column][k/32][c/4][32 k][4 c]; int8 becomes uint8, 128 larger."""
    unsigned = (filter ^ np.int8(-128)).view(np.uint8) if filter.dtype == np.int8 else filter
    channels, depth, *taps = unsigned.shape
    blocks = unsigned.reshape(channels // BLOCK, BLOCK, depth // WORD, WORD, *taps)
    return np.ascontiguousarray(blocks.transpose(4, 5, 0, 2, 1, 3))


def _unsigned(chain: Chain) -> Chain:
    """Return a chain with filters of uint8 that computes the same."""
    flip = 128 if chain.dtype_of_filters == "int8" else 0
    convs = (replace(conv, filter_zero_point=conv.filter_zero_point + flip) for conv in chain.conv)
    return replace(chain, filter_dtype=None, conv=tuple(convs))


def _is_plain(conv: Conv2d) -> bool:
    """Tell whether a conv has nothing but a kernel, a filter's zero point and a requantisation to zero point 0."""
    stated = Conv2d(
        out_channels=conv.out_channels,
        kernel=conv.kernel,
        filter_zero_point=conv.filter_zero_point,
        requantize=conv.requantize,
    )
    how = conv.requantize
    return conv == stated and how is not None and how.zero_point == 0 and not how.vectors and how.rounding != "even"


def _conv(hl: Halide, axes: _Axes, chain: Chain, index: int, source: Halide, filter: Halide) -> _Conv:
    """Return the algorithm of one conv."""
    conv, channels, number = chain.conv[index], chain.shapes[index][3], index + 1
    k, x, y = axes.k, axes.x, axes.y
    rows, columns = conv.kernel
    sums, made = hl.Func(f"sums{number}"), hl.Func(f"made{number}")
    channel_sums, windows = hl.Func(f"channel_sums{number}"), hl.Func(f"windows{number}")
    channel = hl.RDom([(0, channels)], f"channel{number}")
    taps = hl.RDom([(0, columns), (0, rows)], f"taps{number}")
    r = hl.RDom([(0, WORD), (0, channels // WORD), (0, columns), (0, rows)], f"r{number}")
    if conv.filter_zero_point:
        channel_sums[x, y] = hl.i32(0)
        channel_sums[x, y] += hl.i32(source[channel.x, x, y])
        windows[x, y] = hl.i32(0)
        windows[x, y] += channel_sums[x + taps.x, y + taps.y]
        sums[k, x, y] = hl.i32(-conv.filter_zero_point) * windows[x, y]
    else:
        sums[k, x, y] = hl.i32(0)
    weight = filter[r.x, k % BLOCK, r.y, k // BLOCK, r.z, r.w]
    sums[k, x, y] += hl.i32(weight) * hl.i32(source[r.x + WORD * r.y, x + r.z, y + r.w])
    made[k, x, y] = requantized(hl, sums[k, x, y], conv.requantize)
    return _Conv(made, sums, r, channel_sums, channel, windows, taps)


def _schedule(hl: Halide, axes: _Axes, chain: Chain, schedule: Schedule, first: _Conv, second: _Conv) -> None:
    """Schedule both convs in tiles, the first inside of the loop over the second's rows."""
    tail = hl.TailStrategy
    xo, yo = hl.Var("xo"), hl.Var("yo")
    made = zip((first, second), schedule.tiles, chain.conv, (tail.RoundUp, tail.ShiftInwards), strict=True)
    for conv, (columns, rows), spec, strategy in made:
        _tile_output(conv.made, axes, (xo, yo), (columns, rows), spec.out_channels, strategy)
    _, height, width, _ = chain.shapes[-1]
    second.made.bound(axes.x, 0, width).bound(axes.y, 0, height)
    row = yo if schedule.tiles[1][1] > 1 else axes.y
    if schedule.rolls:
        first.made.store_root().compute_at(second.made, row).fold_storage(axes.y, schedule.rolls)
    else:
        first.made.compute_at(second.made, row)
    for conv, channels, spec in zip((first, second), schedule.channels, chain.conv, strict=True):
        _tile_sums(hl, axes, conv, xo, channels, spec.out_channels)
        if spec.filter_zero_point:
            _windows(hl, axes, conv, second, row, spec)


def _tile_output(
    made: Halide, axes: _Axes, outer: tuple[Halide, Halide], tile: tuple[int, int], channels: int, tail: Halide
) -> None:
    """Schedule the output in rows of tiles; a tile is written pixel by pixel, all channels of a pixel together."""
    (k, x, y), (xo, yo), (columns, rows) = (axes.k, axes.x, axes.y), outer, tile
    made.bound(k, 0, channels).split(x, xo, x, columns, tail)
    if rows > 1:
        made.split(y, yo, y, rows).reorder(k, x, y, xo, yo).unroll(y)
    else:
        made.reorder(k, x, xo, y)
    made.vectorize(k, channels).unroll(x)


def _tile_sums(hl: Halide, axes: _Axes, conv: _Conv, tile: Halide, channels: int, out_channels: int) -> None:
    """Keep the sums of a tile in registers, and reduce some channels in each step."""
    k, x, y, r = axes.k, axes.x, axes.y, conv.axes
    ko, outer, inner, tail = hl.Var("ko"), hl.RVar("outer"), hl.RVar("inner"), hl.TailStrategy.RoundUp
    conv.sums.compute_at(conv.made, tile).store_in(hl.MemoryType.Stack).bound_extent(k, out_channels)
    conv.sums.split(k, ko, k, BLOCK, tail).reorder(k, ko, x, y).vectorize(k).unroll(ko).unroll(x).unroll(y)
    update = conv.sums.update()
    update.split(k, ko, k, BLOCK, tail).split(r.y, outer, inner, channels // WORD)
    update.reorder(r.x, k, ko, x, y, inner, outer, r.z, r.w)
    update.atomic().vectorize(r.x).vectorize(k).unroll(ko).unroll(x).unroll(y).unroll(inner)


def _windows(hl: Halide, axes: _Axes, conv: _Conv, last: _Conv, row: Halide, spec: Conv2d) -> None:
    """Sum windows over channels, for some pixels together: of the input before all else, of the intermediate by row."""
    x, xi, tail = axes.x, hl.Var("xi"), hl.TailStrategy.RoundUp
    channels, taps = conv.channel_axis.x, conv.window_axes
    update = conv.channel_sums.update()
    update.split(x, x, xi, PIXELS, tail).reorder(channels, xi, x, axes.y).atomic().vectorize(channels).vectorize(xi)
    if conv is last:
        conv.channel_sums.compute_at(last.made, row)
    else:
        conv.channel_sums.compute_root()
    conv.channel_sums.vectorize(x, BLOCK, tail)
    if spec.kernel != (1, 1):
        conv.windows.compute_at(conv.made, axes.y).vectorize(x, BLOCK, tail)
        conv.windows.update().vectorize(x, BLOCK, tail).unroll(taps.x).unroll(taps.y)
