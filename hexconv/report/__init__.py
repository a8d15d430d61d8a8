"""Rows to people: tables on the terminal and as CSV."""

from hexconv.report.arena_table import arena_table
from hexconv.report.best_rows import network_row
from hexconv.report.best_table import answer_table, cuts_lines, cuts_table, front_table, proof_lines, shortfall_lines
from hexconv.report.cache_table import cache_csv, cache_table
from hexconv.report.front_plot import write_front_plot
from hexconv.report.kernel_table import kernel_table
from hexconv.report.network_table import network_lines, network_table
from hexconv.report.run_table import causes, run_csv, run_row
from hexconv.report.verified_table import verified_table
from hexconv.report.work_table import work_table

__all__ = [
    "answer_table",
    "arena_table",
    "cache_csv",
    "cache_table",
    "causes",
    "cuts_lines",
    "cuts_table",
    "front_table",
    "kernel_table",
    "network_lines",
    "network_row",
    "network_table",
    "proof_lines",
    "run_csv",
    "run_row",
    "shortfall_lines",
    "verified_table",
    "work_table",
    "write_front_plot",
]
