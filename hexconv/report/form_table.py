"""Show in which form each conv multiplies."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.analyze import ConvForm


def form_table(case: str, forms: Sequence[ConvForm]) -> Table:
    """Return the table: a row for each conv, with the bound that follows from the instructions that multiply."""
    table = Table(title=f"{case}: what lanes of vectors are, and the most MACs that the products allow in a packet")
    for heading in ("conv", "kernel", "lanes", "made dense"):
        table.add_column(heading)
    for heading in ("products", "MACs per packet at most"):
        table.add_column(heading, justify="right")
    for form in forms:
        figures = (form.products, form.most_macs_per_packet)
        dense = "yes" if form.made_dense else ""
        table.add_row(form.name, form.kernel, form.form, dense, *("" if n is None else str(n) for n in figures))
    return table
