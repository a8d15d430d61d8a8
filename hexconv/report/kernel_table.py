"""Which kernel every conv asked for and got, and why, to read."""

from collections.abc import Iterable

from rich.table import Table

from hexconv.spec import Case


def kernel_table(cases: Iterable[Case]) -> Table:
    """One row a case; where its convs get several kernels, one row a conv."""
    table = Table("case", "conv", "asked", "used", "why", title="kernels")
    for case in cases:
        alike = len(set(case.kernels)) == 1
        for number, choice in enumerate(case.kernels[:1] if alike else case.kernels, 1):
            conv = "all" if alike else str(number)
            table.add_row(case.name, conv, choice.asked or "none", choice.used, choice.why)
    return table
