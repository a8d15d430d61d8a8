"""Tools take turns, and rounds that the machine disturbs are known by what they did to any tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.bench import turns
from hexconv.bench.turns import Turns, halves, least, median, ratio_by_round

TIMES = st.lists(st.tuples(*[st.integers(10, 40)] * 2), min_size=1, max_size=9)


def test_tools_take_turns_in_both_orders_and_timed_runs_follow_untimed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SETTLE_SECONDS", 0)
    ran: list[str] = []
    times = turns.in_turns({"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}, rounds=3)
    turn = turns.WARMING_RUNS + turns.TIMED_RUNS
    assert "".join(ran) == "a" * turn + "b" * 2 * turn + "a" * 2 * turn + "b" * turn
    assert [[len(of_round) for of_round in rounds] for rounds in times.values()] == [[turns.TIMED_RUNS] * 3] * 2
    assert turns.WARMING_RUNS > 0


def rounds_of(times: list[tuple[int, int]]) -> Turns:
    """Rounds of two tools, a run each turn."""
    return {name: [[float(both[tool])] for both in times] for tool, name in enumerate("ab")}


def test_a_round_that_disturbed_either_tool_counts_for_none() -> None:
    times = [(10, 20), (20, 20), (10, 20), (10, 40), (11, 20), (10, 21)]
    assert halves(rounds_of(times)) == (
        rounds_of([(10, 20), (10, 20), (10, 21)]),
        rounds_of([(20, 20), (10, 40), (11, 20)]),
    )


@given(TIMES)
def test_it_does_not_matter_which_tool_is_which(times: list[tuple[int, int]]) -> None:
    for there, back in zip(halves(rounds_of(times)), halves(rounds_of([(b, a) for a, b in times])), strict=True):
        assert (there["a"], there["b"]) == (back["b"], back["a"])


@given(TIMES)
def test_rounds_that_slow_all_tools_alike_leave_the_ratio_as_it_is(times: list[tuple[int, int]]) -> None:
    both = rounds_of([(a, 3 * a) for a, _ in times])
    quieter, _ = halves(both)
    assert ratio_by_round(both["b"], both["a"]) == 3
    for some in (both, quieter):
        assert median(some["b"]) == 3 * median(some["a"])
        assert least(some["b"]) == 3 * least(some["a"])
    assert least(quieter["a"]) == least(both["a"])


def test_a_slow_time_that_one_tool_had_more_of_leaves_the_ratio_by_round() -> None:
    times = [(10, 11), (20, 22), (20, 22), (20, 11), (10, 11)]
    both = rounds_of(times)
    assert median(both["a"]) / median(both["b"]) == 20 / 11
    assert ratio_by_round(both["a"], both["b"]) == 10 / 11
