"""The stages of lowering: each once in its list, with a docstring, and on the page that names them in their order."""

import re
from pathlib import Path

import pytest

from hexconv.lower.pipeline import BLOCK_STAGES, ENGINE_STAGES, FLAT_STAGES, ROW_STAGES, Stage

PAGE = Path(__file__).parents[2] / "hexconv" / "docs" / "contributing.md"


@pytest.mark.parametrize(
    "stages", [BLOCK_STAGES + FLAT_STAGES, ROW_STAGES, ENGINE_STAGES], ids=["blocks", "rows", "matrix engine"]
)
def test_the_page_names_the_stages_in_their_order(stages: tuple[Stage, ...]) -> None:
    names = [stage.__name__ for stage in stages]
    assert len({*names}) == len(names)
    assert all(stage.__doc__ for stage in stages)
    told = [re.findall(r"`(\w+)`", line) for line in PAGE.read_text().splitlines() if "lowering" in line]
    assert names in told
