"""Recommended cases, verified, to read."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.search.verify import Run, Verified


def verified_table(verified: Sequence[Verified]) -> Table:
    """Every figure of the search beside what TVM allocated, what was counted, and what runs said."""
    table = Table(title="verified: lowered, counted and run")
    for heading in ("case", "caches", "footprint bytes", "traffic bytes", "MACs", "llvm", "hexagon"):
        table.add_column(heading)
    for one in verified:
        figures = (
            (one.footprint_bytes, one.footprint_agrees),
            (one.traffic_bytes, one.traffic_agrees),
            (one.macs, one.macs_agree),
        )
        table.add_row(
            one.case, _says(one.caches_agree), *(_figure(*figure) for figure in figures), *map(_run, one.runs)
        )
    return table


def _figure(value: int, agrees: bool) -> str:
    return f"{value} {_says(agrees)}"


def _says(agrees: bool) -> str:
    return "as predicted" if agrees else "NOT as predicted"


def _run(run: Run) -> str:
    """One run in words."""
    if run.passed is None:
        return run.said
    packets = f", {run.packets} packets" if run.packets is not None else ""
    return f"{'right' if run.passed else 'WRONG'} ({run.said}{packets})"
