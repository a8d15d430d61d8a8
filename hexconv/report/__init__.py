"""Rows to people: tables on the terminal and as CSV."""

from hexconv.report.cache_table import cache_csv, cache_table

__all__ = ["cache_csv", "cache_table"]
