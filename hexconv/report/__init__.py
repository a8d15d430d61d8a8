"""Rows to people: tables on the terminal and as CSV."""

from hexconv.report.cache_table import cache_csv, cache_table
from hexconv.report.run_table import run_csv

__all__ = ["cache_csv", "cache_table", "run_csv"]
