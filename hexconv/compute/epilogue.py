"""What happens to a conv's sums on their way to the next tensor: bias, activation, requantisation, cast."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm import te, tirx

from hexconv.compute.stored import Position, Stored
from hexconv.spec.chain import INTEGER_RANGE
from hexconv.spec.conv import TABLE, Conv2d
from hexconv.spec.requantize import FRACTION_BITS, Requantize

Vectors = Mapping[str, te.Tensor]
"""What a conv has beside filter and bias: `multiplier` and `shift`, one a channel, and `table`."""


@dataclass(frozen=True)
class Beside:
    """What a conv has beside its filter.

    Attributes:
        bias: [K] in the accumulator's dtype, or None. It and all others may be buffers as well.
        vectors: of its requantisation, [K] or more each, and its table, [256].
        place_of_entry: where a table has the entry of a code, 0 to 255.
    """

    bias: te.Tensor | None
    vectors: Vectors
    place_of_entry: Callable[[tirx.Expr], tirx.Expr]


def needs_epilogue(conv: Conv2d, accumulator_dtype: str, output_dtype: str) -> bool:
    """Whether the sums are not yet the output: then they get an accumulator tile of their own."""
    return conv.bias or conv.activation != "none" or conv.requantize is not None or accumulator_dtype != output_dtype


def epilogue(
    conv: Conv2d,
    sums: te.Tensor,
    beside: Beside,
    output: Stored,
    fringe: int,
    dtype: str,
    name: str,
) -> te.Tensor:
    """The output of a conv from its sums, packed alike; `fringe` wherever no logical element is.

    Args:
        conv: what to apply.
        sums: in the accumulator's dtype.
        beside: what else the conv has.
        output: which part of both is stored, and how.
        fringe: the value outside of the logical region: what the next conv must read there, 0 at the end of a chain.
        dtype: of the output.
        name: of the stage, its block and its buffer.
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(output.layout, index)
        value = finished(conv, sums[index], sums.dtype, beside, at.channel, dtype)
        outside = tirx.const(fringe, dtype)
        return at.where_logical(output, output.as_stored(value, at), output.as_stored(outside, at))

    return te.compute(output.layout.physical_shape, element, name=name)


def finished(conv: Conv2d, total: tirx.Expr, of_sums: str, beside: Beside, channel: tirx.Expr, dtype: str) -> tirx.Expr:
    """One element of the output, of `dtype`, from its sum, of `of_sums`."""
    value = total if beside.bias is None else total + beside.bias[channel]
    value = activated(value, conv.activation, of_sums)
    if conv.requantize:
        by_channel = {what: beside.vectors[what][channel] for what in conv.requantize.vectors}
        value = requantized(value, conv.requantize, by_channel, dtype)
    if conv.activation == TABLE:
        value = beside.vectors[TABLE][beside.place_of_entry(value.astype("int32") - INTEGER_RANGE[dtype][0])]
    return value.astype(dtype)


def activated(value: tirx.Expr, activation: str, dtype: str) -> tirx.Expr:
    """A float behind its activation (numpy's twin is `reference.activated`); of integers, sums as they are."""
    if activation in ("none", TABLE):
        return value
    positive = te.max(value, tirx.const(0, dtype))
    return te.min(positive, tirx.const(6, dtype)) if activation == "relu6" else positive


def requantized(value: tirx.Expr, by: Requantize, by_channel: Mapping[str, tirx.Expr], dtype: str) -> tirx.Expr:
    """`Requantize` in TIR, in 64 bits so that nothing overflows (numpy's twin is `reference.requantized`)."""
    multiplier, shift = (
        by_channel[what].astype("int64") if what in by_channel else tirx.const(getattr(by, what), "int64")
        for what in ("multiplier", "shift")
    )
    wide = value.astype("int64")
    rounded = (
        _once(wide * multiplier, FRACTION_BITS - shift)
        if by.rounding == "even"
        else _twice(wide, by, multiplier, shift)
    )
    moved = rounded + tirx.const(by.zero_point, "int64")
    shown = _hidden(moved) if by.clamp or _is_little(by) else moved
    return _clamped(shown, *by.codes(*INTEGER_RANGE[dtype])).astype(dtype)


def _is_little(by: Requantize) -> bool:
    """Whether every sum of 32 bits becomes less than one, so that beside a zero point at an end one code is left."""
    return isinstance(by.shift, int) and by.shift < 0 and by.most_multiplier < 1 << -by.shift


def _hidden(value: tirx.Expr) -> tirx.Expr:
    """A value of 64 bits whose range TVM doesn't know.

    Where it can prove that a clamp leaves one code, it makes the result a constant, and a conv then reads nothing.
    """
    return tirx.reinterpret("int64", tirx.reinterpret("uint64", value))


def _once(product: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """`product / 2**bits` to the nearest, half to even; bits is 1 or more."""
    one = tirx.const(1, "int64")
    is_odd = tirx.bitwise_and(product >> bits, one)
    return (product + ((one << (bits - one)) - one) + is_odd) >> bits


def _twice(wide: tirx.Expr, by: Requantize, multiplier: tirx.Expr, shift: tirx.Expr) -> tirx.Expr:
    """TFLite's high half of the product, then its shift."""
    left = max(by.shift, 0) if isinstance(by.shift, int) else 0
    wide = _clamped(wide * (1 << left), -(2**31), 2**31 - 1)
    if left:  # so that LLVM knows of a product of words
        wide = wide.astype("int32").astype("int64")
    high = (wide * multiplier + tirx.const(1 << 30, "int64")) >> tirx.const(FRACTION_BITS, "int64")
    if isinstance(by.shift, int) and by.shift >= 0:
        return high
    bits, one = tirx.const(0, "int64") - shift, tirx.const(1, "int64")
    half = (one << bits) >> one
    # An arithmetic shift by 63 is -1 for negative values: their ties then fall away from zero, where there are any.
    away = (high >> tirx.const(63, "int64")) * te.min(bits, one) if by.rounding == "away" else tirx.const(0, "int64")
    return (high + half + away) >> bits


def _clamped(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """`value` held between two 64-bit constants."""
    return te.min(te.max(value, tirx.const(low, "int64")), tirx.const(high, "int64"))
