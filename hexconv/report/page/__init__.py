"""The HTML page and its plots."""

from hexconv.report.page.page import Page, anchor

__all__ = ["Page", "anchor"]
