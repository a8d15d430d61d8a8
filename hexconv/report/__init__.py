"""Present results to people: tables on the terminal, CSV, JSON rows, plots and the HTML page."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred
from hexconv.report.network_table import call_lines, network_lines, network_table

if TYPE_CHECKING:
    from hexconv.report.best_table import (
        answer_table,
        beside_lines,
        bound_lines,
        cuts_lines,
        cuts_table,
        front_table,
        network_row,
        outside_lines,
        plan_lines,
        proof_lines,
        quick_table,
        race_lines,
        race_table,
        shortfall_lines,
        verdict_line,
        verified_table,
    )
    from hexconv.report.check_tables import (
        cache_csv,
        cache_row,
        cache_table,
        causes,
        form_table,
        run_csv,
        run_row,
        work_table,
    )
    from hexconv.report.network_verdict import network_verdict_lines, network_verdict_table
    from hexconv.run.profile import perfetto_json

_HOMES = {
    "hexconv.report.best_table": (
        "answer_table",
        "beside_lines",
        "bound_lines",
        "cuts_lines",
        "cuts_table",
        "front_table",
        "network_row",
        "outside_lines",
        "plan_lines",
        "proof_lines",
        "quick_table",
        "race_lines",
        "race_table",
        "shortfall_lines",
        "verdict_line",
        "verified_table",
    ),
    "hexconv.report.check_tables": (
        "cache_csv",
        "cache_row",
        "cache_table",
        "causes",
        "form_table",
        "run_csv",
        "run_row",
        "work_table",
    ),
    "hexconv.report.network_verdict": ("network_verdict_lines", "network_verdict_table"),
    "hexconv.run.profile": ("perfetto_json",),
}

__all__ = [
    "answer_table",
    "beside_lines",
    "plan_lines",
    "quick_table",
    "bound_lines",
    "cache_csv",
    "cache_row",
    "cache_table",
    "causes",
    "cuts_lines",
    "cuts_table",
    "front_table",
    "call_lines",
    "network_lines",
    "network_row",
    "network_table",
    "network_verdict_lines",
    "network_verdict_table",
    "outside_lines",
    "perfetto_json",
    "proof_lines",
    "race_lines",
    "race_table",
    "run_csv",
    "run_row",
    "shortfall_lines",
    "verdict_line",
    "verified_table",
    "work_table",
    "form_table",
]

__getattr__ = deferred(__name__, _HOMES)
