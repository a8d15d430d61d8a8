"""No kernel that writes its own addresses leaves a buffer: every load and store of every drawn chain, run here."""

from pathlib import Path

import pytest
from hypothesis import given

from hexconv.analyze import cache_usage
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from tests.draws import SAME_RUN
from tests.schedule.far_padding import far_padded_cases
from tests.schedule.index_checks import indices_outside
from tests.schedule.integer_chains import hvx_cases

SCHEDULES = Path(__file__).parents[2] / "schedules"
COMMITTED = ("hvx/7x7", "hvx/same-padding", "hvx/stride-2", "hvx/b-filter-zero", "hvx/a-int16-filters")


@pytest.mark.parametrize("name", COMMITTED)
def test_no_index_of_a_committed_schedule_leaves_its_buffer(name: str) -> None:
    assert indices_outside(Case.load(SCHEDULES / f"{name}.toml")) == 0


@SAME_RUN
@given(far_padded_cases())
def test_no_index_leaves_its_buffer_where_stripes_see_only_padding(case: Case) -> None:
    assert indices_outside(case) == 0


@SAME_RUN
@given(hvx_cases())
def test_no_index_leaves_its_buffer_in_any_integer_chain(case: Case) -> None:
    assert indices_outside(case) == 0


@SAME_RUN
@given(far_padded_cases())
def test_caches_are_as_large_as_predicted_where_stripes_see_only_padding(case: Case) -> None:
    usage = cache_usage(case, lower_case(case))
    assert usage.agrees, [cache for cache in usage.caches if cache.elements != cache.predicted_elements]


@pytest.mark.simulator
@SAME_RUN
@given(far_padded_cases())
def test_chains_whose_stripes_see_only_padding_are_exact(case: Case) -> None:
    assert run_case(case, lower_case(case), Simulator(slots=False)).check.passed
