"""The front of packets (or time) and bytes, against a front of all plans one by one."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.search import Question
from hexconv.search.found import quickest
from hexconv.spec.choices import Objective

PLANS = st.lists(st.tuples(*(st.integers(1000, 1000 + most) for most in (20, 4, 5, 5))), max_size=40)
"""Plans as their times, bytes, packets and footprints: some are about as quick as others, and move as much."""


@pytest.mark.parametrize("objective", ["time", "latency", "traffic"])
@given(PLANS)
def test_the_quickest_plans_are_those_that_no_other_one_beats(
    objective: Objective, plans: list[tuple[int, int, int, int]]
) -> None:
    question = Question(1 << 20, objective, equally_quick=0.1)
    times, moved, packets, sizes = (np.array([plan[which] for plan in plans], float) for which in range(4))
    grid = SimpleNamespace(
        traffic_bytes=moved,
        latency_packets=packets if objective == "time" else times,
        footprint_bytes=sizes,
        time_packets=lambda _speed: times,
        figures=lambda number: number,
    )
    expected = list[int]()
    packets = grid.latency_packets
    for which in sorted(range(len(plans)), key=lambda at: (times[at], moved[at], packets[at], sizes[at])):
        if not expected or moved[which] < moved[expected[-1]]:
            expected.append(which)
    alike = [
        [
            at
            for at in range(len(plans))
            if moved[at] == moved[point] and times[at] <= times[point] * (1 + question.slack / 2)
        ]
        for point in expected
    ]
    stand = [min(each, key=lambda at: (packets[at], sizes[at])) for each in alike]
    assert list(quickest(cast(Any, grid), np.arange(len(plans)), question)) == stand
