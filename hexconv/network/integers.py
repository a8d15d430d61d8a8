"""Integer forms of operators on 8-bit codes: multipliers, tables and thresholds, each proven against the definition.

before:  add(a, b): float32 of both codes, their sum, a division, rounding half to even
 after:  clamp((a * 1547420 + b * 1902797 - 446056384) >> 20), equal for all 65,536 pairs

Pairs at which no multipliers give the code are mended one by one, where there are few. `hexconv_integers.h` says how
each form lies in memory. Codes of int8 count from 0 on: their first bit is turned. What has no form is left to plain C.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import product
from math import frexp, prod

import numpy as np

from hexconv.network.answer import OPERATORS, mean_of, result_of, stored_as
from hexconv.network.program_steps import (
    BLOCKS,
    NCHW,
    Constants,
    Dimension,
    Filters,
    Map,
    Operand,
    Operation,
    Powers,
    Program,
    View,
    Window,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, LAST_SHIFT, MENDED, SOFTEST, Ends, Interval, sum_form

VECTOR_BYTES = 128
HEADER_BYTES = 128
"""Of a form whose arrays begin at a vector."""
TABLE, REALS, QUANTISED, MOVED, SUM, CHANNELS, GATED, MEAN, VIEW, JOINED, PRODUCTS, MEANS, SOFTMAX = range(1, 14)
"""The numbers of `enum hexconv_form`."""


def with_integers(program: Program) -> Program:
    """Give each operation's result the name of a constant that holds its integer form, where it has one."""
    constants, steps, names = dict(program.constants), [], dict[bytes, str]()
    taken = {operand.buffer for step in program.steps for operand in (*step.sources, step.result)} | constants.keys()
    for step in program.steps:
        form = form_of(step, program.constants) if isinstance(step, Operation) else None
        if form is not None:
            name = names.setdefault(form, _free(f"integers:{len(names)}", taken))
            constants[name] = np.frombuffer(form, np.uint8)
            step = replace(step, result=replace(step.result, integers=name))
        steps.append(step)
    return replace(program, steps=tuple(steps), constants=constants)


def _free(name: str, taken: Collection[str]) -> str:
    """Return the name, or a longer one that no tensor has."""
    return name if name not in taken else _free(f"{name}'", taken)


def form_of(step: Operation, constants: Constants) -> bytes | None:
    """Return the integer form of an operation as it lies in memory; None where it has none."""
    maker = MAKERS.get(step.operator)
    tensors = [*step.sources, step.result]
    if maker is None or any(operand.layout == BLOCKS or operand.dtype not in EIGHT_BITS for operand in tensors):
        return None
    if not 2.0**-60 < step.result.scale < 2.0**60:
        return None
    return maker(step, constants)


EIGHT_BITS = ("uint8", "int8", "float32")


def turned_bit(operand: Operand) -> int:
    """Return what turns codes to numbers from 0 on, or back: 0x80 for int8.

    >>> hex(turned_bit(Operand("x", (1, 1, 1, 1), "int8")))
    '0x80'
    """
    return 0x80 if operand.dtype == "int8" else 0


def _all_codes(operand: Operand, flip: int = 0) -> Array:
    """All codes in the order of their numbers from 0 on, or turned further by `flip`."""
    return (np.arange(CODES, dtype=np.uint8) ^ np.uint8(turned_bit(operand) ^ flip)).view(operand.dtype)


def _numbers(codes: Array, operand: Operand) -> Array:
    """Codes as numbers from 0 on, int64."""
    return (codes.view(np.uint8) ^ np.uint8(turned_bit(operand))).astype(np.int64)


def _laid(table: Array) -> Array:
    """Bytes of a table, last axis 256, in the order that vlut32 reads them."""
    return np.swapaxes(table.reshape(*table.shape[:-1], 2, 2, 64), -1, -2).reshape(table.shape).astype(np.uint8)


def _header(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes().ljust(HEADER_BYTES, b"\0")


def _small(step: Operation, sources: tuple[Operand, ...], result: Operand, seen: list[Array]) -> Array:
    """Compute an operation on other tensors than its own."""
    other = replace(step, sources=sources, result=result)
    return result_of(other, {source.buffer: array for source, array in zip(sources, seen, strict=True)}, {})


def _grid(operand: Operand, extents: tuple[int, int, int, int], name: str) -> Operand:
    return replace(operand, extents=extents, buffer=name, layout="NHWC")


def table_form(codes: Array, result: Operand) -> bytes:
    """The form of codes that are looked up by the code of a source, as a byte."""
    made = codes.astype(result.dtype).view(np.uint8)
    return _header(TABLE) + _laid(made).tobytes()


def reals_form(reals: Array) -> bytes:
    """The form of floats that are looked up by the code of a source, as a byte."""
    planes = reals.astype(np.float32).view(np.uint8).reshape(CODES, 4).T
    return _header(REALS) + _laid(planes).tobytes()


def _every_byte(operand: Operand) -> Array:
    return np.arange(CODES, dtype=np.uint8).view(operand.dtype)


def _convert(step: Operation, _: Constants) -> bytes | None:
    [source], result = step.sources, step.result
    lies_alike = source.layout == result.layout or source.is_one_order
    if is_codes(source) and not lies_alike:
        return _moved(source, result)
    if not lies_alike:
        return None
    if is_codes(source) and result.dtype != "int32":
        at, to = (_grid(operand, (1, 1, 1, CODES), name) for operand, name in ((source, "source"), (result, "result")))
        made = _small(step, (at,), to, [_every_byte(source).reshape(at.extents)]).reshape(-1)
        if is_codes(result):
            return table_form(made, result)
        return reals_form(made)
    return _quantised(step) if source.is_float and is_codes(result) else None


def _quantised(step: Operation) -> bytes:
    """The form of codes of floats: a reciprocal of 31 bits, and the exponent from which on codes are the last ones."""
    [source], result = step.sources, step.result
    at, to = (_grid(operand, (1, 1, 1, 2), name) for operand, name in ((source, "source"), (result, "result")))
    ends = np.array([-1, 1], np.float32).reshape(at.extents) * np.float32(result.scale) * SOFTEST
    least, most = _numbers(_small(step, (at,), to, [ends]).reshape(-1), result)
    scale = float(np.float32(result.scale))
    part, exponent = frexp(1 / scale)  # 1 / scale is part * 2**exponent, part from 1/2 to 1
    bits = 31 - exponent
    reciprocal = min(round(part * 2**31), 2**31 - 1)
    steps, most_exponent = (
        part * 2.0**9,
        127 + 9 - exponent,
    )  # a number of this exponent is so many steps, or up to twice
    if steps < 257:
        most_exponent += 1
    offset = ((_zero(result)) << 20) + (1 << 19)
    numbers = (QUANTISED, reciprocal, 106 + bits, most_exponent, offset, turned_bit(result), least, most)
    return _header(*map(int, numbers))


def _zero(operand: Operand) -> int:
    """The number from 0 on that stands for 0."""
    return operand.zero_point + turned_bit(operand)


def _moved(source: Operand, result: Operand) -> bytes | None:
    same = (source.dtype, source.scale, source.zero_point) == (result.dtype, result.scale, result.zero_point)
    if not same or result.low > -np.inf or result.high < np.inf:
        return None
    pixels, channels = source.extents[1] * source.extents[2], source.extents[3]
    rows, columns = (pixels, channels) if result.layout == "NCHW" else (channels, pixels)
    count = columns if columns < VECTOR_BYTES <= rows else min(rows, VECTOR_BYTES)
    return _header(MOVED) + spread(count).tobytes() + gathered(count).tobytes()


def _pixels(count: int) -> tuple[Array, Array]:
    """Where the bytes of pixels of `count` lie in a vector: side by side, and each pixel at a power of two."""
    power = 1 << (count - 1).bit_length()
    pixel, byte = (each.reshape(-1) for each in np.divmod(np.arange(VECTOR_BYTES // power * count), count))
    return pixel * count + byte, pixel * power + byte


def spread(count: int) -> Array:
    """The bytes that tell `vdelta` to move pixels of `count` bytes, side by side, to places at powers of two."""
    side, apart = _pixels(count)
    return _routed(side, apart, (64, 32, 16, 8, 4, 2, 1))


def gathered(count: int) -> Array:
    """The bytes that tell `vrdelta` the inverse of `spread`."""
    side, apart = _pixels(count)
    return _routed(apart, side, (1, 2, 4, 8, 16, 32, 64))


def _routed(source: Array, target: Array, distances: tuple[int, ...]) -> Array:
    """The control of a network of exchanges: at each distance, a byte takes over that bit of where it goes."""
    control, at = np.zeros(VECTOR_BYTES, np.uint8), source.copy()
    for distance in distances:
        moved = (at & ~distance) | (target & distance)
        assert len(np.unique(moved)) == len(moved), "two bytes meet"
        control[moved[moved != at]] |= distance
        at = moved
    return control


def _ends(codes: Array, result: Operand) -> Ends:
    return int(codes.min()) if result.low > -np.inf else 0, int(codes.max()) if result.high < np.inf else CODES - 1


def _sum(step: Operation, codes: Array, flips: tuple[int, int], slopes: tuple[float, float]) -> bytes | None:
    """The form of a table of 256 by 256 numbers from 0 on that rises along both axes."""
    ends = _ends(codes, step.result)
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
    return form.ljust(HEADER_BYTES, b"\0") + _laid(by_byte).tobytes()


def _row_of(pairs: Array) -> tuple[int, int] | None:
    """The axis, 1 or 2, and the number along which all pairs lie; None if there is none.

    Where the other operand stands for 0, all results may lie half way between two codes.
    """
    for axis in (0, 1):
        if len(np.unique(pairs[:, axis])) == 1:
            return axis + 1, int(pairs[0, axis])
    return None


NUMBER_BITS, NUMBER_REACH = 24, 40
"""Bits of a multiplier of a channel; how far beside the nearest one it is looked for."""


def _scaled(
    form: int, codes: Array, slopes: Array, source: Operand, result: Operand, rows: Array | None = None
) -> bytes | None:
    """Search a multiplier and a constant for each row of numbers from 0 on, [rows, 256] over codes of the source.

    Args:
        form: the form, of channels or of gates.
        codes: the results, by row.
        slopes: how steep each row is, in codes.
        source: the codes.
        result: the result.
        rows: the row of each channel, by default its own.
    """
    falls = slopes < 0
    codes, sizes = np.where(falls[:, None], codes[:, ::-1], codes), np.abs(slopes)
    shift = min(NUMBER_BITS - frexp(float(sizes.max()))[1], 16 + LAST_SHIFT)
    if sizes.max() * 2**shift > 2**NUMBER_BITS - NUMBER_REACH - 1:
        shift -= 1
    if shift < 16:
        return None
    ends = _ends(codes, result)
    found = _numbers_of_rows(codes, np.round(sizes * 2.0**shift).astype(np.int64), shift, ends)
    if found is None:
        return None
    multipliers, constants = found
    top = constants >> 16
    if np.abs(top).max() > 0xFFFF:
        return None
    flips = np.where(falls, 0xFF, 0) ^ turned_bit(source)
    limbs = [multipliers, multipliers >> 8, multipliers >> 16, constants, constants >> 8]
    added = [byte for part in (np.maximum(top, 0), np.maximum(-top, 0)) for byte in (part, part >> 8)]
    planes = np.stack([*limbs, *added, flips])[:, slice(None) if rows is None else rows] & 0xFF
    ordered = _laid(planes) if form == GATED else planes.astype(np.uint8)
    return _header(form, shift, turned_bit(result), *ends, planes.shape[1]) + ordered.tobytes()


def _numbers_of_rows(codes: Array, nearest: Array, shift: int, ends: Ends) -> tuple[Array, Array] | None:
    axis, (multipliers, constants) = np.arange(CODES, dtype=np.int64), (nearest.copy(), np.zeros_like(nearest))
    left = np.arange(len(nearest))
    for apart in sorted(range(-NUMBER_REACH, NUMBER_REACH + 1), key=abs):
        tried = np.maximum(nearest[left] + apart, 0)
        interval = Interval.of(codes[left], axis * tried[:, None], shift, ends, axis=1)
        holds = interval.low <= interval.high
        multipliers[left[holds]] = tried[holds]
        constants[left[holds]] = interval.middle[holds]
        left = left[~holds]
        if not len(left):
            return multipliers, constants
    return None


def _of_two(step: Operation, constants: Constants) -> bytes | None:
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
    rows = _rows(step, at, _every_byte(other))
    return _scaled(GATED, *rows, step.sources[at], result) if rows else None


def _reals_of_one(step: Operation, at: int, value: Array) -> bytes:
    """The float that each code and one number make."""
    source = _grid(step.sources[at], (1, 1, 1, CODES), "source")
    number = _grid(step.sources[1 - at], (1, 1, 1, 1), "number")
    sources, seen = [source, number], [_every_byte(source).reshape(source.extents), value.reshape(1, 1, 1, 1)]
    order = slice(None, None, 1 if at == 0 else -1)
    made = _small(step, tuple(sources[order]), _grid(step.result, source.extents, "made"), seen[order])
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
    rows = _rows(step, at, unlike)
    if rows is None:
        return None
    codes, slopes = rows
    if values.size == 1:
        by_byte = codes[0][np.arange(CODES) ^ turned_bit(source)] ^ turned_bit(result)
        return _header(TABLE) + _laid(by_byte).tobytes()
    return _scaled(CHANNELS, codes, slopes, source, result, number.reshape(-1))


def _rows(step: Operation, at: int, values: Array) -> tuple[Array, Array] | None:
    """For each value of the other operand, the result of each code as numbers from 0 on, and its slope in codes.

    None where some result is no number.
    """
    source, other, result = step.sources[at], step.sources[1 - at], step.result
    one = _grid(source, (1, 1, CODES, 1), "one")
    many = _grid(other, (1, 1, 1, values.size), "many")
    made = _grid(result, (1, 1, CODES, values.size), "made")
    operands = [(one, _all_codes(source).reshape(one.extents)), (many, values.reshape(many.extents))]
    ordered = operands if at == 0 else operands[::-1]
    changed = replace(step, sources=tuple(operand for operand, _ in ordered), result=made)
    with np.errstate(divide="ignore", invalid="ignore"):  # a code may stand for 0
        reals = OPERATORS[step.operator](changed, [array for _, array in ordered], {})[0, 0]
    if not np.all(np.isfinite(reals)):
        return None
    codes = _numbers(stored_as(reals, made), result).T
    slopes = (reals[-1].astype(np.float64) - reals[0]) / (CODES - 1) / float(np.float32(result.scale))
    return codes, slopes


def _of_two_tensors(step: Operation) -> bytes | None:
    if step.operator not in SIGNS:
        return None
    one, other = step.sources
    signs = SIGNS[step.operator]
    flips = [turned_bit(source) ^ (0xFF if sign < 0 else 0) for source, sign in zip(step.sources, signs, strict=True)]
    first, second = _grid(one, (1, 1, CODES, 1), "one"), _grid(other, (1, 1, 1, CODES), "other")
    seen = [
        _all_codes(source, 0xFF if sign < 0 else 0).reshape(operand.extents)
        for source, sign, operand in zip(step.sources, signs, (first, second), strict=True)
    ]
    made = _small(step, (first, second), _grid(step.result, (1, 1, CODES, CODES), "made"), seen)
    codes = _numbers(made.reshape(CODES, CODES), step.result)
    scale = float(np.float32(step.result.scale))
    slopes = [float(np.float32(source.scale)) / scale for source in step.sources]
    return _sum(step, codes, (flips[0], flips[1]), (slopes[0], slopes[1]))


SIGNS = {"add": (1, 1), "subtract": (1, -1)}
"""How a result rises with each operand."""


def _max_pool(step: Operation, constants: Constants) -> bytes | None:
    """The table of codes, as of a conversion: a larger code stands for a larger number."""
    [source] = step.sources
    if not is_codes(source) or not is_codes(step.result):
        return None
    at = replace(source, extents=(1, 1, 1, 1), layout="NHWC")
    return _convert(
        replace(step, operator="convert", sources=(at,), result=replace(step.result, layout="NHWC")), constants
    )


def _global_average_pool(step: Operation, _: Constants) -> bytes | None:
    [source], result = step.sources, step.result
    count = prod(source.extents[1:3])
    if not is_codes(source) or not is_codes(result) or count * (CODES - 1) >= 2**31:
        return None
    return mean_form(source, result, count)


def mean_form(source: Operand, result: Operand, count: int) -> bytes:
    """The form of means of `count` codes: the least sum for each code, found by bisection over the definition."""
    whole = count * (CODES - 1)

    def codes_of(sums: Array) -> Array:
        total = sums - count * _zero(source)
        return _numbers(stored_as(mean_of(total, source, count), result), result)

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
    constant = ((2 * _zero(result) + 1) << shift >> 1) - count * _zero(source) * multiplier
    if shift < 1 or multiplier >= 2**31:
        shift, multiplier, constant = 1, 0, 0
    left = max(31 - whole.bit_length(), 0)
    factor, offset = (
        round(slope * 2.0 ** (51 - left)),
        round((_zero(result) + 0.5 - count * _zero(source) * slope) * 2**20),
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


def _average_pool(step: Operation, _: Constants) -> bytes | None:
    """For each number of elements that a window may have, how a sum of codes becomes the mean's code."""
    [source], result, window = step.sources, step.result, step.told(Window)
    if not is_codes(source) or not is_codes(result) or prod(window.kernel) > MOST_ELEMENTS:
        return None
    counts = {one * other for one, other in product(*(range(1, size + 1) for size in window.kernel))}
    means, ends = b"", set[tuple[int, int]]()
    for count in sorted(counts, reverse=True):
        sums = np.arange(count * (CODES - 1) + 1, dtype=np.int64)
        total = sums - count * _zero(source)
        codes = _numbers(stored_as(mean_of(total, source, count), result), result)
        slope = float(np.float32(source.scale)) / float(np.float32(result.scale)) / count
        reach = slope * sums[-1] + _zero(source) * slope * count + 2 * CODES
        shift = min(30 - frexp(reach)[1], 30 - frexp(slope)[1])
        if shift < 10:
            return None
        multiplier = round(slope * 2**shift)
        more = (_zero(result) + 0.5 + 2**-8) * 2**shift
        constant = int(more) - count * _zero(source) * multiplier
        guessed = np.clip((sums * multiplier + constant) >> shift, codes.min(), codes.max())
        if np.any((guessed != codes) & (guessed != codes + 1)):
            return None
        thresholds = np.searchsorted(codes, np.arange(CODES)).astype(np.uint16)
        ends.add((int(codes.min()), int(codes.max())))
        low, high = (_laid(each).tobytes() for each in (thresholds & 0xFF, thresholds >> 8))
        means += _header(count, multiplier, constant, shift) + low + high
    if len(ends) > 1:
        return None
    return _header(MEANS, turned_bit(source), turned_bit(result), *ends.pop(), len(counts)) + means


MOST_INPUTS, MOST_OUTPUTS, OUTPUTS_AT_ONCE, BLOCK = 8192, 4096, 128, 32
"""Of products: what HVX keeps of a pixel at most; outputs that are made together, and whose sums fill a vector."""
BEYOND = 600
"""Steps from the zero point that are beyond all codes."""


def _products(step: Operation, constants: Constants) -> bytes | None:
    """Weights of a matrix product, or of a transposed conv whose windows lie side by side, [rows, columns, outputs]."""
    [source], result, filters = step.sources, step.result, step.told(Filters)
    if not is_codes(source) or not is_codes(result) or filters.dtype != "int8" or filters.real_bias:
        return None
    if step.operator == "conv_transpose" and not _is_side_by_side(step):
        return None
    elements = constants[filters.elements].astype(np.int64).transpose(1, 2, 0, 3)
    weights = elements.reshape(-1, elements.shape[-1])
    outputs, inputs = weights.shape
    if inputs > MOST_INPUTS or outputs > MOST_OUTPUTS or filters.groups != 1:
        return None
    times = outputs // filters.shape[0]
    bias = np.tile(constants[filters.sums_bias].astype(np.int64), times) if filters.sums_bias else 0
    bias = bias - _zero(source) * weights.sum(1)
    largest = np.maximum(np.maximum(weights, 0).sum(1), np.maximum(-weights, 0).sum(1)) * (CODES - 1) + np.abs(bias)
    scales = np.float32(source.scale) * np.broadcast_to(constants[filters.scales], filters.shape[0])  # as C computes it
    steps = np.tile(scales.astype(np.float64), times) / float(np.float32(result.scale))
    if largest.max() >= 2**31 or not steps.min() > 0:
        return None
    limits = np.minimum(np.ceil(BEYOND / steps), largest + 1).astype(np.int64)
    if limits.max() >= 2**31:
        return None
    shifts = 31 - np.frexp(limits.astype(np.float64))[1]
    multipliers = np.round(steps * 2.0 ** (51 - shifts)).astype(np.int64)
    if multipliers.max() >= 2**31:
        return None
    to = _grid(result, (1, 1, 1, 2), "ends")
    ends = np.array([-1, 1], np.float32) * np.float32(result.scale) * SOFTEST
    least, most = _numbers(stored_as(ends, to), result)
    whole, words = -(-outputs // OUTPUTS_AT_ONCE) * OUTPUTS_AT_ONCE, -(-inputs // 4)
    laid = np.full((whole, words * 4), 128, np.uint8)
    laid[:outputs, :inputs] = weights + 128
    laid = laid.reshape(whole // BLOCK, BLOCK, words, 4).transpose(0, 2, 1, 3)
    numbers = np.zeros((4, whole), np.int32)
    numbers[:, :outputs] = bias, limits, shifts, multipliers
    offset = (_zero(result) << 20) + (1 << 19)
    header = (PRODUCTS, whole, words, turned_bit(source), offset, turned_bit(result), int(least), int(most))
    return _header(*header) + numbers.tobytes() + laid.tobytes()


def _is_side_by_side(step: Operation) -> bool:
    """Whether a transposed conv writes each element of its result once, by one element of its source."""
    window, (rows, columns) = step.told(Window), step.sources[0].extents[1:3]
    made = (rows * window.stride[0], columns * window.stride[1])
    return window.kernel == window.stride and not any(window.padding) and made == step.result.extents[1:3]


def _codes_by_byte(source: Operand, result: Operand) -> Array:
    """The code of a result for each code of a source, as bytes in their order."""
    at, to = (_grid(operand, (1, 1, 1, CODES), name) for operand, name in ((source, "source"), (result, "result")))
    convert = Operation("convert", "convert", (at,), to)
    return _small(convert, (at,), to, [_every_byte(source).reshape(at.extents)]).reshape(-1).view(np.uint8)


def _view(step: Operation, _: Constants) -> bytes | None:
    [source], result, how = step.sources, step.result, step.told(View)
    if not is_codes(source) or not is_codes(result):
        return None
    table = _codes_by_byte(source, result)
    changes = not np.array_equal(table, np.arange(CODES))
    moved = spread(1).tobytes() + gathered(1).tobytes()
    if len(how.dimensions) > 1:
        columns, rows = (each.size for each in how.dimensions[-2:])
        parts = columns < VECTOR_BYTES <= rows and how.dimensions[-1].source_step == columns
        count = columns if parts else min(rows, VECTOR_BYTES)
        moved = spread(count).tobytes() + gathered(count).tobytes()
    tile = tile_of(how)
    return _header(VIEW, int(changes), *tile.numbers) + _laid(table).tobytes() + moved + tile.indices.tobytes()


MOST_SPAN = 2 * VECTOR_BYTES
"""The bytes in which `vlut32` looks a tile up, eight instructions a vector."""


@dataclass(frozen=True)
class Tile:
    """Bytes of a view that lie side by side in the result: some turns of a loop, and all of the loops in it.

    Attributes:
        loop: the number of the loop.
        turns: how many turns of it; 0 where the view has no such tile.
        size: the bytes of the tile.
        first: how far the first byte of those that it is made of lies from the one of the first turn.
        span: the bytes that it is made of, from the first one to the last.
        indices: for each byte of the tile the one that it is, in the order in which `vlut32` reads tables.
    """

    loop: int = 0
    turns: int = 0
    size: int = 0
    first: int = 0
    span: int = 0
    indices: Array = field(default_factory=lambda: np.zeros(VECTOR_BYTES, np.uint8))

    @property
    def numbers(self) -> tuple[int, ...]:
        """What C is told besides the indices."""
        return self.loop, self.turns, self.size, self.first, self.span

    def packets(self, turns: int) -> float:
        """About how many packets a byte of so many turns takes: tables, loads, a store, and the walk around them."""
        tables = 2 if self.span <= VECTOR_BYTES // 2 else 4 if self.span <= VECTOR_BYTES else 8
        tiles = -(-turns // self.turns)
        walk = WALK if turns % self.turns == 0 else 2 * WALK
        return (tiles * (tables + (2 if tables > 4 else 1) + 2) + walk) / (self.size // self.turns * turns)


WALK = 30
"""Packets of one turn of the loops around tiles or pieces."""


def tile_of(how: View) -> Tile:
    """The tile of a view that takes the fewest packets; one of no turns where another way takes fewer.

    >>> tile_of(View((Dimension(9, 6, 6), Dimension(2, 1, 3), Dimension(3, 2, 1)))).numbers
    (0, 9, 54, 0, 54)
    """
    places, size, best = np.zeros(1, np.int64), 1, (_other_packets(how), Tile())
    for number, loop in reversed([*enumerate(how.dimensions)]):
        is_dense = loop.result_step == size
        if loop.places or not (is_dense or size > 1):
            break
        most = min(loop.size if is_dense else 1, VECTOR_BYTES // size)
        tile = next((found for turns in range(most, 0, -1) if (found := _tile(number, turns, loop, places))), None)
        if tile and (packets := tile.packets(loop.size)) < best[0]:
            best = packets, tile
        if not is_dense or loop.size * size > VECTOR_BYTES:
            break
        places = np.add.outer(np.arange(loop.size) * loop.source_step, places).reshape(-1)
        size *= loop.size
    return best[1]


def _tile(number: int, turns: int, loop: Dimension, places: Array) -> Tile | None:
    """So many turns of a loop and all of the loops in it, which take `places`; None where these lie too far apart."""
    found = np.add.outer(np.arange(turns) * loop.source_step, places).reshape(-1)
    first, span = int(found.min()), int(found.max() - found.min()) + 1
    return Tile(number, turns, len(found), first, span, _indices(found - first)) if span <= MOST_SPAN else None


def _other_packets(how: View) -> float:
    """About how many packets a byte takes in pieces, or where matrices are turned, or one by one."""
    inner = how.dimensions[-1]
    if inner.result_step == 1 and inner.source_step == 1 and not inner.places:
        loops = [*how.dimensions[:-1]]
        times = loops.pop().size if len(loops) > 1 and loops[-1].source_step == 0 and not loops[-1].places else 1
        pieces = loops[-1].size if loops else 1
        each = 3 if times == 1 else 8 + 2 * times
        return (pieces * each + WALK) / (pieces * times * inner.size) if inner.size <= VECTOR_BYTES else 0.0
    if len(how.dimensions) < 2 or inner.result_step != 1 or inner.places or how.dimensions[-2].source_step != 1:
        return 3.0
    columns, power = how.dimensions[-2].size, 1 << (inner.size - 1).bit_length()
    vectors = min(power, VECTOR_BYTES)
    blocks = -(-columns // VECTOR_BYTES) * (-(-inner.size // VECTOR_BYTES))
    each = (
        vectors + vectors * vectors.bit_length() / 2 + min(columns, VECTOR_BYTES) * min(inner.size, 128) / VECTOR_BYTES
    )
    return (blocks * each + WALK / 2) / (columns * inner.size) if columns * inner.size >= VECTOR_BYTES // 2 else 3.0


def _indices(places: Array) -> Array:
    """Places in up to two vectors, as `vlut32` numbers the bytes of its tables."""
    vector, byte = np.divmod(places, VECTOR_BYTES)
    indices = np.zeros(VECTOR_BYTES, np.uint8)
    indices[: len(places)] = vector * VECTOR_BYTES + byte // 2 + byte % 2 * (VECTOR_BYTES // 2)
    return indices


def _concat(step: Operation, _: Constants) -> bytes | None:
    if not all(map(is_codes, (*step.sources, step.result))):
        return None
    form = _header(JOINED, len(step.sources))
    for source in step.sources:
        table = _codes_by_byte(source, step.result)
        form += _header(int(not np.array_equal(table, np.arange(CODES)))) + _laid(table).tobytes()
    return form


def _map(step: Operation, constants: Constants) -> bytes | None:
    """The table of a function of one number, or multipliers of channels for one that is straight."""
    [source], result, how = step.sources, step.result, step.told(Map)
    if not is_codes(source) or not is_codes(result):
        return None
    reals = constants[how.reals].reshape(how.count, CODES)
    codes = stored_as(reals, replace(result, extents=(1, 1, 1, CODES)))
    if how.count == 1:
        return table_form(codes[0], result)
    ordered = np.arange(CODES) ^ turned_bit(source)
    slopes = (reals[:, ordered[-1]].astype(np.float64) - reals[:, ordered[0]]) / (CODES - 1)
    numbers = _numbers(np.ascontiguousarray(codes[:, ordered]), result)
    return _scaled(CHANNELS, numbers, slopes / float(np.float32(result.scale)), source, result)


MOST_OF_A_LINE, LEAST_BESIDE, MOST_CLOSE = 255, 3, 1 << 17
"""Of a softmax: powers with a sum below 2^31; lines side by side; steps, 2^20 from code to code, that it errs by."""


def _softmax(step: Operation, constants: Constants) -> bytes | None:
    """Powers as integers. What a share of them errs by: each power by 1/2, their sum by 1/2 for each of them."""
    [source], result, how = step.sources, step.result, step.told(Powers)
    count, step_size = source.extents[how.axis], float(np.float32(result.scale))
    if not is_codes(source) or not is_codes(result) or count > MOST_OF_A_LINE or step_size < 2.0**-9:
        return None
    if source.layout != result.layout or _beside(source, how.axis) < LEAST_BESIDE:
        return None
    close = int(np.ceil(((1 + count) / 16 + 1 / 4) / step_size)) + 8  # 1/4: of float32 and of the reciprocal
    if close > MOST_CLOSE:
        return None
    powers = np.rint(constants[how.powers].astype(np.float64) * 2**23).astype(np.int64)
    ends = np.array([-1, 1], np.float32) * np.float32(result.scale) * SOFTEST
    least, most = _numbers(stored_as(ends, _grid(result, (1, 1, 1, 2), "ends")), result)
    offset = (_zero(result) << 20) + (1 << 19)
    numbers = (round(2.0**21 / step_size), close, offset, turned_bit(result), int(least), int(most))
    planes = np.stack([powers & 255, powers >> 8 & 255, powers >> 16])
    return _header(SOFTMAX, turned_bit(source), *numbers) + _laid(planes).tobytes()


def _beside(operand: Operand, axis: int) -> int:
    """How many elements lie from one along an axis to the next: so many lines lie side by side."""
    order = (0, 3, 1, 2) if operand.layout == NCHW else (0, 1, 2, 3)
    return prod(operand.extents[at] for at in order[order.index(axis) + 1 :])


MAKERS: dict[str, Callable[[Operation, Constants], bytes | None]] = {
    "convert": _convert,
    "add": _of_two,
    "multiply": _of_two,
    "subtract": _of_two,
    "divide": _of_two,
    "map": _map,
    "matmul": _products,
    "conv_transpose": _products,
    "view": _view,
    "concat": _concat,
    "softmax": _softmax,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
}
"""By the name of an operator, the function that makes its integer form."""
