"""Figures that the README and the pages repeat are those of the committed tables."""

from pathlib import Path

import pytest

from reports.quoted import quoted


@pytest.mark.parametrize("page", quoted(), ids=lambda page: page.name)
def test_a_page_repeats_the_figures_of_the_committed_tables(page: Path) -> None:
    missing = set(quoted()[page]) - set(page.read_text().splitlines())
    assert not missing, "write them by `python -m reports.quoted`"
