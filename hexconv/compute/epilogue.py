"""What happens to a conv's sums on their way to the next tensor: bias, activation, requantisation, cast."""

from tvm import te, tirx

from hexconv.compute.stored import Position, Stored
from hexconv.spec.chain import INTEGER_RANGE
from hexconv.spec.conv import Conv2d
from hexconv.spec.requantize import Requantize


def needs_epilogue(conv: Conv2d, accumulator_dtype: str, output_dtype: str) -> bool:
    """Whether the sums are not yet the output: then they get an accumulator tile of their own."""
    return conv.bias or conv.activation != "none" or conv.requantize is not None or accumulator_dtype != output_dtype


def epilogue(
    conv: Conv2d, sums: te.Tensor, bias: te.Tensor | None, output: Stored, fringe: int, dtype: str, name: str
) -> te.Tensor:
    """The output of a conv from its sums, packed alike; `fringe` wherever no logical element is.

    Args:
        conv: what to apply.
        sums: in the accumulator's dtype.
        bias: [K] in the accumulator's dtype, or None.
        output: which part of both is stored, and how.
        fringe: the value outside of the logical region: what the next conv must read there, 0 at the end of a chain.
        dtype: of the output.
        name: of the stage, its block and its buffer.
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(output.layout, index)
        value = sums[index]
        value = value + bias[at.channel] if bias is not None else value
        value = activated(value, conv.activation, sums.dtype)
        value = requantized(value, conv.requantize, dtype) if conv.requantize else value.astype(dtype)
        return at.where_logical(output, value, tirx.const(fringe, dtype))

    return te.compute(output.layout.physical_shape, element, name=name)


def activated(value: tirx.Expr, activation: str, dtype: str) -> tirx.Expr:
    """A float behind its activation (numpy's twin is `reference.activated`)."""
    if activation == "none":
        return value
    positive = te.max(value, tirx.const(0, dtype))
    return te.min(positive, tirx.const(6, dtype)) if activation == "relu6" else positive


def requantized(value: tirx.Expr, by: Requantize, dtype: str) -> tirx.Expr:
    """`Requantize` in TIR, in 64 bits so that nothing overflows (numpy's twin is `reference.requantized`)."""
    wide = _clamped(value.astype("int64") * (1 << max(by.shift, 0)), -(2**31), 2**31 - 1)
    high = (wide * tirx.const(by.multiplier, "int64") + tirx.const(1 << 30, "int64")) >> tirx.const(31, "int64")
    shifted = _rounding_shift(high, max(-by.shift, 0), by.rounding)
    return _clamped(shifted + tirx.const(by.zero_point, "int64"), *INTEGER_RANGE[dtype]).astype(dtype)


def _rounding_shift(value: tirx.Expr, bits: int, rounding: str) -> tirx.Expr:
    """`value / 2**bits` to the nearest, ties away from zero or up."""
    if bits == 0:
        return value
    half = tirx.const(1 << (bits - 1), "int64")
    # An arithmetic shift by 63 is -1 for negative values: their ties then fall away from zero.
    nudge = half + (value >> tirx.const(63, "int64")) if rounding == "away" else half
    return (value + nudge) >> tirx.const(bits, "int64")


def _clamped(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """`value` held between two 64-bit constants."""
    return te.min(te.max(value, tirx.const(low, "int64")), tirx.const(high, "int64"))
