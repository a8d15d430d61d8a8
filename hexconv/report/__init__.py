"""Rows to people: tables on the terminal and as CSV."""

from hexconv.report.arena_table import arena_table
from hexconv.report.cache_table import cache_csv, cache_table
from hexconv.report.run_table import run_csv
from hexconv.report.work_table import work_table

__all__ = ["arena_table", "cache_csv", "cache_table", "run_csv", "work_table"]
