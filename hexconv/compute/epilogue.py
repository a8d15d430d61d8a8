"""The epilogue of a conv, from its sums to the next tensor: bias, activation, requantisation, cast."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm import te, tirx

from hexconv.compute.activations import activation
from hexconv.compute.stored import Position, Stored
from hexconv.spec.activations import PRELU, SLOPE, TABLE
from hexconv.spec.conv import Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import FRACTION_BITS, Requantize

Vectors = Mapping[str, te.Tensor]
"""What a conv has beside its filter and bias: per-channel `multiplier` and `shift`, `table`, or `slope`."""


@dataclass(frozen=True)
class Beside:
    """The arguments that a conv has beside its filter.

    Attributes:
        bias: [K] of int32, or of float32 for floats, or None. It may be a buffer instead of a TE tensor, as may all
            vectors.
        vectors: the per-channel values of its requantisation, [K] or more each, and its table, [256].
        place_of_entry: from a code, 0 to 255, to the place of its entry in the table.
    """

    bias: te.Tensor | None
    vectors: Vectors
    place_of_entry: Callable[[tirx.Expr], tirx.Expr]


def needs_epilogue(conv: Conv2d, accumulator_dtype: str, output_dtype: str) -> bool:
    """Whether the sums are not yet the output, so that they need an accumulator tile of their own."""
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
    """Compute the output of a conv from its sums, packed as they are; `fringe` wherever there is no logical element.

    Args:
        conv: the conv whose epilogue is applied.
        sums: the packed sums, in the accumulator's dtype.
        beside: the conv's bias, vectors and table.
        output: which part of the sums and of the output is stored, and how.
        fringe: the value outside of the logical region: what the next conv must read there, or 0 at the end of a chain.
        dtype: the dtype of the output.
        name: the name of the stage, of its block and of its buffer.
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(output.layout, index)
        value = finished(conv, sums(*index), sums.dtype, beside, at.channel, dtype)
        outside = tirx.const(fringe, dtype)
        return at.where_logical(output, output.as_stored(value, at), output.as_stored(outside, at))

    return te.compute(output.layout.physical_shape, element, name=name)


def finished(conv: Conv2d, total: tirx.Expr, of_sums: str, beside: Beside, channel: tirx.Expr, dtype: str) -> tirx.Expr:
    """One element of the output, in `dtype`, from its sum, in the dtype `of_sums`."""
    value = total if beside.bias is None else total + beside.bias[channel].astype(of_sums)
    if conv.activation != TABLE:
        value = activation(conv, value, beside.vectors[SLOPE][channel] if conv.activation == PRELU else None)
    if conv.requantize:
        by_channel = {what: beside.vectors[what][channel] for what in conv.requantize.vectors}
        value = requantized(value, conv.requantize, by_channel, dtype)
    if conv.activation == TABLE:
        value = beside.vectors[TABLE][beside.place_of_entry(value.astype("int32") - INTEGER_RANGE[dtype][0])]
    return value.astype(dtype)


def requantized(value: tirx.Expr, by: Requantize, by_channel: Mapping[str, tirx.Expr], dtype: str) -> tirx.Expr:
    """Requantise a sum in TIR, in 64 bits so that nothing overflows (numpy's twin is `reference.requantized`)."""
    multiplier, shift = (
        by_channel[what].astype("int64") if what in by_channel else tirx.const(getattr(by, what), "int64")
        for what in ("multiplier", "shift")
    )
    wide = value.astype("int64")
    wide = wide if by.saturates_at is None else _clamped(wide, -by.saturates_at, by.saturates_at)
    rounded = (
        _to_even(wide * multiplier, by, FRACTION_BITS - shift)
        if by.rounding == "even"
        else _twice(wide, by, multiplier, shift)
    )
    moved = rounded + tirx.const(by.zero_point, "int64")
    shown = _hidden(moved) if by.clamp or _is_little(by) else moved
    return _clamped(shown, *by.codes(*INTEGER_RANGE[dtype])).astype(dtype)


def _is_little(by: Requantize) -> bool:
    """Whether scaling makes any 32-bit sum less than one: a zero point at an end of the range then leaves one code."""
    return isinstance(by.shift, int) and by.shift < 0 and by.most_multiplier < 1 << -by.shift


def _hidden(value: tirx.Expr) -> tirx.Expr:
    """A 64-bit value whose range is hidden from TVM.

    Where TVM can prove that a clamp leaves one code, it makes the result a constant, and the conv then reads nothing.
    """
    return tirx.reinterpret("int64", tirx.reinterpret("uint64", value))


def _to_even(product: tirx.Expr, by: Requantize, bits: tirx.Expr) -> tirx.Expr:
    """Round `product / 2**bits` half to even, after it is rounded half up to the stated binary places, if any are."""
    if by.fraction_bits is None:
        return _once(product, bits)
    dropped = FRACTION_BITS - by.lift
    kept = (product + tirx.const(1 << (dropped - 1), "int64")) >> tirx.const(dropped, "int64")
    return _once(kept, tirx.const(by.fraction_bits, "int64"))


def _once(product: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """`product / 2**bits` rounded to nearest, ties to even; `bits` is 1 or more."""
    one = tirx.const(1, "int64")
    is_odd = tirx.bitwise_and(product >> bits, one)
    return (product + ((one << (bits - one)) - one) + is_odd) >> bits


def _twice(wide: tirx.Expr, by: Requantize, multiplier: tirx.Expr, shift: tirx.Expr) -> tirx.Expr:
    """Scale as TFLite does: round the high half of the product, then round again in the shift."""
    left = max(by.shift, 0) if isinstance(by.shift, int) else 0
    wide = _clamped(wide * (1 << left), -(2**31), 2**31 - 1)
    if left:  # so that LLVM knows that it multiplies 32-bit words
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
