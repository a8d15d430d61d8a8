"""Show how the plans that a search recommends hold when they are lowered, counted and run."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.search.verify import Verified


def verified_table(verified: Sequence[Verified]) -> Table:
    """The table: one row a case, the search's figures beside those that TVM allocated, that were counted and run."""
    table = Table("holds", "case", "what", "found", title="verified: lowered, counted and run")
    for one in verified:
        figures = (
            ("caches", "", one.caches_agree),
            ("footprint", f"{one.footprint_bytes} bytes", one.footprint_agrees),
            ("traffic", f"{one.traffic_bytes} bytes", one.traffic_agrees),
            ("MACs", str(one.macs), one.macs_agree),
        )
        for what, value, agrees in figures:
            said = "as predicted" if agrees else "NOT as predicted"
            table.add_row(_says(agrees), one.case, what, f"{value} {said}".strip())
        for run in one.runs:
            packets = f", {run.packets} packets" if run.packets is not None else ""
            table.add_row(_says(run.passed), one.case, f"run on {run.target}", run.said + packets)
        table.add_section()
    return table


def _says(holds: bool | None) -> str:
    return "not run" if holds is None else "yes" if holds else "NO"
