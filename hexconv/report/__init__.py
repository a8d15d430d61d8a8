"""Rows to people: tables on the terminal and as CSV."""

from hexconv.report.cache_table import cache_csv, cache_table
from hexconv.report.work_table import work_table

__all__ = ["cache_csv", "cache_table", "work_table"]
