"""What `hexconv layout compare` does: it says what the tensors of chains take under all four layout systems."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from hexconv.analyze.layout_bytes import LayoutUsage, as_csv, usage
from hexconv.cli.answers import print_json, write_text
from hexconv.cli.cases import Batch
from hexconv.cli.show import show


def compare_layouts(paths: Sequence[Path], chip: str, csv: Path, is_wide: bool, json: bool) -> int:
    """Write the table, and show it; returns 0, or 2 if a case could not be used."""
    batch = Batch.of(paths, "hexagon")
    rows = [row for _, rows in batch.each("laying out", lambda case: usage(case, chip)) for row in rows]
    if rows:
        write_text(csv, as_csv(rows))
    if json and rows:
        print_json(rows)
    elif rows:
        show(_usage_table(rows), is_wide, ("why not", "elements"))
    return batch.code(True)


def _usage_table(rows: list[LayoutUsage]) -> Table:
    table = Table("case", "tensor", "elements", "system", "layout", "bytes", "unused", "why not")
    for row in rows:
        figures = ("", "") if row.bytes is None else (f"{row.bytes:,}", f"{row.waste_percent:.1f} %")
        shape = "x".join(str(size) for size in row.shape)
        table.add_row(row.case, row.tensor, shape, row.system, row.layout, *figures, row.refusal)
    return table
