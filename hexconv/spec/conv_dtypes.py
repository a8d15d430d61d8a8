"""The fields of a conv that go with the dtype of its chain: floats have activations, integers requantise."""

from hexconv.errors import InputError
from hexconv.spec.activations import CURVES, TABLE, check_parameters
from hexconv.spec.conv import Conv2d
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS


def check_filter_dtype(dtype: str, filter_dtype: str) -> None:
    """Check that filters of one dtype go with a chain of another.

    Raises:
        InputError: they don't; the text says which ones do.
    """
    allowed = FILTER_DTYPES.get(dtype, (dtype,))
    if filter_dtype not in allowed:
        raise InputError("chain.filter_dtype", filter_dtype, f"{' or '.join(allowed)} in a {dtype} chain")


def check_dtypes(where: str, conv: Conv2d, dtype: str, filter_dtype: str, is_last: bool) -> None:
    """Check that a conv states what its dtype wants, and nothing else.

    Args:
        where: the conv's place in its file, `chain.conv[0]`.
        conv: the conv.
        dtype: the dtype of the chain.
        filter_dtype: the dtype of the filter.
        is_last: whether it is the last conv, which alone may stay int32.

    Raises:
        InputError: a field does not go with the dtype, or one is missing.
    """
    if dtype in INTEGER_RANGE:
        _check_integers(where, conv, dtype, filter_dtype, is_last)
    else:
        _check_floats(where, conv, dtype)


def check_zero_point(where: str, zero_point: int, dtype: str, what: str = "a {} chain") -> None:
    """Check that a zero point is within the range of its dtype.

    Raises:
        InputError: it is outside; the text says the range.
    """
    low, high = ZERO_POINTS.get(dtype, (0, 0))
    if not low <= zero_point <= high:
        raise InputError(where, str(zero_point), f"{low} to {high} in {what.format(dtype)}")


def _check_floats(where: str, conv: Conv2d, dtype: str) -> None:
    """Refuse what is for integers alone."""
    if conv.requantize or conv.filter_zero_point:
        raise InputError(f"{where}.requantize", f"one in a {dtype} chain", "none; it is for integers")
    if conv.activation == TABLE:
        raise InputError(f"{where}.activation", f"a table in a {dtype} chain", ", ".join(CURVES))
    check_parameters(where, conv.activation, conv.activation_slope, conv.activation_offset)
    for limit in ("filter_l1", "bias_limit", "sum_limit"):
        if getattr(conv, limit) is not None:
            raise InputError(f"{where}.{limit}", f"one in a {dtype} chain", "none; it is for integers")


def _check_integers(where: str, conv: Conv2d, dtype: str, filter_dtype: str, is_last: bool) -> None:
    """Refuse codes outside of their dtype, and sums that nothing narrows."""
    if conv.bias_limit is not None and not conv.bias:
        raise InputError(f"{where}.bias_limit", str(conv.bias_limit), "none where there is no bias, or bias = true")
    _check_table(where, conv, dtype)
    if conv.requantize is None and not is_last:
        change = "give multiplier, shift and zero_point; only the last conv of an integer chain may stay int32"
        raise InputError.because(f"{where}.requantize is missing", change)
    check_zero_point(f"{where}.filter_zero_point", conv.filter_zero_point, filter_dtype, "{} filters")
    if conv.requantize:
        check_zero_point(f"{where}.requantize.zero_point", conv.requantize.zero_point, dtype)
        _check_clamp(f"{where}.requantize.clamp", conv.requantize.clamp, dtype)


def _check_clamp(where: str, clamp: tuple[int, int] | None, dtype: str) -> None:
    """Refuse a clamp that is no range of codes."""
    low, high = INTEGER_RANGE[dtype]
    if clamp and not low <= clamp[0] <= clamp[1] <= high:
        raise InputError(where, str(list(clamp)), f"codes of {dtype}, {low} to {high}")


def _check_table(where: str, conv: Conv2d, dtype: str) -> None:
    """Refuse an integer chain's activation unless it is a table of 8-bit codes that follows a requantisation."""
    if conv.activation not in ("none", TABLE):
        allowed = "none or table in an integer chain; say a relu's codes in requantize.clamp"
        raise InputError(f"{where}.activation", conv.activation, allowed)
    for parameter in ("activation_slope", "activation_offset"):
        if getattr(conv, parameter) is not None:
            raise InputError(f"{where}.{parameter}", f"one in a {dtype} chain", "none; it is for floats")
    if conv.activation == TABLE and dtype == "int16":
        raise InputError(f"{where}.activation", "a table in an int16 chain", "none; a table has a code for each of 256")
    if conv.activation == TABLE and conv.requantize is None:
        raise InputError.because(
            f"{where}.requantize is missing", "give the multiplier, shift and zero_point that make codes"
        )
    if conv.activation != TABLE and conv.table_zero_point:
        raise InputError(f"{where}.table_zero_point", str(conv.table_zero_point), 'none, or activation = "table"')
    check_zero_point(f"{where}.table_zero_point", conv.table_zero_point, dtype)
