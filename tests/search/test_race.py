"""The answer is the fastest of what was run: plans, the default, and the best cut."""

import json
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.report import race_lines
from hexconv.search import Answer, Lap, Question, contenders, decided, plan_chain
from hexconv.search.plan_runs import CUT, DEFAULT, PLAN
from hexconv.search.race import figures_of
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize

CONV = Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-6))
CHAIN = Chain(input=(1, 20, 20, 32), dtype="uint8", conv=(CONV, CONV))
DEFAULT_BYTES = figures_of(CHAIN, Case("c", CHAIN, Plan(), states_plan=False).settled).footprint_bytes


def planned(limit: int, objective: str = "latency") -> Answer:
    question = Question(limit, objective, Plan(storage="vtcm"), target="hexagon")  # pyright: ignore[reportArgumentType]
    return plan_chain(Case("c", CHAIN, Plan()), question)


def laps(asked: Answer, **packets: int | None) -> list[Lap]:
    """Every contender with the packets of its kind; of the plans the first is the fastest."""
    found = []
    for number, contender in enumerate(contenders(asked)):
        count = packets[contender.kind]
        found.append(Lap(contender, count + number if count is not None else None, "" if count else "too slow"))
    return found


def test_five_plans_that_differ_and_the_default_are_run() -> None:
    found = contenders(planned(1 << 22))
    assert [contender.kind for contender in found[:6]] == [PLAN] * 5 + [DEFAULT]
    figures = [contender.figures for contender in found if contender.kind == PLAN]
    assert len({(one.latency_packets, one.traffic_bytes, one.footprint_bytes) for one in figures if one}) == 5


def test_a_default_that_does_not_fit_and_other_objectives_are_not_run() -> None:
    assert DEFAULT not in [contender.kind for contender in contenders(planned(DEFAULT_BYTES - 1))]
    assert contenders(planned(DEFAULT_BYTES, "traffic")) == ()


def test_the_fastest_is_the_answer_and_so_is_its_case() -> None:
    asked = planned(1 << 22)
    slow_best = laps(asked, plan=100, default=90, cut=95)
    answer = decided(asked, slow_best)
    assert answer.fused
    assert answer.fused.case.plan == Case("c", CHAIN, Plan(), states_plan=False).settled
    assert answer.race
    assert answer.race.fastest
    assert answer.race.fastest.packets == 90 + [lap.contender.kind for lap in slow_best].index(DEFAULT)
    assert [winner.case for winner in answer.winners] == [answer.fused.case]
    last = laps(asked, plan=100, default=300, cut=200)
    reordered = [Lap(lap.contender, 1) if number == 3 else lap for number, lap in enumerate(last)]
    fourth = decided(asked, reordered)
    assert fourth.found.best == asked.found.leading[3]
    assert fourth.found.runner_up == asked.found.leading[0]


def test_a_cut_that_is_slower_than_the_whole_is_no_best_cut() -> None:
    pad = Padding(top=1, left=1, bottom=1, right=1)
    dense = Conv2d(out_channels=128, kernel=(3, 3), padding=pad, requantize=Requantize(multiplier=1 << 30, shift=-9))
    chain = Chain(input=(1, 16, 16, 128), dtype="uint8", conv=(dense, dense))
    question = Question(400_000, "latency", Plan(storage="vtcm"), target="hexagon")
    asked = plan_chain(Case("c", chain, Plan()), question)
    assert CUT in [contender.kind for contender in contenders(asked)]
    answer = decided(asked, [Lap(one, 9 if one.kind == CUT else 5) for one in contenders(asked)])
    assert answer.cuts.best
    assert len(answer.cuts.best.pieces) == 1
    kept = decided(asked, [Lap(one, 3 if one.kind == CUT else 5) for one in contenders(asked)])
    assert kept.cuts.best == asked.cuts.best


def test_where_nothing_was_run_the_model_decides_and_the_reason_is_told() -> None:
    asked = planned(1 << 22)
    answer = decided(asked, laps(asked, plan=None, default=None, cut=None))
    assert answer.found == asked.found
    assert answer.race
    assert all("too slow" in line for line in race_lines(answer.race))


@pytest.mark.simulator
def test_the_answer_is_never_slower_than_what_a_run_takes_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.toml"
    chain = Chain(input=(1, 8, 8, 32), dtype="uint8", conv=(CONV,))
    case = Case("c", chain, Plan(), states_plan=False)
    path.write_text(case.to_toml())
    limit = figures_of(chain, case.settled).footprint_bytes
    options = ["--objective", "latency", "--vtcm", f"{limit}B", "-o", str(tmp_path / "answers")]
    assert exit_code(["best", str(path), *options]) == 0
    assert "packets, counted" in capsys.readouterr().out
    by_default, answer = (_packets(file, capsys) for file in (path, tmp_path / "answers" / "c.toml"))
    assert answer <= by_default


def _packets(case: Path, capsys: pytest.CaptureFixture[str]) -> int:
    assert exit_code(["run", str(case), "--target", "hexagon", "--json", "--no-slots"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    return row["packets"]
