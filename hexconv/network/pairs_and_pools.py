"""Operators on two tensors, and on windows: sums, products, maxima, means; multipliers proven against the definition.

before:  add(a, b): float32 of both codes, their sum, a division, rounding half to even
 after:  clamp((a * 1547420 + b * 1902797 - 446056384) >> 20), equal for all 65,536 pairs

Pairs at which no multipliers give the code are mended one by one, where there are few. What has no form is left to
plain C.
"""

from collections.abc import Callable, Sequence
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
    CHANNELS,
    GATED,
    HEADER_BYTES,
    MEAN,
    MEANS,
    SUM,
    TABLE,
    all_codes,
    ends_of,
    every_byte,
    grid,
    header,
    laid_table,
    numbers_of,
    reals_form,
    scaled_form,
    turned_bit,
    zero_of,
)
from hexconv.network.program import (
    Reading,
    Table,
    check_channels,
    scale_names,
    three,
    whole_numbers,
)
from hexconv.network.program_steps import (
    Constants,
    Operand,
    Operation,
    Step,
    Window,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, MENDED, sum_form

ADD = "add"
"""The operator that an Add is between chains."""
PAIRS: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "divide": np.divide}


def _read_reduce_mean(reading: Reading, node: Node) -> None:
    shape = reading.shape(node.inputs[0])
    axes = sorted(axis % len(shape) for axis in whole_numbers(reading, node, 1, "axes") or range(len(shape)))
    if len(shape) != 4 or axes != [2, 3]:
        raise Refused(f"it averages axes {axes} of {len(shape)}; it averages rows and columns of NCHW here")
    reading.add("global_average_pool", node, [reading.source(node.inputs[0])], reading.result(node.outputs[0]))


def _pair_reader(operator: str) -> Callable[[Reading, Node], None]:
    """Make the reader of an operator on two tensors, each as large as the result or broadcast."""

    def read(reading: Reading, node: Node) -> None:
        rank = len(reading.shape(node.outputs[0]))
        sources = [reading.source(name, rank) for name in node.inputs]
        _add_pair(reading, operator, node, sources, reading.result(node.outputs[0]))

    return read


def _quantised_pair_reader(operator: str) -> Callable[[Reading, Node], None]:
    def read(reading: Reading, node: Node) -> None:
        rank = len(reading.shape(node.outputs[0]))
        sources = [reading.dequantised(*three(node, at), rank=rank) for at in (0, 3)]
        _add_pair(reading, operator, node, sources, reading.quantised(node.outputs[0], *scale_names(node, 6)))

    return read


def _add_pair(reading: Reading, operator: str, node: Node, sources: Sequence[Operand], result: Operand) -> None:
    if len(sources) != 2:
        raise Refused(f"it has {len(sources)} inputs; it takes two here")
    for source in sources:
        if any(size not in (1, whole) for size, whole in zip(source.extents, result.extents, strict=True)):
            raise Refused(f"its input of NHWC {source.extents} does not broadcast to {result.extents}")
    reading.add(operator, node, sources, result)


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


def _of_pair(step: Operation, seen: list[Array], _: Stored) -> Array:
    return PAIRS[step.operator](*map(real_values, seen, step.sources))


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


def _sum(step: Operation, codes: Array, flips: tuple[int, int], slopes: tuple[float, float]) -> bytes | None:
    """The form of a table of 256 by 256 numbers from 0 on that rises along both axes."""
    ends = ends_of(codes, step.result)
    found = sum_form(codes, slopes, ends)
    if found is None:
        return None
    pairs = np.array(found.mended, np.int64).reshape(-1, 3)
    row = _row_of(pairs) if len(pairs) > MENDED else None
    if len(pairs) > MENDED and row is None:
        return None
    axis, code = row or (0, 0)
    table = codes[code] if axis == 1 else codes[:, code]
    by_byte = table[np.arange(CODES) ^ flips[2 - axis if axis else 0]] ^ turned_bit(step.result)
    pairs = np.pad(pairs[: 0 if row else MENDED], ((0, 0), (0, 1)))
    sign = turned_bit(step.result)
    numbers = (SUM, found.one, found.other, found.constant, found.shift, *flips, sign, *ends, len(pairs))
    filled = np.concatenate([pairs, *[pairs[-1:]] * (MENDED - len(pairs))]) if len(pairs) else np.zeros((MENDED, 4))
    mended = np.array((*numbers, axis, code ^ flips[axis - 1] if row else 0), np.int32).tobytes()
    form = mended + filled.astype(np.uint8).tobytes()
    return form.ljust(HEADER_BYTES, b"\0") + laid_table(by_byte).tobytes()


def _row_of(pairs: Array) -> tuple[int, int] | None:
    """The axis, 1 or 2, and the number along which all pairs lie; None if there is none.

    Where the other operand stands for 0, all results may lie half way between two codes.
    """
    for axis in (0, 1):
        if len(np.unique(pairs[:, axis])) == 1:
            return axis + 1, int(pairs[0, axis])
    return None


def _pair_form(step: Operation, constants: Constants) -> bytes | None:
    """Sums and products: of two tensors, or of one and a number, or a number for each channel."""
    result = step.result
    whole = [at for at, source in enumerate(step.sources) if source.extents == result.extents and is_codes(source)]
    at = next((at for at in whole if step.sources[at].buffer not in constants), None)
    if at is None:
        return None
    other = step.sources[1 - at]
    if result.dtype == "float32" and other.buffer in constants and constants[other.buffer].size == 1:
        return _reals_of_one(step, at, constants[other.buffer])
    if not is_codes(result):
        return None
    if other.buffer in constants:
        return _of_constant(step, at, constants[other.buffer]) if other.extents[0] == 1 else None
    if other.extents == result.extents and is_codes(other):
        return _of_two_tensors(step)
    if other.extents[1:] != (1, 1, result.extents[3]) or not is_codes(other):
        return None
    rows = _rows_of_values(step, at, every_byte(other))
    return scaled_form(GATED, *rows, step.sources[at], result) if rows else None


def _reals_of_one(step: Operation, at: int, value: Array) -> bytes:
    """The float that each code and one number make."""
    source = grid(step.sources[at], (1, 1, 1, CODES), "source")
    number = grid(step.sources[1 - at], (1, 1, 1, 1), "number")
    sources, seen = [source, number], [every_byte(source).reshape(source.extents), value.reshape(1, 1, 1, 1)]
    order = slice(None, None, 1 if at == 0 else -1)
    made = _by_definition(step, tuple(sources[order]), grid(step.result, source.extents, "made"), seen[order])
    return reals_form(made.reshape(-1))


MOST_CONSTANTS = 1 << 16


def _of_constant(step: Operation, at: int, values: Array) -> bytes | None:
    """A table for one number; multipliers for numbers of channels, or of all elements of an image."""
    source, result = step.sources[at], step.result
    if values.shape[1:3] != (1, 1):
        if prod(result.extents[1:]) > MOST_CONSTANTS:
            return None
        values = np.broadcast_to(values, (1, *result.extents[1:]))
    unlike, number = np.unique(values, return_inverse=True)
    rows = _rows_of_values(step, at, unlike)
    if rows is None:
        return None
    codes, slopes = rows
    if values.size == 1:
        by_byte = codes[0][np.arange(CODES) ^ turned_bit(source)] ^ turned_bit(result)
        return header(TABLE) + laid_table(by_byte).tobytes()
    return scaled_form(CHANNELS, codes, slopes, source, result, number.reshape(-1))


def _rows_of_values(step: Operation, at: int, values: Array) -> tuple[Array, Array] | None:
    """For each value of the other operand, the result of each code as numbers from 0 on, and its slope in codes.

    None where some result is no number.
    """
    source, other, result = step.sources[at], step.sources[1 - at], step.result
    one = grid(source, (1, 1, CODES, 1), "one")
    many = grid(other, (1, 1, 1, values.size), "many")
    made = grid(result, (1, 1, CODES, values.size), "made")
    operands = [(one, all_codes(source).reshape(one.extents)), (many, values.reshape(many.extents))]
    ordered = operands if at == 0 else operands[::-1]
    changed = replace(step, sources=tuple(operand for operand, _ in ordered), result=made)
    with np.errstate(divide="ignore", invalid="ignore"):  # a code may stand for 0
        reals = _of_pair(changed, [array for _, array in ordered], {})[0, 0]
    if not np.all(np.isfinite(reals)):
        return None
    codes = numbers_of(stored_as(reals, made), result).T
    slopes = (reals[-1].astype(np.float64) - reals[0]) / (CODES - 1) / float(np.float32(result.scale))
    return codes, slopes


def _of_two_tensors(step: Operation) -> bytes | None:
    if step.operator not in SIGNS:
        return None
    one, other = step.sources
    signs = SIGNS[step.operator]
    flips = [turned_bit(source) ^ (0xFF if sign < 0 else 0) for source, sign in zip(step.sources, signs, strict=True)]
    first, second = grid(one, (1, 1, CODES, 1), "one"), grid(other, (1, 1, 1, CODES), "other")
    seen = [
        all_codes(source, 0xFF if sign < 0 else 0).reshape(operand.extents)
        for source, sign, operand in zip(step.sources, signs, (first, second), strict=True)
    ]
    made = _by_definition(step, (first, second), grid(step.result, (1, 1, CODES, CODES), "made"), seen)
    codes = numbers_of(made.reshape(CODES, CODES), step.result)
    scale = float(np.float32(step.result.scale))
    slopes = [float(np.float32(source.scale)) / scale for source in step.sources]
    return _sum(step, codes, (flips[0], flips[1]), (slopes[0], slopes[1]))


def may_lie_over(step: Step, source: Operand) -> bool:
    """Whether a step may write its result where a source lies: it reads each element before it writes that place.

    An Add of codes does, on all threads: what a vector behind the last whole one reads besides is not written.

    >>> codes, reals = Operand("a", (1, 4, 4, 2), "uint8"), Operand("b", (1, 4, 4, 2), "float32")
    >>> may_lie_over(Operation(ADD, "", (codes, codes), codes), codes)
    True
    >>> may_lie_over(Operation(ADD, "", (codes, reals), codes), codes)
    False
    """
    if not isinstance(step, Operation) or step.operator != ADD or step.how:
        return False
    placed = {(each.extents, each.layout, np.dtype(each.dtype).itemsize) for each in (*step.sources, step.result)}
    return source in step.sources and len(placed) == 1 and is_codes(step.result)


SIGNS = {"add": (1, 1), "subtract": (1, -1)}
"""How a result rises with each operand."""


def _max_pool_form(step: Operation, constants: Constants) -> bytes | None:
    """The table of codes, as of a conversion: a larger code stands for a larger number."""
    [source] = step.sources
    if not is_codes(source) or not is_codes(step.result):
        return None
    at = replace(source, extents=(1, 1, 1, 1), layout="NHWC")
    return convert_form(replace(step, sources=(at,), result=replace(step.result, layout="NHWC")), constants)


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
    left = max(31 - whole.bit_length(), 0)
    factor, offset = (
        round(slope * 2.0 ** (51 - left)),
        round((zero_of(result) + 0.5 - count * zero_of(source) * slope) * 2**20),
    )
    if factor >= 2**31 or abs(offset) + slope * whole * 2**20 >= 2**31 - 2**21:
        factor = 0
    least, most = codes_of(np.array([0, whole]))
    numbers = (MEAN, shift, turned_bit(source), turned_bit(result), multiplier, left)
    fixed = (factor, offset, least, most)
    words = (np.array(numbers, np.int32), np.int64(constant), np.array(fixed if factor else (0, 0, 0, 0), np.int32))
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


def _by_definition(step: Operation, sources: tuple[Operand, ...], result: Operand, seen: list[Array]) -> Array:
    """Compute a pair on other tensors than its own."""
    return stored_as(_of_pair(replace(step, sources=sources, result=result), seen, {}), result)


def _terms_of_pair(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return len(sizes), float(np.prod(sizes)) if step.operator == "multiply" else sum(sizes)


def _terms_of_window(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return prod(step.told(Window).kernel), sum(sizes)


def _terms_of_image(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return prod(step.sources[0].extents[1:3]), sum(sizes)


OPERATORS = {
    **{name: Operator(_of_pair, _pair_form, _terms_of_pair) for name in PAIRS},
    "max_pool": Operator(_largest, _max_pool_form, _terms_of_window, selects=True),
    "average_pool": Operator(_mean, _average_pool_form, _terms_of_window),
    "global_average_pool": Operator(_mean_of_all, _global_average_pool_form, _terms_of_image),
}
NODES: Table = {
    "Add": _pair_reader("add"),
    "Mul": _pair_reader("multiply"),
    "Sub": _pair_reader("subtract"),
    "Div": _pair_reader("divide"),
    "Sum": _pair_reader("add"),
    "ReduceMean": _read_reduce_mean,
    "MaxPool": _read_max_pool,
    "AveragePool": _read_average_pool,
    "GlobalAveragePool": _read_global_average_pool,
    f"{DOMAIN}.QLinearAdd": _quantised_pair_reader("add"),
    f"{DOMAIN}.QLinearMul": _quantised_pair_reader("multiply"),
    f"{DOMAIN}.QLinearAveragePool": _read_quantised_average_pool,
    f"{DOMAIN}.QLinearGlobalAveragePool": _read_quantised_global_average_pool,
}
