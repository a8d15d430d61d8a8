"""Operators in HVX and in plain C give numpy's bytes: drawn shapes, scales, layouts, addresses, threads.

Bytes beside a result are never written. What is computed in integers is proven when a network is built; here it runs.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.network.answer import result_of
from hexconv.network.code_functions import codes_by_byte
from hexconv.network.compiled import IN_PLAIN_C, operators_object
from hexconv.network.element_moves import LINE_SHIFTS, LOOKED_UP, ON_LINE, PRODUCT_SHIFT, change_of, woven_view
from hexconv.network.integer_form import DOWN, UP, VECTOR_BYTES, gathered, spread
from hexconv.network.operator_table import OPERATORS, form_of
from hexconv.network.pools import mean_form
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    Along,
    Dimension,
    Extents,
    Filters,
    Held,
    How,
    Operand,
    Operation,
    Port,
    Powers,
    Program,
    View,
    Window,
)
from hexconv.network.simplified import simplified
from hexconv.network.strands import GATHERS, HALF_TABLE, PLAIN, SPREADS, WHOLE_TABLE, Strand
from hexconv.network.views import Placed, loops
from reports import operators
from reports.operators import Drawn, codes_of, program_of, run_operations
from tests.draws import JUDGED, drawn

TOGETHER, MOST_ELEMENTS = 40, 20_000


class Draw:
    """Draws operations with what they read."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def below(self, most: int) -> int:
        """A whole number from 1 on, small ones as often as large ones."""
        return int(np.exp(self.random.uniform(0, np.log(most + 1))))

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def extents(self) -> Extents:
        while True:
            found = (int(self.random.integers(1, 3)), self.below(40), self.below(40), self.below(400))
            if np.prod(found) <= MOST_ELEMENTS:
                return found

    def dtype(self) -> str:
        return str(self.random.choice(["uint8", "int8"]))

    def operand(self, name: str, extents: Extents, layout: str = NHWC) -> Operand:
        """Codes of any scale, some of them powers of two, at which many results lie half way between two codes."""
        dtype = self.dtype()
        scale = 2.0 ** self.random.integers(-8, -2) if self.chance(0.2) else np.exp(self.random.uniform(-6, -1.5))
        zero = int(self.random.integers(0, 256)) - (128 if dtype == "int8" else 0)
        return Operand(name, extents, dtype, layout, float(np.float32(scale)), zero)

    def result(self, extents: Extents, layout: str = NHWC) -> Operand:
        made = self.operand("result", extents, layout)
        ends = {"low": 0.0} if self.chance(0.3) else {}
        ends |= {"high": float(self.random.uniform(0.5, 6))} if self.chance(0.2) else {}
        return Operand(**{**vars(made), **ends})

    def drawn(
        self, operator: str, sources: list[Operand], result: Operand, *how: How, **constants: np.ndarray
    ) -> Drawn:
        """Their codes, at an address that is aligned to elements alone."""
        wide = max(np.dtype(operand.dtype).itemsize for operand in (*sources, result))
        shift = int(self.random.integers(0, 128)) // wide * wide if self.chance(0.5) else 0
        arrays = {source.buffer: codes_of(self.random, source) for source in sources if source.buffer not in constants}
        return Drawn(Operation(operator, operator, tuple(sources), result, how), arrays, constants, shift)


def of_two(draw: Draw) -> Drawn:
    extents = draw.extents()
    operator = str(draw.random.choice(["add", "add", "subtract", "multiply"]))
    sources = [draw.operand("one", extents), draw.operand("other", extents)]
    return draw.drawn(operator, sources, draw.result(extents))


def of_halves(draw: Draw) -> Drawn:
    """Sums of which many lie half way between two codes: steps of the result are twice those of an operand or both."""
    made = of_two(draw).operation
    one, other = made.sources
    if draw.chance(0.5):
        one = replace(one, scale=other.scale * 2.0 ** int(draw.random.integers(-2, 3)))
    result = replace(made.result, scale=2 * other.scale)
    return draw.drawn("add", [one, other], result)


def of_reals(draw: Draw) -> Drawn:
    """Codes and floats, some repeated along axes, in each layout."""
    extents, layout = draw.extents(), str(draw.random.choice([NHWC, NCHW]))
    if draw.chance(0.2):  # rows for each thread
        extents, layout = (1, 1 + draw.below(12), 1 + draw.below(12), 512), NHWC
    operator = str(draw.random.choice(["add", "subtract", "multiply", "divide"]))
    sources, repeated = [], draw.random.integers(0, 8, 4)  # of 0 and 1, by the one or the other
    for number, name in enumerate(("one", "other")):
        batch, rows, columns, channels = (
            1 if at == number else size for at, size in zip(repeated, extents, strict=True)
        )
        own = batch, rows, columns, channels
        codes = draw.operand(name, own, layout)
        sources.append(codes if draw.chance(0.5) else Operand(name, own, "float32", layout))
    result = draw.result(extents, layout)
    plain = Operand("result", extents, "float32", layout, low=result.low, high=result.high)
    drawn = draw.drawn(operator, sources, plain if draw.chance(0.5) else result)
    if operator == "divide" and not sources[1].is_float:  # no code may stand for 0
        codes = drawn.arrays["other"]
        other = np.where(codes == sources[1].zero_point, codes ^ codes.dtype.type(1), codes)
        return replace(drawn, arrays={**drawn.arrays, "other": other})
    return drawn


def products(draw: Draw) -> Drawn:
    """A matrix product, or a transposed conv whose windows lie side by side."""
    inputs, outputs, is_matrix = draw.below(300), draw.below(200 if draw.chance(0.7) else 8), draw.chance(0.5)
    window = (1, 1) if is_matrix else (int(draw.random.integers(1, 4)), int(draw.random.integers(1, 4)))
    extents = (
        (draw.below(5), 1, 1, inputs)
        if is_matrix
        else (
            draw.below(2),
            draw.below(7 if draw.chance(0.7) else 40),
            draw.below(9 if draw.chance(0.7) else 70),
            inputs,
        )
    )
    one = draw.operand("one", extents)
    made = draw.operand("result", (extents[0], extents[1] * window[0], extents[2] * window[1], outputs))
    scales = np.exp(draw.random.uniform(-9, -4, outputs if draw.chance(0.5) else 1)).astype(np.float32)
    spread = one.scale * float(scales.mean()) * 74 * 74 * np.sqrt(inputs) / draw.random.uniform(5, 200)
    made = replace(made, scale=float(np.float32(spread)))
    weights = draw.random.integers(-128, 128, (outputs, *window, inputs)).astype(np.int8)
    bias = draw.random.integers(-20000, 20000, outputs).astype(np.int32)
    how = Filters("weights", "int8", "scales", scales.size, weights.shape, sums_bias="bias" if draw.chance(0.7) else "")
    slides = [] if is_matrix else [Window(window, window, (1, 1), (0, 0, 0, 0))]
    operator = "matmul" if is_matrix else "conv_transpose"
    drawn = draw.drawn(operator, [one], made, how, *slides)
    return Drawn(drawn.operation, drawn.arrays, {"weights": weights, "scales": scales, "bias": bias}, drawn.shift_bytes)


def of_gates(draw: Draw) -> Drawn:
    extents = draw.extents()
    gates = draw.operand("other", (int(draw.random.choice([1, extents[0]])), 1, 1, extents[3]))
    sources = [draw.operand("one", extents), gates]
    return draw.drawn(str(draw.random.choice(["add", "multiply"])), sources, draw.result(extents))


def of_constants(draw: Draw) -> Drawn:
    """A number, or one for each channel, pixel, row or element; before the codes or behind them."""
    extents = draw.extents()
    parts = (0.2, 0.2, 0.7) if draw.chance(0.5) else (0, 0, 0.7)
    own = (1, *(size if draw.chance(part) else 1 for size, part in zip(extents[1:], parts, strict=True)))
    other = draw.random.normal(0, 1, own).round(int(draw.random.integers(1, 9))).astype(np.float32)
    sources = [draw.operand("one", extents), Operand("other", (1, own[1], own[2], own[3]), "float32")]
    operator = str(draw.random.choice(["add", "multiply", "subtract"]))
    return draw.drawn(operator, sources[:: 1 if draw.chance(0.5) else -1], draw.result(extents), other=other)


WINDOWS = ((2, 2), (3, 1), (3, 2), (5, 1))
"""Rows and columns of a pool's window, and its steps."""


def pool(operator: str) -> Callable[[Draw], Drawn]:
    def of(draw: Draw) -> Drawn:
        while True:
            extents = draw.extents()
            kernel, stride, dilation = (tuple(map(int, draw.random.integers(1, most, 2))) for most in (5, 4, 3))
            if draw.chance(0.5):  # such as networks have
                size, step = WINDOWS[int(draw.random.integers(len(WINDOWS)))]
                kernel, stride, dilation = (size, size), (step, step), (1, 1)
                if draw.chance(0.5):  # rows of some vectors, which have a power of two of pixels each
                    channels = 1 << int(draw.random.integers(0, 8))
                    extents = (extents[0], draw.below(12), int(draw.random.integers(1, 1 + 1600 // channels)), channels)
            padding = tuple(int(draw.random.integers(0, kernel[at % 2])) for at in range(4))
            reach = [(size - 1) * apart + 1 for size, apart in zip(kernel, dilation, strict=True)]
            room = [extents[1 + at] + padding[at] + padding[2 + at] - reach[at] for at in (0, 1)]
            if min(room) < 0:
                continue
            rows, columns = (left // step + 1 for left, step in zip(room, stride, strict=True))
            window = Window(kernel, stride, dilation, padding, draw.chance(0.5))  # pyright: ignore[reportArgumentType]
            if not window.sees_nothing(extents, (extents[0], rows, columns, extents[3])):
                break
        one, result = draw.operand("one", extents), draw.result((extents[0], rows, columns, extents[3]))
        if draw.chance(0.3):  # of a window of an even number of elements, many means lie half way between two codes
            result = replace(result, dtype=one.dtype, scale=one.scale, zero_point=one.zero_point)
        if draw.chance(0.1):
            one = Operand("one", extents, "float32", str(draw.random.choice([NHWC, NCHW])))
            result = replace(result, dtype="float32", scale=1.0, zero_point=0) if draw.chance(0.5) else result
        return draw.drawn(operator, [one], result, window)

    return of


def of_images(draw: Draw) -> Drawn:
    extents = draw.extents()
    result = draw.result((extents[0], 1, 1, extents[3]))
    return draw.drawn("global_average_pool", [draw.operand("one", extents)], result)


def of_sums(draw: Draw) -> Drawn:
    """Means of sums that are held within two ends, if any; many lie half way between two codes, where steps agree."""
    extents, agree = draw.extents(), draw.chance(0.4)
    if agree:
        rows, columns = (2 ** int(draw.random.integers(0, 3)) for _ in range(2))
        extents = (extents[0], rows, columns, extents[3])
    operands = [draw.operand("one", extents), draw.operand("other", extents)]
    result = draw.result((extents[0], 1, 1, extents[3]))
    if agree:
        operands[1] = replace(operands[1], scale=operands[0].scale)
        result = replace(result, scale=float(np.float32(operands[0].scale) * 2.0 ** draw.random.integers(0, 3)))
    reach = 100 * max(each.scale for each in operands)
    low, high = np.sort(draw.random.uniform(-reach, reach, 2)).astype(np.float32).tolist()
    held = Held(draw.random.choice([-np.inf, 0.0, low]), max(draw.random.choice([np.inf, high]), 0.0))
    if draw.chance(0.1):  # an end beyond all sums, which then is what each of them is
        far = float(np.float32(reach * draw.random.uniform(3, 9)))
        held = Held(far, np.inf) if draw.chance(0.5) else Held(-np.inf, -far)
    return draw.drawn("average_of_sum", operands, result, held)


def quantised(draw: Draw) -> Drawn:
    """Floats of which many lie half way between two codes, or the least bit beside; of any size, and infinite."""
    extents, layout = draw.extents(), str(draw.random.choice([NHWC, NCHW]))
    result = draw.result(extents, layout)
    made = draw.drawn("convert", [Operand("one", extents, "float32", layout)], result)
    halves = (draw.random.integers(-300, 300, extents) + 0.5).astype(np.float32) * np.float32(result.scale)
    beside = (halves.view(np.int32) + draw.random.integers(-3, 4, extents, dtype=np.int32)).view(np.float32)
    far = draw.random.integers(0, 2**32, extents, np.uint32).view(np.float32)
    far = np.where(np.isnan(far), np.copysign(np.float32(np.inf), far), far)
    near = made.arrays["one"] * np.float32(60 * result.scale)
    reals = np.choose(draw.random.integers(0, 10, extents) // 3, [halves, beside, near, far])
    return Drawn(made.operation, {"one": reals.astype(np.float32)}, {}, made.shift_bytes)


def dequantised(draw: Draw) -> Drawn:
    extents = draw.extents()
    low = 0.0 if draw.chance(0.3) else -np.inf
    return draw.drawn("convert", [draw.operand("one", extents)], Operand("result", extents, "float32", low=low))


def requantised(draw: Draw) -> Drawn:
    extents = draw.extents()
    return draw.drawn("convert", [draw.operand("one", extents)], draw.result(extents))


def moved(draw: Draw) -> Drawn:
    extents, dtype = draw.extents(), draw.dtype()
    layouts = [NHWC, NCHW] if draw.chance(0.5) else [NCHW, NHWC]
    one, result = (
        Operand(name, extents, dtype, layout) for name, layout in zip(("one", "result"), layouts, strict=True)
    )
    return draw.drawn("convert", [one], result)


def viewed(draw: Draw) -> Drawn:
    """Transposed, parted and cut axes; some places by a table, some elements filled."""
    extents, random = draw.extents(), draw.random
    source = draw.operand("one", extents, str(random.choice([NHWC, NCHW])))
    shape = (extents[0], extents[3], *extents[1:3])
    read = Placed.of(source, shape)
    if draw.chance(0.5):
        read = read.moved(read.places.transpose(random.permutation(4).tolist()))
    if draw.chance(0.5):
        axis = int(random.integers(4))
        cuts = [slice(None)] * 4
        cuts[axis] = slice(int(random.integers(read.places.shape[axis])), None, int(random.choice([1, 1, 2])))
        read = read.moved(read.places[tuple(cuts)])
    parts = next(part for part in (4, 3, 2, 1) if read.places.shape[1] % part == 0)
    batch, channels, rows, columns = read.places.shape
    parted = read.reshaped((batch, parts, channels // parts, rows, columns))
    pads = random.integers(0, 3, 4) if draw.chance(0.3) else [0] * 4
    padded = [size + 2 * int(pad) for size, pad in zip(read.places.shape, pads, strict=True)]
    result = Operand(
        "result", (padded[0], padded[2], padded[3], padded[1]), source.dtype, NHWC, source.scale, source.zero_point
    )
    written = Placed.of(result, tuple(padded))
    inside = tuple(slice(int(pad), int(pad) + size) for pad, size in zip(pads, read.places.shape, strict=True))
    written = written.moved(written.places[inside])
    if parted and draw.chance(0.5) and (target := written.reshaped((batch, channels // parts, parts, rows, columns))):
        read, written = parted.moved(parted.places.transpose(0, 2, 1, 3, 4)), target
    if draw.chance(0.3):
        result = replace(draw.result(result.extents), buffer="result")
    constants, tables, at = {}, {}, int(random.integers(read.places.ndim))
    if draw.chance(0.3):
        turns = random.integers(0, read.places.shape[at], read.places.shape[at])
        constants, tables = {"places": (turns * read.places.strides[at]).astype(np.int32)}, {at: "places"}
    how = View(loops(read, written, tables), read.first, written.first, 0.25 if any(pads) else None)
    made = draw.drawn("view", [source], result, how)
    return Drawn(made.operation, made.arrays, constants, made.shift_bytes)


def rearranged(draw: Draw) -> Drawn:
    """Small axes in another order, some elements repeated: shuffled channels, depth to space, resized images."""
    random = draw.random
    sizes = [draw.below(40) for _ in range(int(random.integers(2, 5)))]
    while np.prod(sizes) > MOST_ELEMENTS:
        sizes.pop()
    repeats = [int(random.integers(2, 5)) if draw.chance(0.2) else 1 for _ in sizes]
    source = draw.operand("one", (1, 1, 1, int(np.prod(sizes))))
    steps = [int(np.prod(sizes[at + 1 :])) for at in range(len(sizes))]
    order = random.permutation(len(sizes)) if draw.chance(0.8) else np.arange(len(sizes))
    axes = [axis for at in order for axis in ((sizes[at], steps[at]), (repeats[at], 0))]
    made = int(np.prod([size for size, _ in axes]))
    dimensions, left = [], made
    for size, step in axes:
        left //= size
        dimensions += [Dimension(size, step, left)] if size > 1 else []
    result = replace(draw.result((1, 1, 1, made)) if draw.chance(0.3) else source, extents=(1, 1, 1, made))
    how = View(tuple(dimensions) or (Dimension(1, 0, 0),))
    return draw.drawn("view", [source], replace(result, buffer="result"), how)


def softened(draw: Draw) -> Drawn:
    """Lines along any axis, of which some lie side by side; also such that are as long as a sum of powers allows."""
    extents, axis = list(draw.extents()), int(draw.random.integers(4))
    while extents[axis] > 300:
        extents[axis] //= 2
    layout = NCHW if draw.chance(0.5) else NHWC
    if draw.chance(0.3):  # lines alone
        extents, axis, layout = [1, 1, draw.below(3), draw.below(9000)], 3, NHWC
    batch, rows, columns, channels = extents
    source, result = (draw.operand(name, (batch, rows, columns, channels), layout) for name in ("source", "result"))
    result = replace(
        result, scale=float(np.float32(draw.random.choice([1 / 256, 1 / 255, 1 / 128, 0.003, 0.02, 1e-4])))
    )
    powers = np.exp(-np.arange(256) * np.float64(np.float32(source.scale))).astype(np.float32)
    if draw.chance(0.2):  # all shares of some lines lie half way between two codes
        result = replace(result, scale=float(np.float32(2 / 3 / extents[axis])))
        drawn = draw.drawn("softmax", [source], result, Powers("powers", axis), powers=powers)
        is_even = draw.random.random([1 if at == axis else size for at, size in enumerate(extents)]) < 0.5
        return replace(
            drawn, arrays={"source": np.where(is_even, drawn.arrays["source"].dtype.type(7), drawn.arrays["source"])}
        )
    return draw.drawn("softmax", [source], result, Powers("powers", axis), powers=powers)


def concatenated(draw: Draw) -> Drawn:
    extents, axis = list(draw.extents()), int(draw.random.integers(4))
    sources = []
    many = draw.chance(0.25)
    for number in range(int(draw.random.integers(5, 70) if many else draw.random.integers(1, 5))):
        extents[axis] = draw.below(12 if many else 80)
        like = sources[0] if sources and draw.chance(0.5) else draw.operand("like", (1, 1, 1, 1))
        sources.append(replace(like, buffer=f"source{number}", extents=tuple(extents)))
    extents[axis] = sum(source.extents[axis] for source in sources)
    result = replace(sources[0] if draw.chance(0.5) else draw.result((1, 1, 1, 1)), buffer="result")
    return draw.drawn("concat", sources, replace(result, extents=tuple(extents)), Along(axis))


def of_equal_channels(draw: Draw) -> Drawn:
    """Two or three tensors side by side, of as many channels each: a power of two."""
    extents = (1, draw.below(20), draw.below(20), 2 ** int(draw.random.integers(10)))
    sources = [draw.operand(f"source{number}", extents) for number in range(int(draw.random.integers(2, 4)))]
    steps = max(source.scale for source in sources) * draw.random.uniform(1, 1.5)
    result = replace(draw.operand("result", (*extents[:3], len(sources) * extents[3])), scale=float(np.float32(steps)))
    if draw.chance(0.5):
        sources[-1] = replace(result, buffer=sources[-1].buffer, extents=extents)
    return draw.drawn("concat", sources, result, Along(3))


def of_blocks(draw: Draw) -> Drawn:
    """Blocks of some bytes side by side, a part of each, or each twice: all vectors lie as before after some of them.

    Nearly all at addresses of vectors, at which a network's library has code for such orders alone.
    """
    size, count = 2 ** int(draw.random.integers(1, 8)), int(draw.random.integers(1, 5))
    blocks = [size * int(draw.random.integers(1, 4)) for _ in range(count)]
    every = sum(blocks)
    pixels = 1 + int(draw.random.integers(0, max(40_000 // every, 1)))
    if draw.chance(0.5):
        like = [draw.operand(f"source{at}", (1, 1, pixels, each)) for at, each in enumerate(blocks)]
        result = replace(draw.operand("result", (1, 1, pixels, every)), scale=max(each.scale for each in like))
        same = [
            replace(result, buffer=each.buffer, extents=each.extents) if draw.chance(0.4) else each for each in like
        ]
        made = draw.drawn("concat", same, result, Along(3))
    else:
        rows, times = int(draw.random.integers(1, 5)), int(draw.random.integers(1, 4))
        pixels = max(pixels // rows // times, 1)
        own, first = (blocks[-1], every - blocks[-1]) if draw.chance(0.5) else (every, 0)
        row = pixels * times * own
        nest = ((rows, pixels * every, row * times), (times, 0, row), (pixels, every, times * own), (times, 0, own))
        loops = tuple(Dimension(*loop) for loop in (*nest, (own, 1, 1)) if loop[0] > 1)
        source = draw.operand("source", (1, rows, pixels, every))
        result = replace(source, buffer="result", extents=(1, rows * times, pixels * times, own))
        made = draw.drawn("view", [source], result, View(loops or (Dimension(1, 1, 1),), first))
    return replace(made, shift_bytes=0) if draw.chance(0.8) else made


def repeated(draw: Draw) -> Drawn:
    """Nearest pixels: each is written several times, and so is each row."""
    rows, columns, channels = draw.below(8), draw.below(14), draw.below(300)
    down, along = (int(draw.random.integers(1, 9)) for _ in range(2))
    row = columns * along * channels
    nest = ((rows, columns * channels, down * row), (down, 0, row), (columns, channels, along * channels))
    loops = (*nest, (along, 0, channels), (channels, 1, 1))
    source = draw.operand("source", (1, rows, columns, channels))
    result = replace(source, buffer="result", extents=(1, rows * down, columns * along, channels))
    return draw.drawn("view", [source], result, View(tuple(Dimension(*loop) for loop in loops)))


def shuffled(draw: Draw) -> Drawn:
    """Channels of groups, in each pixel by turns."""
    pixels, groups, channels = draw.below(60), int(draw.random.integers(2, 17)), draw.below(300)
    every = groups * channels
    loops = (Dimension(pixels, every, every), Dimension(channels, 1, groups), Dimension(groups, channels, 1))
    source = draw.operand("source", (1, 1, pixels, every))
    return draw.drawn("view", [source], replace(source, buffer="result"), View(loops))


KINDS = (
    viewed,
    repeated,
    shuffled,
    rearranged,
    concatenated,
    of_blocks,
    of_equal_channels,
    softened,
    products,
    of_halves,
    of_two,
    of_reals,
    of_gates,
    of_constants,
    pool("max_pool"),
    pool("average_pool"),
    of_images,
    of_sums,
    quantised,
    dequantised,
    requantised,
    moved,
)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of windows in the padding alone
@drawn(50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 1, 3]))
def test_an_operator_in_hvx_is_its_definition(seed: int, threads: int) -> None:
    draw = Draw(seed)
    drawn = [KINDS[int(draw.random.integers(len(KINDS)))](draw) for _ in range(TOGETHER)]
    for each, found in zip(drawn, run_operations(drawn, threads), strict=True):
        for way in found:
            assert (way.differing, way.overrun) == (0, 0), each.operation


@pytest.mark.filterwarnings("ignore:overflow encountered")
@JUDGED
@given(st.integers(0, 2**32 - 1), st.sampled_from(["uint8", "int8"]), st.sampled_from([1, 1, 3]))
def test_operators_compiled_for_one_network_alone_are_their_definitions(seed: int, dtype: str, threads: int) -> None:
    """What its codes, forms, sums, windows, products and turned matrices don't need is left out.

    Orders of bytes have code of their own.
    """
    draw = Draw(seed)
    groups = [(of_two, of_halves), (pool("max_pool"),), (pool("max_pool"), products), (moved, requantised), KINDS]
    groups += [(of_blocks, repeated, rearranged)] * 3
    kinds = groups[int(draw.random.integers(len(groups)))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "dtype", lambda: dtype)
        found = [kinds[int(draw.random.integers(len(kinds)))](draw) for _ in range(int(draw.random.integers(1, 8)))]
        ways = [way for each in run_operations(found, threads, alone=True) for way in each]
    assert all(way.differing == way.overrun == 0 for way in ways), [each.operation for each in found]


def test_a_network_of_one_sum_has_the_code_of_that_sum_alone() -> None:
    draw = Draw(7)
    one, more = program_of([of_two(draw)]), program_of([of_two(draw) for _ in range(TOGETHER)])
    assert len(operators_object(operators.ISA, one)) < len(operators_object(operators.ISA, more))


def test_strands_between_each_other_write_nothing_of_another() -> None:
    """Rows of two images by turns: what a vector has behind a row of the one is a row of the other."""
    loops = (Dimension(80, 7680, 7680), Dimension(2, 48, 3840), Dimension(80, 96, 48), Dimension(48, 1, 1))
    found = woven_view(View(loops), {}, 614400)
    assert found is not None
    assert all(strand.size == VECTOR_BYTES for strand in found.strands)


@given(st.integers(0, 2**32 - 1))
def test_strands_are_the_view(seed: int) -> None:
    """Each byte of the result is of the source's place that the loops say, by the definition of each way."""
    draw = Draw(seed)
    drawn = (viewed, rearranged, shuffled, repeated)[int(draw.random.integers(4))](draw)
    [how], elements = drawn.operation.how, int(np.prod(drawn.operation.result.extents))
    assert isinstance(how, View)
    if (found := woven_view(how, drawn.constants, elements)) is None:
        return
    places, made = np.zeros(1, np.int64) + how.source_first, np.zeros(1, np.int64) + how.result_first
    for loop in how.dimensions:
        turns = drawn.constants[loop.places] if loop.places else np.arange(loop.size) * loop.source_step
        places = np.add.outer(places, turns).reshape(-1)
        made = np.add.outer(made, np.arange(loop.size) * loop.result_step).reshape(-1)
    wanted = np.empty(elements, np.int64)
    wanted[made] = places
    written = np.full(elements + VECTOR_BYTES, -1)
    for strand in found.strands:
        vectors = [*vectors_of(strand)]
        last = vectors[-1][0] + strand.size
        for at, sources in vectors:  # what a vector has behind its own bytes, a next one writes over
            end = min(at + VECTOR_BYTES, last) if strand.loops[1].step == strand.size else at + strand.size
            written[at:end] = sources[: end - at]
    own = written[:elements] >= 0
    assert np.array_equal(written[:elements][own], wanted[own])
    again = [loop for loop in how.dimensions if loop.source_step == 0 and not loop.places]
    assert own.all() or again, "only what a loop makes again is left to it"


@given(st.integers(0, 2**32 - 1))
def test_views_within_blocks_are_one_view(seed: int) -> None:
    """Which makes the same bytes; one that crosses blocks, or whose source others read, stays apart."""
    random = np.random.default_rng(seed)
    outer, one, two, three = (int(each) for each in random.integers(1, 5, 4))
    block, elements = two * three, outer * one * two * three
    first = View(
        (
            Dimension(outer, one * block, one * block),
            Dimension(one, three, block),
            Dimension(two, one * three, three),
            Dimension(three, 1, 1),
        )
    )
    size = block if random.random() < 0.7 or one % 2 else 2 * block
    second = View((Dimension(elements // size, size, size), Dimension(size, 0, 1, "order")))
    operands = [Operand(name, (1, 1, 1, elements), "uint8") for name in "abc"]
    steps = tuple(
        Operation("view", "view", (source,), result, (how,))
        for source, result, how in zip(operands, operands[1:], (first, second), strict=False)
    )
    order = {"order": random.integers(0, size, size).astype(np.int32)}
    is_read = random.random() < 0.2
    ports = [Port(each.buffer, (elements,), each) for each in (operands if is_read else operands[::2])]
    found = simplified(Program(steps, (ports[0],), tuple(ports[1:]), order))
    stored, made = ({"a": np.arange(elements).astype(np.uint8).reshape(operands[0].extents)} for _ in range(2))
    for step in steps:
        stored[step.result.buffer] = result_of(step, stored, order)
    for step in found.steps:
        made[step.result.buffer] = result_of(step, made, found.constants)
    assert np.array_equal(stored["c"], made["c"])
    assert len(found.steps) == 2 or not is_read
    assert len(found.steps) == 1 or is_read or size != block or size == 1


def vectors_of(strand: Strand) -> Iterator[tuple[int, np.ndarray]]:
    """Where each vector of a strand lies, and the places of the source that its lanes have; -1 where it has none."""
    outer, inner = strand.loops
    for turn, more in product(range(outer.turns), range(inner.turns)):
        lanes = np.full(VECTOR_BYTES, -1)
        for piece in strand.pieces:
            step = (outer.steps or (0,))[0] * turn + inner.steps[0] * more
            window = np.arange(VECTOR_BYTES) + piece.first + step
            if strand.way in (HALF_TABLE, WHOLE_TABLE):
                index = piece.control[piece.lanes].astype(np.int64)
                moved = np.full(VECTOR_BYTES, -1)
                moved[piece.lanes] = window[index % 64 * 2 + index // 64]
            else:
                distances = {PLAIN: (), SPREADS: DOWN, GATHERS: UP}[strand.way]
                moved = exchanged(window, piece.control, distances)
            lanes[piece.lanes] = moved[piece.lanes]
        yield strand.to + outer.step * turn + inner.step * more, lanes


@given(st.integers(0, 2**32 - 1))
def test_most_sums_have_a_form(seed: int) -> None:
    """But for scales at which results lie half way between two codes."""
    draw = Draw(seed)
    scales = np.exp(draw.random.uniform(-5, -2, 3))
    operands = [
        Operand(name, (1, 1, 1, 1), "uint8", NHWC, float(np.float32(scale)), 7)
        for name, scale in zip("abc", scales, strict=True)
    ]
    assert form_of(Operation("add", "add", tuple(operands[:2]), operands[2]), {}) is not None


@given(st.integers(0, 2**32 - 1))
def test_codes_that_change_by_a_scale_lie_on_a_line(seed: int) -> None:
    """By integers alone, which meet all 256 codes; most that a finer scale makes smaller have such a line."""
    random, found = np.random.default_rng(seed), 0
    for _ in range(20):
        dtypes = random.choice(["uint8", "int8"], 2)
        scales = np.exp(random.uniform(-6, -1, 2))
        source, result = (
            Operand(name, (1, 1, 1, 1), dtype, NHWC, float(scale), int(random.integers(256)) - 128 * (dtype == "int8"))
            for name, dtype, scale in zip("ab", dtypes, sorted(scales), strict=True)
        )
        table = codes_by_byte(source, result)
        for shift in LINE_SHIFTS:
            change = change_of(source, result, shift)
            if change.kind == LOOKED_UP:
                continue
            line = change.line
            made = ((np.arange(256) ^ line.flip) * line.multiplier >> PRODUCT_SHIFT) + line.constant
            assert np.array_equal((np.clip(made, 0, 65535) >> shift).clip(0, 255) ^ line.sign, table)
            assert 0 <= line.multiplier < 2**16
            assert abs(line.constant) < 2**16
            found += change.kind == ON_LINE
            break
    assert found >= 15


CLOSE, POINT = 56, 20
"""Of means in fixed point: how near the middle between two codes the definition decides, and bits behind the point."""


@given(st.integers(0, 2**32 - 1))
def test_means_of_images_are_codes_in_fixed_point(seed: int) -> None:
    """Whatever their scales: all sums that don't lie near the middle between two codes become the definition's."""
    draw = Draw(seed)
    count, dtypes = draw.below(2000), draw.random.choice(["uint8", "int8"], 2)
    scales = np.exp(draw.random.uniform(-6, -1, 2)).astype(np.float32)
    source, result = (
        Operand(name, (1, 1, 1, 1), dtype, NHWC, float(scale), int(draw.random.integers(256)) - 128 * (dtype == "int8"))
        for name, dtype, scale in zip("ab", dtypes, scales, strict=True)
    )
    form = mean_form(source, result, count)
    left = int(np.frombuffer(form, np.int32, 1, 20)[0])
    factor, offset, least, most, lowest, highest = (int(each) for each in np.frombuffer(form, np.int32, 6, 32))
    thresholds = np.frombuffer(form, np.int32, 257, 56)
    assert factor != 0
    sums = np.arange(count * 255 + 1, dtype=np.int64)
    above = np.clip(sums, lowest, highest) - lowest << left
    steps = (above * factor >> 31) + offset + CLOSE
    assert max(above.max(), np.abs(steps).max()) < 2**31
    is_near = (steps & ((1 << POINT) - 1)) < 2 * CLOSE
    wanted = np.searchsorted(thresholds[:256], sums, side="right") - 1
    assert np.array_equal(np.clip(steps >> POINT, least, most)[~is_near], wanted[~is_near])


@given(st.integers(0, 2**32 - 1))
def test_products_have_a_form(seed: int) -> None:
    """However far their sums reach in steps of the result."""
    drawn = products(Draw(seed))
    assert form_of(drawn.operation, drawn.constants) is not None


@given(st.integers(0, 2**32 - 1))
def test_weights_of_outputs_that_are_not_there_take_no_bytes(seed: int) -> None:
    """But for those up to eight, and one vector behind the last word."""
    drawn = products(Draw(seed))
    form, filters = form_of(drawn.operation, drawn.constants), drawn.constants["weights"]
    outputs, words = filters.size // filters.shape[-1], -(-filters.shape[-1] // 4)
    numbers = 2 * VECTOR_BYTES + 4 * 4 * (-(-outputs // 128) * 128)
    assert form is not None
    assert 0 <= len(form) - numbers - 4 * words * (-(-outputs // 8) * 8) <= VECTOR_BYTES - 32


def test_bytes_of_pixels_go_apart_and_back() -> None:
    """The network of exchanges, by its definition, moves each byte to where its pixel takes a power of two."""
    given_bytes = np.arange(128)
    for count in range(1, 129):
        power = 1 << (count - 1).bit_length()
        wanted = given_bytes[: 128 // power * count]
        apart = exchanged(given_bytes, spread(count), (64, 32, 16, 8, 4, 2, 1))
        assert np.array_equal(apart.reshape(-1, power)[:, :count].reshape(-1), wanted)
        assert np.array_equal(exchanged(apart, gathered(count), (1, 2, 4, 8, 16, 32, 64))[: len(wanted)], wanted)


def exchanged(values: np.ndarray, control: np.ndarray, distances: tuple[int, ...]) -> np.ndarray:
    places = np.arange(128)
    for distance in distances:
        values = np.where(control & distance, values[places ^ distance], values)
    return values


def test_each_operator_in_hvx_can_be_compiled_without_the_others() -> None:
    text = (resources.files("hexconv.network") / "operators" / "hexconv_hvx.c").read_text()
    numbers = dict(re.findall(r"HEXCONV_USE_(\w+) = 1 << (\d+),", text))
    chosen = re.findall(r"if \(HEXCONV_USED & HEXCONV_USE_(\w+)\) operators\.(\w+) = (\w+);", text)
    assert len(set(numbers.values())) == len(numbers)
    assert {name.upper(): name for name in OPERATORS if name not in IN_PLAIN_C} == dict(each[:2] for each in chosen)
    assert all(field == function for _, field, function in chosen)
    assert set(numbers) == {number for number, _, _ in chosen}


def test_a_sum_of_which_float32_sends_ties_either_way_has_a_form() -> None:
    """Both operands of one scale, the result of twice as large a one: no parity says what ties become."""
    one, other, made = (
        Operand(name, (1, 5, 5, 24), "uint8", NHWC, 1.1756565570831299, 125) for name in ("one", "other", "result")
    )
    drawn = Draw(0).drawn("add", [one, other], replace(made, scale=2 * one.scale))
    [(_, found)] = run_operations([drawn])
    assert form_of(drawn.operation, {}) is not None
    assert (found.differing, found.overrun) == (0, 0)
