"""Operators on windows and images: maxima, means, means of sums; thresholds and multipliers proven by definition.

before:  average_pool(a): float32 of a sum of codes, a division by their count, and one by the scale
 after:  (sum * 1398101 + 4194304) >> 23, equal for all sums of so many codes

before:  add(a, b) -> floats, average_pool(floats) -> codes        after:  average_of_sum(a, b) -> codes
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import frexp, prod

import numpy as np

from hexconv.model.contributed import DOMAIN
from hexconv.model.geometry import sides, window
from hexconv.model.graph import Node
from hexconv.model.refused import Refused
from hexconv.network.code_functions import convert_form
from hexconv.network.elements import Operator, Stored, exact_values, mean_of, real_values, stored_as
from hexconv.network.integer_form import (
    HEADER_BYTES,
    MEAN,
    MEAN_OF_SUM,
    MEANS,
    TABLE,
    UP,
    VECTOR_BYTES,
    all_codes,
    grid,
    header,
    laid_table,
    numbers_of,
    routed,
    turned_bit,
    zero_of,
)
from hexconv.network.pairs import ADD, PAIRS
from hexconv.network.program import (
    Reading,
    Table,
    check_channels,
    scale_names,
    three,
    whole_numbers,
)
from hexconv.network.program_steps import (
    NHWC,
    Constants,
    Held,
    Operand,
    Operation,
    Step,
    Window,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, SOFTEST


def _read_reduce_mean(reading: Reading, node: Node) -> None:
    shape = reading.shape(node.inputs[0])
    axes = sorted(axis % len(shape) for axis in whole_numbers(reading, node, 1, "axes") or range(len(shape)))
    if len(shape) != 4 or axes != [2, 3]:
        raise Refused(f"it averages axes {axes} of {len(shape)}; it averages rows and columns of NCHW here")
    reading.add("global_average_pool", node, [reading.source(node.inputs[0])], reading.result(node.outputs[0]))


def _read_max_pool(reading: Reading, node: Node) -> None:
    if any(node.outputs[1:]):
        raise Refused("it also returns the indices of its maxima; export it without them")
    _add_pool(reading, "max_pool", node, reading.source(node.inputs[0]), reading.result(node.outputs[0]))


def _read_average_pool(reading: Reading, node: Node) -> None:
    _add_pool(reading, "average_pool", node, reading.source(node.inputs[0]), reading.result(node.outputs[0]))


def _read_quantised_average_pool(reading: Reading, node: Node) -> None:
    check_channels(node)
    result = reading.quantised(node.outputs[0], *scale_names(node, 3))
    _add_pool(reading, "average_pool", node, reading.dequantised(*three(node)), result, is_whole=True)


def _add_pool(
    reading: Reading, operator: str, node: Node, source: Operand, result: Operand, is_whole: bool = False
) -> None:
    """Add a pool; where `is_whole`, what ceil_mode cuts of its last windows counts as padding, as in ONNX Runtime's."""
    stated = window(node.attributes, len(reading.shape(node.inputs[0])) - 2)
    kernel, strides, dilations = stated["kernel_shape"], stated["strides"], stated["dilations"]
    if not len(kernel) == len(strides) == len(dilations) == 2:
        raise Refused(f"its window is {list(kernel)}; a pool has a window of rows and columns here")
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    counts = bool(stated.get("count_include_pad", 0))
    padding = sides(stated, source.extents, reach)
    starts = [(count - 1) * step for count, step in zip(result.extents[1:3], strides, strict=True)]
    if any(start >= size + first for start, size, first in zip(starts, source.extents[1:3], padding, strict=False)):
        raise Refused(
            "its last window starts behind the image: ONNX's shapes have that window, ONNX Runtime's don't; export it "
            "with ceil_mode = 0"
        )
    if is_whole and counts:
        placed = zip(starts, reach, source.extents[1:3], padding, strict=False)
        bottom, right = (start + far - size - first for start, far, size, first in placed)
        padding = (*padding[:2], max(padding[2], bottom), max(padding[3], right))
    how = Window(tuple(kernel), tuple(strides), tuple(dilations), padding, counts)
    if how.sees_nothing(source.extents, result.extents):
        raise Refused("one of its windows lies in its padding alone, of which ONNX has no value; export it with less")
    reading.add(operator, node, [source], result, how)


def _read_global_average_pool(reading: Reading, node: Node) -> None:
    reading.add("global_average_pool", node, [reading.source(node.inputs[0])], reading.result(node.outputs[0]))


def _read_quantised_global_average_pool(reading: Reading, node: Node) -> None:
    check_channels(node)
    result = reading.quantised(node.outputs[0], *scale_names(node, 3))
    reading.add("global_average_pool", node, [reading.dequantised(*three(node))], result)


def _under(values: Array, window: Window, made: Operand, outside: float) -> list[Array]:
    """For each tap of a window, the elements under it, `outside` in the padding: arrays [N, H, W, C] of the result."""
    _, rows, columns, _ = made.extents
    height, width = values.shape[1:3]
    found = []
    for row, column in product(*map(range, window.kernel)):
        y = np.arange(rows) * window.stride[0] + row * window.dilation[0] - window.padding[0]
        x = np.arange(columns) * window.stride[1] + column * window.dilation[1] - window.padding[1]
        there = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))[None, :]
        taken = values[:, np.clip(y, 0, height - 1)][:, :, np.clip(x, 0, width - 1)]
        found.append(np.where(there[None, :, :, None], taken, outside))
    return found


def _largest(step: Operation, seen: list[Array], _: Stored) -> Array:
    window = step.told(Window)
    least = float(np.finfo(np.float32).min)
    return np.maximum.reduce(_under(real_values(seen[0], step.sources[0]), window, step.result, least))


def _mean(step: Operation, seen: list[Array], _: Stored) -> Array:
    window = step.told(Window)
    source = step.sources[0]
    total = np.sum(_under(exact_values(seen[0], source), window, step.result, 0), 0)
    top, left, bottom, right = window.padding if window.counts_padding else (0, 0, 0, 0)
    inside = np.ones((1, source.extents[1] + top + bottom, source.extents[2] + left + right, 1))
    own = window if not window.counts_padding else Window(window.kernel, window.stride, window.dilation, (0, 0, 0, 0))
    count = np.sum(_under(inside, own, step.result, 0), 0)
    return mean_of(total, source, count)


def _mean_of_all(step: Operation, seen: list[Array], _: Stored) -> Array:
    source = step.sources[0]
    exact = exact_values(seen[0], source)
    pixels = [exact[:, y, x] for y, x in product(range(exact.shape[1]), range(exact.shape[2]))]
    total = sum(pixels[1:], pixels[0])
    return mean_of(total[:, None, None], source, len(pixels))


def _max_pool_form(step: Operation, constants: Constants) -> bytes | None:
    """The table of codes, as of a conversion: a larger code stands for a larger number; how places come together."""
    [source] = step.sources
    if not is_codes(source) or not is_codes(step.result):
        return None
    at = replace(source, extents=(1, 1, 1, 1), layout="NHWC")
    table = convert_form(replace(step, sources=(at,), result=replace(step.result, layout="NHWC")), constants)
    if table is None:
        return None
    channels, step_bytes = source.extents[3], step.told(Window).stride[1] * source.extents[3]
    together = (VECTOR_BYTES - channels) // step_bytes + 1 if step_bytes > channels <= VECTOR_BYTES else 0
    place, byte = (each.reshape(-1) for each in np.divmod(np.arange(together * channels), channels))
    gathers = routed(place * step_bytes + byte, place * channels + byte, UP) if together > 1 else None
    if gathers is None:
        together, gathers = 0, np.zeros(VECTOR_BYTES, np.uint8)
    return header(TABLE, together) + table[HEADER_BYTES:] + gathers.tobytes()


def _global_average_pool_form(step: Operation, _: Constants) -> bytes | None:
    [source], result = step.sources, step.result
    count = prod(source.extents[1:3])
    if not is_codes(source) or not is_codes(result) or count * (CODES - 1) >= 2**31:
        return None
    return mean_form(source, result, count)


def mean_form(source: Operand, result: Operand, count: int) -> bytes:
    """The form of means of `count` codes: the least sum for each code, found by bisection over the definition."""
    whole = count * (CODES - 1)

    def codes_of(sums: Array) -> Array:
        total = sums - count * zero_of(source)
        return numbers_of(stored_as(mean_of(total, source, count), result), result)

    wanted = np.arange(CODES)
    low, high = (
        np.full(CODES, -1, np.int64),
        np.full(CODES, whole + 1, np.int64),
    )  # codes of `low` are less, of `high` not
    while np.any(high - low > 1):
        middle = (low + high) // 2
        reaches = (codes_of(np.clip(middle, 0, whole)) >= wanted) & (middle >= 0)
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    thresholds = np.append(np.where(high > whole, 2**31 - 1, high), 2**31 - 1)
    thresholds[0] = -(2**31)
    slope = float(np.float32(source.scale)) / float(np.float32(result.scale)) / count
    shift = min(30 - frexp(slope)[1], 40)
    multiplier = round(slope * 2.0**shift)
    constant = ((2 * zero_of(result) + 1) << shift >> 1) - count * zero_of(source) * multiplier
    if shift < 1 or multiplier >= 2**31:
        shift, multiplier, constant = 1, 0, 0
    least, most = codes_of(np.array([0, whole]))
    lowest, highest = (int(thresholds[least + 1]) - 1, int(thresholds[most])) if least < most else (0, 0)
    left = 31 - max(highest - lowest, 1).bit_length()
    factor = round(slope * 2.0 ** (51 - left))
    offset = round((zero_of(result) + 0.5 - (count * zero_of(source) - lowest) * slope) * 2**20)
    is_fixed = factor < 2**31 and abs(offset) < 2**29
    numbers = (MEAN, shift, turned_bit(source), turned_bit(result), multiplier, left)
    fixed = (factor, offset, least, most, lowest, highest) if is_fixed else (0,) * 6
    words = (np.array(numbers, np.int32), np.int64(constant), np.array(fixed, np.int32))
    return b"".join(each.tobytes() for each in words) + thresholds.astype(np.int32).tobytes()


MOST_ELEMENTS = 128
"""Of a window: so many codes add up to 15 bits."""


def _average_pool_form(step: Operation, _: Constants) -> bytes | None:
    """For each number of elements that a window may have, how a sum of codes becomes the mean's code."""
    [source], result, window = step.sources, step.result, step.told(Window)
    if not is_codes(source) or not is_codes(result) or prod(window.kernel) > MOST_ELEMENTS:
        return None
    counts = {one * other for one, other in product(*(range(1, size + 1) for size in window.kernel))}
    means, ends = b"", set[tuple[int, int]]()
    for count in sorted(counts, reverse=True):
        sums = np.arange(count * (CODES - 1) + 1, dtype=np.int64)
        total = sums - count * zero_of(source)
        codes = numbers_of(stored_as(mean_of(total, source, count), result), result)
        slope = float(np.float32(source.scale)) / float(np.float32(result.scale)) / count
        exact = _exact_mean(codes, slope)
        reach = slope * sums[-1] + zero_of(source) * slope * count + 2 * CODES
        shift = min(30 - frexp(reach)[1], 30 - frexp(slope)[1])
        if shift < 10:
            return None
        multiplier = round(slope * 2**shift)
        more = (zero_of(result) + 0.5 + 2**-8) * 2**shift
        constant = int(more) - count * zero_of(source) * multiplier
        guessed = np.clip((sums * multiplier + constant) >> shift, codes.min(), codes.max())
        if np.any((guessed != codes) & (guessed != codes + 1)):
            return None
        thresholds = np.searchsorted(codes, np.arange(CODES)).astype(np.uint16)
        ends.add((int(codes.min()), int(codes.max())))
        low, high = (laid_table(each).tobytes() for each in (thresholds & 0xFF, thresholds >> 8))
        means += header(count, *(exact or (multiplier, constant, shift))) + low + high
    if len(ends) > 1:
        return None
    return header(MEANS, turned_bit(source), turned_bit(result), *ends.pop(), len(counts)) + means


MOST_SHIFT, MOST_FRACTION, NEAR_MULTIPLIERS = 15, 7, 4


def _exact_mean(codes: Array, slope: float) -> tuple[int, ...] | None:
    """Multiplier, constant, shift, 1, bits behind the point, and whether halves go to the even code, of which parity.

    They give the code of each sum, after it is cut to the ends of all codes; None where none were found.
    """
    sums = np.arange(len(codes), dtype=np.int64)
    reach = max(slope * len(codes), float(CODES)) * 2
    whole = min(30 - frexp(reach)[1] + 1, MOST_SHIFT + MOST_FRACTION)
    shift = min(whole, MOST_SHIFT)
    fraction, nearest = whole - shift, round(slope * 2.0**whole)
    if shift < 1 or not 0 < nearest < 2**30:
        return None
    for rounds_even, turned in ((0, 0), (1, 0), (1, 1)):
        if rounds_even and not fraction:
            continue
        numbers = np.arange(CODES + 1, dtype=np.int64)
        first = (numbers << fraction) - rounds_even * ((numbers ^ turned ^ 1) & 1)  # of each code, before the shift
        for multiplier in sorted(range(max(nearest - NEAR_MULTIPLIERS, 1), nearest + NEAR_MULTIPLIERS + 1)):
            low = (first[codes] << shift) - sums * multiplier
            high = (first[codes + 1] << shift) - 1 - sums * multiplier
            least, most = low[codes > codes.min()], high[codes < codes.max()]
            constants = least.max(initial=-(2**30)), most.min(initial=2**30)
            if constants[0] > constants[1]:
                continue
            constant = int(constants[0] + constants[1]) // 2
            if abs(constant) + int(sums[-1]) * multiplier < 2**31:
                return multiplier, constant, shift, 1, fraction, rounds_even, turned
    return None


def _terms_of_window(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return prod(step.told(Window).kernel), sum(sizes)


def _terms_of_image(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return prod(step.sources[0].extents[1:3]), sum(sizes)


def rest_of_maxima(larger: Step, smaller: Step) -> Operation | None:
    """The maxima of windows out of those of smaller ones of the same codes; None where they are not made of these.

    >>> source = Operand("x", (1, 13, 13, 192), "uint8")
    >>> windows = (Window((k, k), (1, 1), (1, 1), (k // 2,) * 4) for k in (5, 9))
    >>> five, nine = (
    ...     Operation("max_pool", "", (source,), replace(source, buffer=name), (how,))
    ...     for name, how in zip(("five", "nine"), windows, strict=True)
    ... )
    >>> found = rest_of_maxima(nine, five)
    >>> found.sources[0].buffer, found.told(Window).kernel, found.told(Window).padding
    ('five', (5, 5), (2, 2, 2, 2))
    """
    if not isinstance(larger, Operation) or not isinstance(smaller, Operation) or larger.sources != smaller.sources:
        return None
    if (larger.operator, smaller.operator) != ("max_pool", "max_pool"):
        return None
    [source], made, (whole, part) = larger.sources, smaller.result, (each.told(Window) for each in (larger, smaller))
    is_dense = all((each.stride, each.dilation) == ((1, 1), (1, 1)) for each in (whole, part))
    if not is_dense or not is_codes(made) or not source.same_codes(made) or made.layout != source.layout:
        return None
    top, left, bottom, right = (a - b for a, b in zip(whole.padding, part.padding, strict=True))
    rows, columns = (a - b + 1 for a, b in zip(whole.kernel, part.kernel, strict=True))
    is_inside = all(0 <= each < size for each, size in ((top, rows), (bottom, rows), (left, columns), (right, columns)))
    if (rows, columns) == (1, 1) or not is_inside:
        return None
    how = Window((rows, columns), (1, 1), (1, 1), (top, left, bottom, right))
    return replace(larger, sources=(made,), how=(how,))


def sums_at_once(step: Operation, maker: Operation) -> Operation | None:
    """The step that averages sums of codes as they are made, where that has a form; None if these two do not.

    Args:
        step: what reads the sums.
        maker: what makes them.
    """
    windows = [(how.kernel, how.dilation, how.padding) for how in step.how if isinstance(how, Window)]
    is_image = windows == [(maker.result.extents[1:3], (1, 1), (0, 0, 0, 0))]
    is_mean = step.operator == "global_average_pool" or (step.operator == "average_pool" and is_image)
    placed = {(each.extents, each.layout) for each in (*maker.sources, maker.result, *step.sources)}
    if not is_mean or maker.operator != ADD or maker.result.dtype != "float32" or not is_codes(step.result):
        return None
    if placed != {(maker.result.extents, NHWC)} or not all(map(is_codes, maker.sources)):
        return None
    held = Held(maker.result.low, maker.result.high)
    joined = Operation("average_of_sum", step.node, maker.sources, step.result, (held,))
    return joined if _mean_of_sums_form(joined, {}) else None


def _mean_of_sums(step: Operation, seen: list[Array], _: Stored) -> Array:
    held, source = step.told(Held), step.sources[0]
    between = Operand("sums", source.extents, "float32", low=held.low, high=held.high)
    sums = stored_as(PAIRS[ADD](*map(real_values, seen, step.sources)), between).astype(np.float64)
    pixels = sums.reshape(sums.shape[0], -1, sums.shape[3])
    total = np.add.accumulate(pixels, 1)[:, -1]
    return mean_of(total[:, None, None], between, pixels.shape[1])


WORD_BITS, POINT, MOST_STEPS = 28, 20, 1 << 10
"""Of the largest word; behind the point of a code; codes that a sum may reach beyond the zero point."""
MOST_WORD = (1 << WORD_BITS + 1) - 1
"""The largest end of a word: four words together have 31 bits and a sign."""
TOGETHER, MOST_CLOSE = 4, 1 << 14
"""Words that are added up before some bits are cut off; steps, 2^20 from code to code, that a mean errs by."""


def _mean_of_sums_form(step: Operation, _: Constants) -> bytes | None:
    """Multipliers of both codes, the ends of a word, and how far their mean may lie from what float32 makes of it."""
    result, held, count = step.result, step.told(Held), prod(step.sources[0].extents[1:3])
    if not is_codes(result) or not all(map(is_codes, step.sources)):
        return None
    sizes = ((1, 1, CODES, 1), (1, 1, 1, CODES))
    pair = [grid(each, size, each.buffer) for each, size in zip(step.sources, sizes, strict=True)]
    seen = [all_codes(each).reshape(size) for each, size in zip(step.sources, sizes, strict=True)]
    made = Operand("sums", (1, 1, CODES, CODES), "float32", low=held.low, high=held.high)
    sums = stored_as(PAIRS[ADD](*map(real_values, seen, pair)), made)[0, 0].astype(np.float64)
    scale = float(np.float32(result.scale))
    slopes = [float(np.float32(each.scale)) / scale for each in step.sources]
    zeros = [zero_of(each) for each in step.sources]
    reach = max(sum(slope * abs(end - zero) for slope, zero in zip(slopes, zeros, strict=True)) for end in (0, 255))
    if not 0 < reach < MOST_STEPS:
        return None
    bits = min(WORD_BITS - int(np.ceil(np.log2(reach))), POINT)
    one, other = (round(slope * 2.0**bits) for slope in slopes)
    ends_of_words = np.rint(np.array([held.low, held.high]) / scale * 2.0**bits)
    low, high = np.clip(ends_of_words, -MOST_WORD, MOST_WORD).astype(int).tolist()
    constant = -one * zeros[0] - other * zeros[1]
    axis = np.arange(CODES, dtype=np.int64)
    words = np.clip(axis[:, None] * one + axis * other + constant, low, high)
    down = max(int(np.ceil(np.log2(count))) - 2, 0)
    most = int(max(abs(words.min()), abs(words.max()))) * count >> down
    left = 31 - (most + count).bit_length()
    factor = round(2.0 ** (POINT + down - bits - left + 31) / count)
    errors = float(np.abs(words * 2.0**-bits - sums / scale).max()) * 2.0**POINT
    cut = 2.0 ** (POINT + down - bits) * (1 / TOGETHER + 1 / count)
    close = int(np.ceil(errors + cut + reach * 2.0 ** (POINT - 22))) + 8  # a mean and a quotient are rounded to float32
    if left < 0 or not 0 < factor < 2**31 or close > MOST_CLOSE:
        return None
    ends = np.array([-1, 1], np.float32) * np.float32(scale) * SOFTEST
    least, last = numbers_of(stored_as(ends, grid(result, (1, 1, 1, 2), "ends")), result)
    offset = (zero_of(result) << POINT) + (1 << (POINT - 1))
    flips = [turned_bit(each) for each in step.sources]
    words_of_all = (one, other, constant, low, high, down, left, factor, offset, close)
    return header(MEAN_OF_SUM, *flips, turned_bit(result), int(least), int(last), *words_of_all)


def _terms_of_sums(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return 2 * prod(step.sources[0].extents[1:3]), sum(sizes)


OPERATORS = {
    "max_pool": Operator(_largest, _max_pool_form, _terms_of_window, selects=True),
    "average_pool": Operator(_mean, _average_pool_form, _terms_of_window),
    "global_average_pool": Operator(_mean_of_all, _global_average_pool_form, _terms_of_image),
    "average_of_sum": Operator(_mean_of_sums, _mean_of_sums_form, _terms_of_sums),
}
NODES: Table = {
    "ReduceMean": _read_reduce_mean,
    "MaxPool": _read_max_pool,
    "AveragePool": _read_average_pool,
    "GlobalAveragePool": _read_global_average_pool,
    f"{DOMAIN}.QLinearAveragePool": _read_quantised_average_pool,
    f"{DOMAIN}.QLinearGlobalAveragePool": _read_quantised_global_average_pool,
}
