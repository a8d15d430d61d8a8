"""The activations of floats in TIR, in float32: additions, multiplications and selections alone, of scalars or vectors.

An object for a device has no exp, tanh or erf to call, and a vector of them would be taken apart into calls. So all of
them are made of one exponential function, for numbers that are not positive:

    exp(x) = 2**n * (1 + q)       expm1(x) = 2**n * q + (2**n - 1)       n the integer nearest to x / ln(2)

q is expm1(x - n * ln(2)), a polynomial; 2**n is n moved into the exponent of a float32. No result overflows, none is
divided (Hexagon divides by a call): a reciprocal between 1 and 1/2 is a parabola, and two steps of Newton's.

Coefficients are minimax fits of the functions that they stand for, rounded to float32. The largest errors over all of
float16 and a grid over all sizes of float32, relative to the larger of the result and 1 (rounding alone makes 6e-8):
elu 5e-8, hardswish 1.1e-7, gelu 1.2e-7, sigmoid 1.6e-7, gelu_tanh and silu 2e-7, tanh 2.3e-7.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.spec.activations import CLAMPS, PRELU
from hexconv.spec.chain import Conv2d

Bind = Callable[[str, tirx.Expr], tirx.Expr]
"""Computes a value once: from a name and the value to the variable that holds it."""

CALLED = "hexconv_"
"""How the name of a call begins that stands for the arithmetic of an activation."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440054690583e-4
"""The natural logarithm of 2 in two parts: a multiple of the first up to 126 is exact in float32."""
ROUNDING = 1.5 * 2**23
"""What rounds a float32 to the nearest integer when it is added: no bits are left for a fraction."""
EXPONENT_BIAS, FRACTION_BITS = 127, 23
LEAST_EXPONENT = -87.33
"""exp of less is no normal float32, and becomes 0."""
EXPM1 = (0.5, 0.16666537523269653, 0.041666265577077866, 0.008367233909666538, 0.0013947574188932776)
"""Of (expm1(r) - r) / r**2, |r| up to ln(2) / 2."""
RECIPROCAL = (2.121211051940918, -1.454543948173523, 0.32323184609413147)
"""Of 1 / x, x from 1 to 2, within 1 %."""
NEWTON_STEPS = 2
TAIL = (
    -0.6931471228599548,
    -0.7978882193565369,
    -0.3182792663574219,
    -0.0364355593919754,
    0.004944771062582731,
    -0.00010881846537813544,
    -0.00013989771832711995,
    3.6934306990588084e-05,
    -4.792511845153058e-06,
    3.300159221453214e-07,
    -9.572412196234836e-09,
)
"""Of log((1 - erf(z / sqrt(2))) / 2), z from 0 to 7."""
TAIL_ENDS = 7.0
"""From here on, z * (1 - erf(z / sqrt(2))) / 2 is less than 1e-11, and becomes 0."""
GELU_TANH = (1.5957691216057308, 0.071354816222)
"""2 * sqrt(2 / pi), and 0.044715 times that."""


def activation(conv: Conv2d, total: tirx.Expr, slope: tirx.Expr | None = None) -> tirx.Expr:
    """The activation of a float conv, of its sum, as one expression: a clamp, or a call that stands for its arithmetic.

    A schedule moves the call as it is; `hexconv.lower.lowered` puts the arithmetic in its place. Its values are
    used several times each, and TVM's passes would look at all that each of them is made of, again and again.

    Args:
        conv: the conv.
        total: the sum, bias included, float32.
        slope: the slope of a prelu in the sum's channel.
    """
    if conv.activation in CLAMPS:
        return clamped(total, conv.activation)
    slope = tirx.const(conv.slope, "float32") if slope is None else slope
    offset = tirx.const(conv.offset, "float32")
    return tirx.call_pure_extern("float32", f"{CALLED}{conv.activation}", total, slope, offset)


def activated(name: str, total: tirx.Expr, slope: tirx.Expr, offset: tirx.Expr, bind: Bind) -> tirx.Expr:
    """Apply an activation by its arithmetic (numpy's twin is `hexconv.spec.curves.activated`).

    Args:
        name: the activation, no clamp.
        total: the sum, bias included: float32, one or a vector of them, as are slope and offset.
        slope: the slope of the activation, for those that have one.
        offset: its offset, for those that have one.
        bind: computes a value once.
    """
    return FUNCTIONS[name](Sum(bind("x", total), slope, offset, bind))


def clamped(total: tirx.Expr, name: str) -> tirx.Expr:
    """Apply `none`, `relu` or `relu6` to a sum, or to a vector of sums."""
    if name == "none":
        return total
    positive = tirx.Max(total, _same(0, total))
    return tirx.Min(positive, _same(6, total)) if name == "relu6" else positive


@dataclass(frozen=True)
class Sum:
    """A sum with what its activation needs: `activated` says of what kind each is."""

    x: tirx.Expr
    slope: tirx.Expr
    offset: tirx.Expr
    bind: Bind


def _leaky_relu(of: Sum) -> tirx.Expr:
    return _where_negative(of.x, of.slope * of.x, of.x)


def _elu(of: Sum) -> tirx.Expr:
    power, q = _exponential(_where_negative(of.x, of.x, _same(0, of.x)), of.bind)
    return _where_negative(of.x, of.slope * _expm1(power, q), of.x)


def _sigmoid(of: Sum) -> tirx.Expr:
    return _logistic(of.x, of.bind)


def _hardsigmoid(of: Sum) -> tirx.Expr:
    return _clipped(of.x * of.slope + of.offset)


def _tanh(of: Sum) -> tirx.Expr:
    """`-m / (2 + m)` of |x|, m = expm1(-2 |x|): nothing cancels near 0."""
    x, bind = of.x, of.bind
    power, q = _exponential(_where_negative(x, _same(2, x) * x, _same(-2, x) * x), bind)
    m = bind("m", _expm1(power, q))
    size = bind("size", m * _reciprocal(bind("denominator", _same(2, x) + m), bind))
    return _where_negative(x, size, _same(0, x) - size)


def _silu(of: Sum) -> tirx.Expr:
    return of.x * _logistic(of.x, of.bind)


def _hardswish(of: Sum) -> tirx.Expr:
    return of.x * _clipped(of.x * _same(1 / 6, of.x) + _same(0.5, of.x))


def _gelu(of: Sum) -> tirx.Expr:
    """`x * (1 - t)` for x from 0 on, and `x * t` below, t the tail of the normal distribution beyond |x|."""
    x, bind, end = of.x, of.bind, _same(TAIL_ENDS, of.x)
    size = bind("size", _where_negative(x, _same(0, x) - x, x))
    inside = bind("inside", tirx.Select(size > end, end, size))
    power, q = _exponential(_polynomial(inside, TAIL, bind), bind)
    tail = bind("tail", tirx.Select(size > end, _same(0, x), power + power * q))
    return x * _where_negative(x, tail, _same(1, x) - tail)


def _gelu_tanh(of: Sum) -> tirx.Expr:
    """`x * sigmoid(2 u)`, which is `x * (1 + tanh(u)) / 2`."""
    x, (linear, cubic) = of.x, (_same(each, of.x) for each in GELU_TANH)
    return x * _logistic(of.bind("twice", x * (linear + cubic * (x * x))), of.bind)


FUNCTIONS: dict[str, Callable[[Sum], tirx.Expr]] = {
    "leaky_relu": _leaky_relu,
    PRELU: _leaky_relu,
    "elu": _elu,
    "sigmoid": _sigmoid,
    "hardsigmoid": _hardsigmoid,
    "tanh": _tanh,
    "silu": _silu,
    "hardswish": _hardswish,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


def _clipped(line: tirx.Expr) -> tirx.Expr:
    """A line held between 0 and 1; no number stays no number."""
    least, most = _same(0, line), _same(1, line)
    return tirx.Select(line < least, least, tirx.Select(line > most, most, line))


def _logistic(x: tirx.Expr, bind: Bind) -> tirx.Expr:
    """`1 / (1 + e)` for x from 0 on, and `e / (1 + e)` below, e = exp(-|x|), so that small results are exact, too."""
    power, q = _exponential(_where_negative(x, x, _same(0, x) - x), bind)
    e = bind("e", power + power * q)
    inverse = bind("inverse", _reciprocal(bind("denominator", _same(1, x) + e), bind))
    return _where_negative(x, e * inverse, inverse)


def _exponential(x: tirx.Expr, bind: Bind) -> tuple[tirx.Expr, tirx.Expr]:
    """Return 2**n and q, of which exp(x) is made; x is not positive, and no number stays no number."""
    x, least = bind("negative", x), _same(LEAST_EXPONENT, x)
    inside = bind("inside", tirx.Select(x < least, least, x))
    # The last bits of the rounded number are n plus the bias of a float32's exponent, and are moved to its place.
    moved = ROUNDING + EXPONENT_BIAS
    rounded = bind("rounded", inside * _same(LOG2_E, x) + _same(moved, x))
    n = bind("n", rounded - _same(moved, x))
    bits = tirx.reinterpret(_like("int32", x), rounded) << _same(FRACTION_BITS, x, "int32")
    power = tirx.Select(x < least, _same(0, x), tirx.reinterpret(_like("float32", x), bits))
    r = bind("r", inside - n * _same(LN2_HIGH, x) - n * _same(LN2_LOW, x))
    return bind("power", power), bind("q", r + (r * r) * _polynomial(r, EXPM1, bind))


def _expm1(power: tirx.Expr, q: tirx.Expr) -> tirx.Expr:
    return power * q + (power - _same(1, power))


def _reciprocal(x: tirx.Expr, bind: Bind) -> tirx.Expr:
    """1 / x, x from 1 to 2."""
    inverse = bind("inverse", _polynomial(x, RECIPROCAL, bind))
    for _ in range(NEWTON_STEPS):
        inverse = bind("inverse", inverse * (_same(2, x) - x * inverse))
    return inverse


def _polynomial(x: tirx.Expr, coefficients: tuple[float, ...], bind: Bind) -> tirx.Expr:
    """The polynomial of these coefficients, that of x**0 first, by Horner's rule."""
    *others, total = (_same(each, x) for each in coefficients)
    for coefficient in reversed(others):
        total = bind("total", total * x + coefficient)
    return total


def _where_negative(x: tirx.Expr, value: tirx.Expr, otherwise: tirx.Expr) -> tirx.Expr:
    """`value` where x is below zero, and `otherwise` elsewhere, where x is no number, too."""
    return tirx.Select(x < _same(0, x), value, otherwise)


def _like(dtype: str, x: tirx.Expr) -> str:
    """A dtype with as many lanes as a value has."""
    lanes = _lanes(x)
    return f"{dtype}x{lanes}" if lanes > 1 else dtype


def _lanes(x: tirx.Expr) -> int:
    return int(x.ty.dtype.lanes)


def _same(value: float, x: tirx.Expr, dtype: str = "float32") -> tirx.Expr:
    """A constant in as many lanes as a value has."""
    constant, lanes = tirx.const(value, dtype), _lanes(x)
    return tirx.Broadcast(constant, lanes) if lanes > 1 else constant
