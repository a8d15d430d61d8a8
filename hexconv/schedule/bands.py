"""Bands of rows, one a thread, as guards of a schedule ask for them: calls where no loop has the numbers yet.

The loop over bands and the other guards of a band come once TVM has found the sizes of caches, which are those of the
whole chain (`hexconv.lower.bands`). Calls become variables there.
"""

from tvm import tirx

FIRST_STRIPE = "first_stripe"


def first_row(tensor: int) -> str:
    """The name of a number: the first row of a tensor that the band makes."""
    return f"first_row{tensor}"


def end_row(tensor: int) -> str:
    """The name of a number: one past the last row of a tensor that the band makes."""
    return f"end_row{tensor}"


def of_band(name: str) -> tirx.Expr:
    """A number of the band, by its name."""
    return tirx.call_pure_extern("int32", f"hexconv_{name}")
