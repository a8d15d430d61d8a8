"""Show in which form each conv multiplies."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.analyze import ConvForm
from hexconv.report.headed import cell, headed


def form_table(case: str, forms: Sequence[ConvForm]) -> Table:
    """Return the table: a row for each conv, with the bound that follows from the instructions that multiply."""
    title = f"{case}: what lanes of vectors are, and the most MACs that the products allow in a packet"
    words = ("conv", "kernel", "lanes", "made dense")
    table = headed(title, words, ("products", "MACs per packet at most"))
    for form in forms:
        dense = "yes" if form.made_dense else ""
        table.add_row(form.name, form.kernel, form.form, dense, cell(form.products), cell(form.most_macs_per_packet))
    return table
