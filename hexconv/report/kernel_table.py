"""Show which kernel every conv asked for, which it got, and why."""

from collections.abc import Iterable

from rich.table import Table

from hexconv.spec import Case


def kernel_table(cases: Iterable[Case]) -> Table:
    """The table of kernels: one row a case, or one row a conv where its convs get different kernels."""
    table = Table("case", "conv", "asked", "used", "why", title="kernels")
    for case in cases:
        alike = len(set(case.kernels)) == 1
        for number, choice in enumerate(case.kernels[:1] if alike else case.kernels, 1):
            conv = "all" if alike else str(number)
            table.add_row(case.name, conv, choice.asked or "none", choice.used, choice.why)
    return table
