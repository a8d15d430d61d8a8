"""A depthwise 3x3 conv of stride 2 in Halide: two rows of the output, all pixels and channels, are one axis of lanes.

words[t, i, v, r, j] = pixel t of the three around lane i of vector v, in row r of three
    sums[i, v, j]        = bias
    sums[i, v, j]       += filter * words, over words and rows of taps
    made[i, v, j]        = requantised sums

Two rows of the output, together j, are whole vectors of 128. The lanes of a vector belong to two pixels at most, and
the words of each of them stand together in a row of the input: so a vector of pixels is chosen from two that are
loaded. Filters come as [vector][tap row][lane][4 taps]; the last tap has weight zero, and so has the tap to the left of
a row.
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
    Halide,
    Strided,
    compile_object,
    is_depthwise,
    module,
    requantized,
)

TAPS, ROWS = 3, 2


def check(chain: Chain) -> None:
    """One depthwise 3x3 conv of stride 2, of pairs of rows that are whole vectors, with 128 to 255 channels.

    Raises:
        Unsupported: the chain is any other.
    """
    _, height, width, channels = chain.input
    whole = height % (2 * ROWS) == 0 and width % 2 == 0 and width * channels % VECTOR_BYTES == 0
    if not (is_depthwise(chain, 2) and whole and VECTOR_BYTES <= channels < 256):
        raise Unsupported(
            "the bench has a Halide schedule for one depthwise 3x3 conv of stride 2 and padding 1 of a uint8 image "
            "with int8 filters, a bias, zero points 0 and 128 to 255 channels, in pairs of rows of whole vectors; it "
            "measures no other one"
        )


def inputs(chain: Chain, tensors: Tensors) -> list[Array]:
    """Return the image as one row, the filter for every lane of two rows, and the biases likewise."""
    _, _, width, channels = chain.input
    words = np.zeros((width, channels, TAPS, WORD), np.int8)
    words[..., :TAPS] = tensors.filters[0][:, 0]
    words[:: width // ROWS, :, :, 0] = 0
    bias = tensors.biases[0]
    assert bias is not None
    filter = words.reshape(-1, VECTOR_BYTES, TAPS, WORD).swapaxes(1, 2)
    biases = np.tile(bias.astype(np.int32), width).reshape(-1, VECTOR_BYTES)
    return [tensors.image[0].reshape(-1), np.ascontiguousarray(filter), biases]


def build(chain: Chain, schedule: Strided, name: str, path: Path) -> None:
    """Compile a chain to an object file with one function `name(input, filter, bias, output)`.

    Raises:
        ToolMissing: Halide isn't installed.
        Unsupported: this schedule doesn't serve the chain.
    """
    check(chain)
    hl, (_, height, width, channels) = module(), chain.input
    vectors, pairs = width * channels // VECTOR_BYTES, height // (2 * ROWS)
    image, filter = hl.ImageParam(hl.UInt(8), 1, "input"), hl.ImageParam(hl.Int(8), 4, "filter")
    bias = hl.ImageParam(hl.Int(32), 2, "bias")
    i, v, j, t, r = (hl.Var(name) for name in "ivjtr")
    taps = hl.RDom([(0, WORD), (0, TAPS)], "taps")
    words, sums, made = hl.Func("words"), hl.Func("sums"), hl.Func("made")
    words[t, i, v, r, j] = _pixels(hl, chain, image, (t, i, v, r, j))
    sums[i, v, j] = bias[i, v]
    sums[i, v, j] += hl.i32(words[taps.x, i, v, taps.y, j]) * hl.i32(filter[taps.x, i, taps.y, v])
    made[i, v, j] = requantized(hl, sums[i, v, j], chain.conv[0].requantize)
    made.bound(i, 0, VECTOR_BYTES).bound(v, 0, vectors).bound(j, 0, pairs)
    _schedule(hl, schedule, (i, v, j, t, r), taps, (words, sums, made))
    weights = [(filter, (WORD, VECTOR_BYTES, TAPS, vectors)), (bias, (VECTOR_BYTES, vectors))]
    inputs = [(image, (height * width * channels,)), *weights]
    compile_object(hl, (made, (VECTOR_BYTES, vectors, pairs)), inputs, name, path)


def _pixels(hl: Halide, chain: Chain, image: Halide, axes: tuple[Halide, ...]) -> Halide:
    """Return the elements of the input that the lanes of a vector need: of its first pixel, and of the next one.

    Addresses are kept within the image; what is read elsewhere meets weights of zero, or is the row above the image.
    """
    (t, i, v, r, j), (_, height, width, channels) = axes, chain.input
    size, across = height * width * channels, width // 2
    first = VECTOR_BYTES * v // channels

    def of(pixel: Halide, top: bool) -> Halide:
        row = 2 * (ROWS * j + pixel // across) + r - 1
        column = 2 * (pixel % across) + hl.min(t, TAPS - 1) - 1
        start = (row * width + column) * channels + VECTOR_BYTES * v - channels * pixel
        found = image[hl.clamp(start, 0, size - VECTOR_BYTES) + i]
        return hl.select(row >= 0, found, hl.u8(0)) if top else found

    def either(top: bool) -> Halide:
        begins = hl.min(channels * (first + 1) - VECTOR_BYTES * v, VECTOR_BYTES)
        following = hl.min(first + 1, ROWS * across - 1)
        return hl.select(hl.u8(i) < hl.u8(begins), of(first, top), of(following, top))

    return hl.select(hl.likely(2 * ROWS * j + r >= 1), either(False), either(True))


def _schedule(hl: Halide, schedule: Strided, axes: tuple[Halide, ...], taps: Halide, funcs: tuple[Halide, ...]) -> None:
    """Compute a vector in some pairs of rows together, down the image, from words that are made in registers."""
    (i, v, j, t, r), (words, sums, made) = axes, funcs
    jo, block = hl.Var("jo"), hl.Var("block")
    made.split(j, jo, j, schedule.pairs).reorder(i, j, jo, v).vectorize(i).unroll(j)
    sums.compute_at(made, jo).store_in(hl.MemoryType.Stack)
    sums.split(i, block, i, BLOCK).vectorize(i).unroll(block).unroll(j)
    update = sums.update()
    update.split(i, block, i, BLOCK).reorder(taps.x, i, block, j, v, taps.y).atomic().vectorize(taps.x).vectorize(i)
    update.unroll(block).unroll(j).unroll(taps.y)
    words.compute_at(made, jo).store_in(hl.MemoryType.Stack).bound(t, 0, WORD)
    words.reorder(t, i, v, r, j).unroll(t).vectorize(i).unroll(r).unroll(j)
