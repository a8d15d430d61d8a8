"""A depthwise 3x3 conv of stride 1 in Halide: all pixels and channels of a row are one axis, and its elements lanes.

words[t, l, y]  = pixel t of the three around element l
    sums[l, y]      = bias
    sums[l, y]     += filter * words, over words and rows of taps
    made[l, y]      = requantised sums

Four taps of a lane, of which the last has weight zero, are a word, so that Halide finds `vrmpy` of two vectors.
Filters come as [tap row][pixel and channel][4 taps], the same for all pixels: no lane is empty, however many channels
there are.
"""

from pathlib import Path

import numpy as np

from hexconv.errors import Unsupported
from hexconv.run.measurement import Array
from hexconv.run.tensors import Tensors
from hexconv.spec import Chain
from reports.halide.shared import (
    BLOCK,
    VECTOR_BYTES,
    WORD,
    Depthwise,
    Halide,
    compile_object,
    is_depthwise,
    module,
    requantized,
)

TAPS = 3


def check(chain: Chain) -> None:
    """One depthwise 3x3 conv of stride 1 whose rows are whole vectors.

    Raises:
        Unsupported: the chain is any other.
    """
    _, _, width, channels = chain.input
    if not is_depthwise(chain, 1) or width * channels % VECTOR_BYTES:
        raise Unsupported(
            "the bench has a Halide schedule for one depthwise 3x3 conv of stride 1 and padding 1 of a uint8 image "
            "with int8 filters, a bias and zero points 0, in rows of whole vectors; it measures no other one"
        )


def inputs(chain: Chain, tensors: Tensors) -> list[Array]:
    """Return the image in rows, the filter for every element of a row, and the biases likewise."""
    _, height, width, channels = chain.input
    words = np.zeros((TAPS, channels, WORD), np.int8)
    words[:, :, :TAPS] = tensors.filters[0][:, 0].transpose(1, 0, 2)
    bias = tensors.biases[0]
    assert bias is not None
    image = tensors.image[0].reshape(height, width * channels)
    return [image, np.tile(words, (1, width, 1)), np.tile(bias.astype(np.int32), width)]


def build(chain: Chain, schedule: Depthwise, name: str, path: Path) -> None:
    """Compile a chain to an object file with one function `name(input, filter, bias, output)`.

    Raises:
        ToolMissing: Halide isn't installed.
        Unsupported: this schedule doesn't serve the chain.
    """
    check(chain)
    hl, (_, height, width, channels) = module(), chain.input
    row = width * channels
    image, filter = hl.ImageParam(hl.UInt(8), 2, "input"), hl.ImageParam(hl.Int(8), 3, "filter")
    bias = hl.ImageParam(hl.Int(32), 1, "bias")
    lane, y, t = hl.Var("l"), hl.Var("y"), hl.Var("t")
    taps = hl.RDom([(0, WORD), (0, TAPS)], "taps")
    words, sums, made = hl.Func("words"), hl.Func("sums"), hl.Func("made")
    around = hl.BoundaryConditions.constant_exterior(image, hl.u8(0), [(0, row), (0, height)])
    words[t, lane, y] = around[lane + channels * (hl.min(t, TAPS - 1) - 1), y]
    sums[lane, y] = bias[lane]
    sums[lane, y] += hl.i32(words[taps.x, lane, y + taps.y - 1]) * hl.i32(filter[taps.x, lane, taps.y])
    made[lane, y] = requantized(hl, sums[lane, y], chain.conv[0].requantize)
    made.bound(lane, 0, row).bound(y, 0, height)
    _schedule(hl, schedule, (lane, y, t), taps, (words, sums, made))
    inputs = [(image, (row, height)), (filter, (WORD, row, TAPS)), (bias, (row,))]
    compile_object(hl, (made, (row, height)), inputs, name, path)


def _schedule(
    hl: Halide, schedule: Depthwise, axes: tuple[Halide, ...], taps: Halide, funcs: tuple[Halide, ...]
) -> None:
    """Compute some rows of 128 lanes together, from words that are made for them in registers."""
    (lane, y, t), (words, sums, made) = axes, funcs
    lo, yo, block = hl.Var("lo"), hl.Var("yo"), hl.Var("block")
    made.split(lane, lo, lane, VECTOR_BYTES).split(y, yo, y, schedule.rows).vectorize(lane)
    made.reorder(lane, y, yo, lo).unroll(y)
    sums.compute_at(made, yo).store_in(hl.MemoryType.Stack)
    sums.split(lane, block, lane, BLOCK).vectorize(lane).unroll(block).unroll(y)
    update = sums.update()
    update.split(lane, block, lane, BLOCK).reorder(taps.x, lane, block, y, taps.y).atomic().vectorize(taps.x).vectorize(
        lane
    )
    update.unroll(block).unroll(y).unroll(taps.y)
    words.compute_at(made, yo).store_in(hl.MemoryType.Stack).bound(t, 0, WORD).align_storage(lane, VECTOR_BYTES)
    words.reorder(t, lane, y).unroll(t).vectorize(lane, VECTOR_BYTES).unroll(y)
