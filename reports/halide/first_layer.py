"""The first conv of a ResNet in Halide: 7x7 of stride 2, 3 channels to 64, with output channels as lanes.

copies[b, p, y]  = the padded row, from its window p on: 0 or 1
    sums[l, x, y]    = offset - 128 * sum of the window
    sums[l, x, y]   += filter * copies, over words and rows of taps
    made[l, x, y]    = requantised sums

Two pixels of 64 channels are the 128 lanes l. A row of taps is 21 bytes that stand together, six words; with two copies
of each row every word is aligned, and Halide finds `vrmpy` with the word as a scalar. int8 filters are given to it as
uint8, 128 larger, as [tap row][word][k/32][32 k][4 bytes]. The input's zero point is taken off by
what is added to sums.
"""

from pathlib import Path

import numpy as np

from hexconv.errors import Unsupported
from hexconv.run.measurement import Array
from hexconv.run.tensors import Tensors
from hexconv.spec import Chain, Conv2d, Padding
from reports.halide.shared import (
    BLOCK,
    VECTOR_BYTES,
    WORD,
    FirstLayer,
    Halide,
    compile_object,
    module,
    narrows,
    requantized,
)

CHANNELS, TAPS, OUT_CHANNELS, PIXELS, STRIDE = 3, 7, 64, 2, 2
AROUND, WORDS, FLIP = TAPS // 2, 6, 128


def check(chain: Chain) -> None:
    """One 7x7 conv of stride 2 and padding 3, from 3 channels of uint8 to 64, with int8 filters and a bias.

    Raises:
        Unsupported: the chain is any other.
    """
    conv, how = chain.conv[0], chain.conv[0].requantize
    stated = Conv2d(
        out_channels=OUT_CHANNELS,
        kernel=(TAPS, TAPS),
        stride=(STRIDE, STRIDE),
        padding=Padding(top=AROUND, left=AROUND, bottom=AROUND, right=AROUND),
        bias=True,
        bias_limit=conv.bias_limit,
        filter_l1=conv.filter_l1,
        requantize=how,
    )
    typed = (chain.dtype, chain.dtype_of_filters, chain.input[0], chain.input[3]) == ("uint8", "int8", 1, CHANNELS)
    if not (typed and narrows(how) and chain.conv == (stated,) and all(extent % 4 == 0 for extent in chain.input[1:3])):
        raise Unsupported(
            "the bench has a Halide schedule for one 7x7 conv of stride 2 and padding 3 of a uint8 image of 3 channels "
            "with 64 int8 filters, a bias and an output with zero point 0; it measures no other first layer"
        )


def inputs(chain: Chain, tensors: Tensors) -> list[Array]:
    """Return the image in rows, the packed filter, and what is added to sums: bias less zero points."""
    (_, height, width, channels), filter, bias = chain.input, tensors.filters[0], tensors.biases[0]
    assert bias is not None
    flipped = (filter ^ np.int8(-FLIP)).view(np.uint8)
    taps = np.zeros((OUT_CHANNELS, TAPS, WORDS * WORD), np.uint8)
    taps[:, :, : TAPS * channels] = flipped.transpose(0, 2, 3, 1).reshape(*taps.shape[:2], -1)
    packed = taps.reshape(-1, BLOCK, taps.shape[1], taps.shape[2] // WORD, WORD).transpose(2, 3, 0, 1, 4)
    offsets = bias.astype(np.int64) - chain.zero_point * filter.sum(axis=(1, 2, 3), dtype=np.int64)
    image = tensors.image[0].reshape(height, width * channels)
    return [image, np.ascontiguousarray(packed), offsets.astype(np.int32)]


def build(chain: Chain, schedule: FirstLayer, name: str, path: Path) -> None:
    """Compile a chain to an object file with one function `name(input, filter, offset, output)`.

    Raises:
        ToolMissing: Halide isn't installed.
        Unsupported: this schedule doesn't serve the chain.
    """
    check(chain)
    hl, (_, height, width, channels) = module(), chain.input
    image, filter = hl.ImageParam(hl.UInt(8), 2, "input"), hl.ImageParam(hl.UInt(8), 5, "filter")
    offset = hl.ImageParam(hl.Int(32), 1, "offset")
    lane, x, y, b, p = (hl.Var(name) for name in "lxybp")
    r = hl.RDom([(0, WORD), (0, WORDS), (0, TAPS)], "r")
    around = hl.BoundaryConditions.constant_exterior(
        image, hl.u8(chain.zero_point), [(0, width * channels), (0, height)]
    )
    padded, copies, sums, made = hl.Func("padded"), hl.Func("copies"), hl.Func("sums"), hl.Func("made")
    padded[b, y] = around[b - AROUND * channels, y - AROUND]
    copies[b, p, y] = padded[b + STRIDE * channels * p, y]
    flipped = _windows(hl, padded, b, y)
    k, pixel, apart = lane % OUT_CHANNELS, lane // OUT_CHANNELS, PIXELS * STRIDE * channels
    sums[lane, x, y] = offset[k] + flipped[-1][apart * x + STRIDE * channels * pixel, y]
    taken = copies[apart * x + r.x + WORD * r.y, pixel, STRIDE * y + r.z]
    sums[lane, x, y] += hl.i32(filter[r.x, lane % BLOCK, k // BLOCK, r.y, r.z]) * hl.i32(taken)
    made[lane, x, y] = requantized(hl, sums[lane, x, y], chain.conv[0].requantize)
    out = (PIXELS * OUT_CHANNELS, width // STRIDE // PIXELS, height // STRIDE)
    for axis, extent in zip((lane, x, y), out, strict=True):
        made.bound(axis, 0, extent)
    _schedule(hl, schedule, (lane, x, y), r, (sums, made))
    _schedule_rows(hl, (b, p, y), padded, copies, flipped, made)
    weights = [(filter, (WORD, BLOCK, OUT_CHANNELS // BLOCK, WORDS, TAPS)), (offset, (OUT_CHANNELS,))]
    compile_object(hl, (made, out), [(image, (width * channels, height)), *weights], name, path)


def _windows(hl: Halide, padded: Halide, b: Halide, y: Halide) -> list[Halide]:
    """What makes -128 times the sum of each window, at its first byte: sums of columns, of pixels, of windows."""
    columns, pixels, windows = hl.Func("columns"), hl.Func("pixels"), hl.Func("windows")
    columns[b, y] = sum((hl.u16(padded[b, STRIDE * y + row]) for row in range(1, TAPS)), hl.u16(padded[b, STRIDE * y]))
    pixels[b, y] = sum((columns[b + byte, y] for byte in range(1, CHANNELS)), columns[b, y])
    window = sum((pixels[b + CHANNELS * tap, y] for tap in range(1, TAPS)), pixels[b, y])
    windows[b, y] = hl.i32(window) * -FLIP
    return [columns, pixels, windows]


def _schedule(
    hl: Halide, schedule: FirstLayer, axes: tuple[Halide, ...], r: Halide, funcs: tuple[Halide, Halide]
) -> None:
    """Keep the sums of a tile in registers, and reduce a row of taps in each step."""
    (lane, x, y), (sums, made), (columns, rows) = axes, funcs, schedule.tile
    xo, yo, block = hl.Var("xo"), hl.Var("yo"), hl.Var("block")
    made.split(x, xo, x, columns).split(y, yo, y, rows).reorder(lane, x, y, xo, yo).unroll(y)
    made.vectorize(lane, VECTOR_BYTES).unroll(x)
    sums.compute_at(made, xo).store_in(hl.MemoryType.Stack).bound_extent(lane, VECTOR_BYTES)
    sums.split(lane, block, lane, BLOCK).reorder(lane, block, x, y).vectorize(lane).unroll(block).unroll(x).unroll(y)
    update = sums.update()
    update.split(lane, block, lane, BLOCK).reorder(r.x, lane, block, x, y, r.y, r.z).atomic().vectorize(r.x).vectorize(
        lane
    )
    update.unroll(block).unroll(x).unroll(y).unroll(r.y)


def _schedule_rows(
    hl: Halide, axes: tuple[Halide, ...], padded: Halide, copies: Halide, windows: list[Halide], made: Halide
) -> None:
    """Make padded rows and their copies before all else, and sums of windows for each row of tiles."""
    (b, p, _), tail = axes, hl.TailStrategy.RoundUp
    copies.bound(p, 0, PIXELS).reorder(b, p, axes[2]).unroll(p)
    for rows in (padded, copies):
        rows.compute_root().vectorize(b, VECTOR_BYTES, tail).align_storage(b, VECTOR_BYTES)
    for sums in windows:
        sums.compute_at(made, hl.Var("yo")).vectorize(b, VECTOR_BYTES, tail).align_storage(b, VECTOR_BYTES)
