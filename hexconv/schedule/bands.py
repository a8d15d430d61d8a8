"""Bands of rows, one per thread, in the guards of a schedule: calls stand for numbers that no loop defines yet.

The loop over bands and the other guards of a band are added once TVM has found the sizes of caches, which are those of
the whole chain (`hexconv.lower.bands`). There the calls become variables.
"""

from tvm import tirx

FIRST_STRIPE = "first_stripe"


def first_row(tensor: int) -> str:
    """Return the name of a number of the band: the first row of a tensor that the band makes."""
    return f"first_row{tensor}"


def end_row(tensor: int) -> str:
    """Return the name of a number of the band: one past the last row of a tensor that the band makes."""
    return f"end_row{tensor}"


def of_band(name: str) -> tirx.Expr:
    """Return the call that stands for a number of the band."""
    return tirx.call_pure_extern("int32", f"hexconv_{name}")
