"""Operators on two tensors: sums, products; multipliers proven against the definition.

before:  add(a, b): float32 of both codes, their sum, a division, rounding half to even
 after:  clamp((a * 1547420 + b * 1902797 - 446056384) >> 20), equal for all 65,536 pairs

Pairs at which no multipliers give the code are mended one by one, where there are few, or along a line; where many
sums are half way between two codes, what float32 errs in each operand says what these become. What has no form is left
to plain C.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from hexconv.model.contributed import DOMAIN
from hexconv.model.graph import Node
from hexconv.model.refused import Refused
from hexconv.network.elements import Operator, Stored, real_values, stored_as
from hexconv.network.integer_form import (
    CHANNELS,
    GATED,
    HEADER_BYTES,
    MENDED_LINES,
    MENDED_PAIRS,
    MENDED_TIES,
    SUM,
    TABLE,
    VECTOR_BYTES,
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
    way_of_sum,
    zero_of,
)
from hexconv.network.program import (
    Reading,
    Table,
    scale_names,
    three,
)
from hexconv.network.program_steps import (
    Constants,
    Operand,
    Operation,
    Step,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, LEAST_SHIFT, MENDED, SUM_BITS, CodeSum, Interval, clipped, sum_form

ADD = "add"
"""The operator that an Add is between chains."""
PAIRS: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "divide": np.divide}


def _pair_reader(operator: str) -> Callable[[Reading, Node], None]:
    """Make the reader of an operator on two tensors, each as large as the result or broadcast."""

    def read(reading: Reading, node: Node) -> None:
        if "axis" in node.attributes:
            raise Refused(
                "it names the axis that it broadcasts along, as before opset 7; convert it to opset 7 or newer"
            )
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


def _of_pair(step: Operation, seen: list[Array], _: Stored) -> Array:
    return PAIRS[step.operator](*map(real_values, seen, step.sources))


def _sum(step: Operation, codes: Array, flips: tuple[int, int], slopes: tuple[float, float]) -> bytes | None:
    """The form of a table of 256 by 256 numbers from 0 on that rises along both axes."""
    ends = ends_of(codes, step.result)
    found = sum_form(codes, slopes, ends)
    if found is None:
        return None
    pairs = np.array(found.mended, np.int64).reshape(-1, 3)
    line = _Line(0, 0, 0, found.constant, np.zeros(CODES, bool))
    one, other, ties = found.one, found.other, None
    if len(pairs) > MENDED:
        lined = next(filter(None, (_line_of(codes, found, pairs, axis) for axis in (0, 1))), None)
        ties = _ties_of(step, codes, slopes, found.shift, ends) if lined is None else None
        if lined is None and ties is None:
            return None
        line = lined or line
        pairs = pairs[:0]
    if ties is not None:
        one, other = ties.multipliers
        line = replace(line, constant=ties.constant)
    filled = np.zeros((MENDED, 4), np.uint8)
    if len(pairs):  # the last one is repeated
        filled[:, :3] = pairs[np.minimum(np.arange(MENDED), len(pairs) - 1)]
    numbers = (SUM, one, other, line.constant, found.shift, *flips, turned_bit(step.result), *ends)
    mended = MENDED_LINES[line.axis - 1] if line.axis else MENDED_PAIRS[min(len(pairs), 2)]
    mended = mended if ties is None else MENDED_TIES
    is_bare = not any((*flips, turned_bit(step.result))) and ends == (0, CODES - 1)
    way = way_of_sum(mended, is_bare, line.constant < 0)
    form = np.array((*numbers, way, line.code, line.more), np.int32).tobytes() + filled.tobytes()
    bits, powers = np.zeros((2, CODES), np.uint8)
    bits[: CODES // 8], powers[:8] = np.packbits(line.wrong, bitorder="little"), 1 << np.arange(8)
    return (
        form.ljust(HEADER_BYTES, b"\0")
        + b"".join(laid_table(each)[:VECTOR_BYTES].tobytes() for each in (bits, powers))
        + (ties.tables if ties else b"")
    )


@dataclass(frozen=True)
class _Line:
    """Where one operand has one number, sums with some numbers of the other are off by one: those that are halves.

    Attributes:
        axis: the operand, 1 or 2; 0 if there is no such line.
        code: its number.
        more: what is added for the others.
        constant: the constant of all sums.
        wrong: for which numbers of the other operand.
    """

    axis: int
    code: int
    more: int
    constant: int
    wrong: Array


def _line_of(codes: Array, found: CodeSum, pairs: Array, axis: int) -> _Line | None:
    """The line along which all pairs lie, by a constant that leaves all its sums off to one side; None if none does."""
    code, *more_codes = np.unique(pairs[:, axis])
    if more_codes:
        return None
    each = np.arange(CODES, dtype=np.int64)
    products = each[:, None] * found.one + each * found.other
    rest, others = np.delete(codes, code, axis), np.delete(products, code, axis)
    interval = Interval.of(rest, others, found.shift, found.ends)
    along, wanted = products.take(code, axis), codes.take(code, axis)
    for constant, more in product((int(interval.low), int(interval.high)), (1, -1)):
        made = clipped((along + constant) >> found.shift, (0, CODES - 1))
        wrong = clipped(made, found.ends) != wanted
        if interval.low <= interval.high and np.array_equal((made + more)[wrong], wanted[wrong]):
            return _Line(axis + 1, int(code), more, constant, wrong)
    return None


@dataclass(frozen=True)
class _Ties:
    """Sums that are exact before they are rounded; float32 sends those half way between two codes either way.

    Attributes:
        multipliers: of both codes; no sum of products has a bit among the lowest `LEAST_SHIFT`.
        constant: what is added before these are dropped: it leaves a tie short of a code by the last bit that is kept.
        errors: what float32 errs in the real numbers of both operands, bytes of whole steps above their least ones.
        above: for the code below a tie, the sum of errors above which it goes up.
    """

    multipliers: tuple[int, int]
    constant: int
    errors: tuple[Array, Array]
    above: Array

    @property
    def tables(self) -> bytes:
        """The bytes of `errors` and `ties` in `struct hexconv_sum`."""
        return b"".join(laid_table(each).tobytes() for each in (*self.errors, self.above & 255, self.above >> 8))


def _ties_of(
    step: Operation, codes: Array, slopes: tuple[float, float], shift: int, ends: tuple[int, int]
) -> _Ties | None:
    """Find what all ties of sums become; None where scales are no powers of two of each other, or errors don't tell."""
    fraction = shift - LEAST_SHIFT
    multipliers = tuple(slope * 2**shift for slope in slopes)
    if fraction < 1 or any(each % 2**LEAST_SHIFT or each >= 2**SUM_BITS for each in multipliers):
        return None
    one, other = map(int, multipliers)
    axes = _steps_of(step)
    errors = _errors_of(step, axes)
    if errors is None:
        return None
    bit = 1 << LEAST_SHIFT
    constant = (
        (zero_of(step.result) << shift) + (1 << shift >> 1) - bit + int(axes[0][0]) * one + int(axes[1][0]) * other
    )
    axis = np.arange(CODES, dtype=np.int64)
    sums = (axis[:, None] * one + axis * other + constant) >> LEAST_SHIFT
    below, both = clipped(sums >> fraction, (0, CODES - 1)), errors[0].astype(np.int64)[:, None] + errors[1]
    is_down = ((sums + 1) >> fraction > sums >> fraction) & (codes <= below) & (below < ends[1])
    above = np.zeros(CODES, np.int64)
    np.maximum.at(above, below[is_down], both[is_down])
    made = clipped((np.maximum(sums, 0) + (both > above[below])) >> fraction, ends)
    if not np.array_equal(made, codes) or abs(constant) >> LEAST_SHIFT >= 2**16:
        return None
    return _Ties((one, other), constant, errors, above)


def _steps_of(step: Operation) -> list[Array]:
    """For both operands, how many steps each number from 0 on adds to a sum: they rise by one."""
    found = []
    for source, sign in zip(step.sources, SIGNS[step.operator], strict=True):
        steps = np.arange(CODES, dtype=np.int64) - zero_of(source)
        found.append(steps if sign > 0 else -steps[::-1])
    return found


def _errors_of(step: Operation, axes: Sequence[Array]) -> tuple[Array, Array] | None:
    """What float32 errs in products of steps and a scale, in common units, from 0 on; None if no byte holds it."""
    errors = []
    for source, steps in zip(step.sources, axes, strict=True):
        scale = np.float32(source.scale)
        exact = steps * np.float64(scale)  # 32 bits
        errors.append((steps.astype(np.float32) * scale).astype(np.float64) - exact)
    unit = min(np.spacing(np.float32(source.scale)).astype(np.float64) for source in step.sources)
    whole = [np.rint(each / unit).astype(np.int64) for each in errors]
    common = max(int(np.gcd.reduce(np.concatenate(whole))), 1)
    one, other = (each // common - (each // common).min() for each in whole)
    if max(one.max() + 1, other.max()) >= CODES:
        return None
    return (one + 1).astype(np.uint8), other.astype(np.uint8)


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


def _by_definition(step: Operation, sources: tuple[Operand, ...], result: Operand, seen: list[Array]) -> Array:
    """Compute a pair on other tensors than its own."""
    return stored_as(_of_pair(replace(step, sources=sources, result=result), seen, {}), result)


def _terms_of_pair(step: Operation, sizes: Sequence[float], _: Stored) -> tuple[int, float]:
    return len(sizes), float(np.prod(sizes)) if step.operator == "multiply" else sum(sizes)


OPERATORS = {name: Operator(_of_pair, _pair_form, _terms_of_pair) for name in PAIRS}
NODES: Table = {
    "Add": _pair_reader("add"),
    "Mul": _pair_reader("multiply"),
    "Sub": _pair_reader("subtract"),
    "Div": _pair_reader("divide"),
    "Sum": _pair_reader("add"),
    f"{DOMAIN}.QLinearAdd": _quantised_pair_reader("add"),
    f"{DOMAIN}.QLinearMul": _quantised_pair_reader("multiply"),
}
