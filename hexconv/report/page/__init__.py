"""Build the HTML page of `hexconv report`, with its plots."""

from hexconv.report.page.page import Page, anchor

__all__ = ["Page", "anchor"]
