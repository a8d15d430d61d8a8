"""The answer is the fastest of what was run: plans, the default, and the best cut."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from random import Random

import pytest

from hexconv.cli.app import exit_code
from hexconv.report import race_lines
from hexconv.search import Answer, ContenderRun, Question, best_plan, contenders, decided, plan_chain
from hexconv.search.grid import figures_of
from hexconv.search.machine import rates
from hexconv.search.plan_runs import ERROR_BETWEEN, Races, counted, key_of, stake
from hexconv.search.planned_chains import CUT, DEFAULT, PLAN
from hexconv.search.question import SLACK
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, Target

CONV = Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-6))
CHAIN = Chain(input=(1, 20, 20, 32), dtype="uint8", conv=(CONV, CONV))
DEFAULT_BYTES = figures_of(CHAIN, Case("c", CHAIN, Plan(), states_plan=False).settled, rates("v68")).footprint_bytes

SMALLEST_BYTES = best_plan(CHAIN, Question(1 << 22, "footprint", Plan(storage="vtcm"))).smallest.footprint_bytes


def planned(limit: int, objective: str = "latency") -> Answer:
    question = Question(limit, objective, Plan(storage="vtcm"), target="hexagon")  # pyright: ignore[reportArgumentType]
    return plan_chain(Case("c", CHAIN, Plan()), question)


def runs(asked: Answer, **packets: int | None) -> list[ContenderRun]:
    """Every contender with the packets of its kind; of the plans the first is the fastest."""
    found = []
    for number, contender in enumerate(contenders(asked)):
        count = packets[contender.kind]
        found.append(
            ContenderRun(contender, count + number if count is not None else None, "" if count else "too slow")
        )
    return found


def test_run_is_what_the_model_can_not_part_and_what_takes_no_plan() -> None:
    asked = planned(1 << 22)
    found, fewest = contenders(asked), asked.cuts.quick[0].latency_packets
    assert DEFAULT in [contender.kind for contender in found]
    error = asked.found.proof.model_error
    assert error
    assert all(each.model_packets <= fewest * (1 + error) for each in found if each.kind != DEFAULT)
    assert asked.cuts.quick[0] in [each.cut for each in found]
    assert len({each.cases for each in found}) == len(found) > 2


def test_a_default_that_does_not_fit_and_other_objectives_are_not_run() -> None:
    assert DEFAULT not in [contender.kind for contender in contenders(planned(DEFAULT_BYTES - 1))]
    for objective in ("time", "footprint"):
        assert contenders(planned(DEFAULT_BYTES, objective)) == ()


@pytest.mark.parametrize("limit", [1 << 22, 1 << 18, 1 << 17, 100_000, 85_000])
def test_of_plans_that_move_least_the_runs_take_the_one_with_the_fewest_packets(limit: int) -> None:
    chain = replace(CHAIN, input=(1, 40, 40, 32), output_layout="NHWC")
    asked = plan_chain(Case("c", chain, Plan()), Question(limit, "traffic", target="hexagon"))
    (first, *others), best = contenders(asked), asked.cuts.best
    assert best
    assert first.cut == best
    assert {each.cut.traffic_bytes for each in others} == {best.traffic_bytes}
    assert all(each.cut.footprint_bytes <= limit for each in others)
    rows = chain.shapes[-1][1]
    stripes = [ceil(rows / each.cases[0].plan.stripe_rows) for each in others if each.kind == PLAN]
    assert all(4 * fewer <= more for fewer, more in pairwise(stripes))
    for winner in (first, *others):
        runs = [ContenderRun(each, 1000 if each == winner else 1001) for each in (first, *others)]
        answer = decided(asked, runs)
        assert answer.cuts.best == winner.cut
        assert answer.found.best == winner.cut.pieces[0].figures


def test_nothing_is_run_for_the_least_traffic_of_scalar_code_of_pieces_and_of_this_machine() -> None:
    floats = Chain(input=(1, 20, 20, 32), conv=(replace(CONV, kernel=(1, 1), requantize=None),))
    asking: tuple[tuple[Chain, Target, int, int], ...] = (
        (floats, "hexagon", 1 << 22, 1),
        (CHAIN, "llvm", 1 << 22, 1),
        (CHAIN, "hexagon", SMALLEST_BYTES - 1, 2),
    )
    for chain, target, limit, pieces in asking:
        asked = plan_chain(Case("c", chain, Plan()), Question(limit, "traffic", target=target))
        assert asked.cuts.best
        assert len(asked.cuts.best.pieces) == pieces
        assert contenders(asked) == ()


def test_of_the_quickest_runs_the_one_that_moves_least_is_the_answer_and_so_is_its_case() -> None:
    asked = planned(1 << 22)
    for number, contender in enumerate(contenders(asked)):
        counts = [1000 if number == other else 2000 for other in range(len(contenders(asked)))]
        answer = decided(asked, [ContenderRun(*each) for each in zip(contenders(asked), counts, strict=True)])
        assert answer.cuts.best == contender.cut
        assert tuple(winner.case for winner in answer.winners) == contender.cases
    alike = decided(asked, [ContenderRun(each, 1000 + at) for at, each in enumerate(contenders(asked))])
    assert alike.cuts.best
    assert alike.cuts.best.traffic_bytes == min(each.cut.traffic_bytes for each in contenders(asked))


def test_a_cut_is_the_answer_where_it_is_quicker() -> None:
    pad = Padding(top=1, left=1, bottom=1, right=1)
    dense = Conv2d(out_channels=128, kernel=(3, 3), padding=pad, requantize=Requantize(multiplier=1 << 30, shift=-9))
    chain = Chain(input=(1, 16, 16, 128), dtype="uint8", conv=(dense, dense))
    question = Question(250_000, "latency", Plan(storage="vtcm"), target="hexagon")
    asked = plan_chain(Case("c", chain, Plan()), question)
    assert {CUT, PLAN} <= {contender.kind for contender in contenders(asked)}
    for kind, pieces in ((CUT, 2), (PLAN, 1)):
        answer = decided(asked, [ContenderRun(one, 5 if one.kind == kind else 9) for one in contenders(asked)])
        assert answer.cuts.best
        assert len(answer.cuts.best.pieces) == len(answer.winners) == pieces


def test_where_nothing_was_run_the_model_decides_and_the_reason_is_told() -> None:
    asked = planned(1 << 22)
    answer = decided(asked, runs(asked, plan=None, default=None, cut=None))
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
    limit = figures_of(chain, case.settled, rates("v68")).footprint_bytes
    options = ["--objective", "latency", "--vtcm", f"{limit}B", "-o", str(tmp_path / "answers")]
    assert exit_code(["best", str(path), *options]) == 0
    assert "packets, counted" in capsys.readouterr().out
    by_default, answer = (_packets(file, capsys) for file in (path, tmp_path / "answers" / "c.toml"))
    assert answer <= by_default


def _packets(case: Path, capsys: pytest.CaptureFixture[str]) -> int:
    assert exit_code(["run", str(case), "--target", "hexagon", "--json", "--no-slots"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    return row["packets"]


def scaled(chain: Chain, multiplier: int, zero_point: int) -> Chain:
    """Return a chain with other numbers in its last conv."""
    *convs, last = chain.conv
    assert last.requantize
    how = replace(last.requantize, multiplier=multiplier, zero_point=zero_point)
    return replace(chain, conv=(*convs, replace(last, requantize=how)))


@cache
def planned_of(rows: int, channels: int, multiplier: int) -> Answer:
    conv = replace(CONV, out_channels=channels)
    chain = scaled(replace(CHAIN, input=(1, rows, rows, 32), conv=(conv, conv)), multiplier, 3)
    return plan_chain(Case(f"c{rows}x{channels}", chain, Plan()), Question(1 << 19, "latency", target="hexagon"))


@pytest.mark.parametrize("seed", range(30))
def test_what_the_chains_that_are_left_to_the_model_could_save_is_below_the_stated_share(seed: int) -> None:
    draw = Random(seed)
    rows = draw.choice(((8, 12, 20, 28), range(17, 25)))
    sizes = [(draw.choice(rows), draw.choice((32, 64))) for _ in range(draw.randint(1, 12))]
    answers = [planned_of(*size, multiplier=draw.choice((1 << 30, 1_300_000_001))) for size in sizes]
    races = Races.of(answers)
    whole = sum(answer.cuts.best.latency_packets for answer in answers if answer.cuts.best)
    alike: dict[tuple[int, ...], float] = {}
    for place in races.left:
        answer, found = races.answers[place], races.found[place]
        assert answer.cuts.best
        fewest = answer.cuts.best.latency_packets  # of runs, as many times as many as the model says of its answer
        for each in found:
            error = draw.uniform(1 - ERROR_BETWEEN, 1) if each.cut != answer.cuts.best else 1
            fewest = min(fewest, each.model_packets * error)
        saved = answer.cuts.best.latency_packets - fewest
        assert saved <= stake(answer, found)
        alike[answer.chain.shapes[-1]] = alike.get(answer.chain.shapes[-1], 0.0) + stake(answer, found)
    assert sum(each**2 for each in alike.values()) <= (SLACK * whole) ** 2
    for place in set(range(len(answers))) - races.left:
        assert {key_of(case) for each in races.found[place] for case in each.cases} <= races.cases.keys()
    decided = races.decided({key: {"packets": 7} for key in races.cases})
    for place, answer in enumerate(decided):
        assert answer.race
        assert (answer.race.runs == ()) == (place in races.left)
        if place in races.left:
            assert answer.cuts == answers[place].cuts
            assert "not run" in next(race_lines(answer.race))


def test_small_chains_beside_large_ones_are_left_to_the_model_and_a_chain_alone_is_run() -> None:
    small, large = planned_of(8, 32, 1 << 30), planned_of(28, 64, 1 << 30)
    assert Races.of([small]).left == frozenset()
    assert Races.of([small, *[large] * 9]).left == {0}


def test_cases_that_differ_in_numbers_alone_are_run_once() -> None:
    answers = [planned_of(20, 64, multiplier) for multiplier in (1 << 30, 1_300_000_001)]
    once, races = Races.of(answers[:1]), Races.of(answers)
    assert races.cases == once.cases != {}
    counts = {key: {"packets": number} for number, key in enumerate(races.cases, start=1)}
    first, other = races.decided(counts)
    assert first.race
    assert other.race
    assert [run.packets for run in first.race.runs] == [run.packets for run in other.race.runs]
    assert {run.contender.cases for run in first.race.runs}.isdisjoint(run.contender.cases for run in other.race.runs)


EVEN = Requantize(multiplier=(1 << 30) + 1, shift=-6, rounding="even")


@pytest.mark.simulator
@pytest.mark.parametrize("seed", range(4))
def test_cases_of_one_key_take_equally_many_packets(seed: int) -> None:
    draw = Random(seed)
    conv = replace(
        CONV,
        requantize=EVEN,
        kernel=(draw.choice((1, 3)),) * 2,
        out_channels=draw.choice((32, 64)),
        bias=draw.random() < 0.5,
    )
    chain = replace(CHAIN, input=(1, 9, 9, 32), conv=(conv,) * draw.randint(1, 2))
    plan = Plan(kernel="hvx", storage="vtcm", rows=draw.choice((2, 4)))
    zeros = (0, 0) if seed % 2 else (3, 200)
    cases = [
        Case("c", scaled(chain, draw.randrange((1 << 30) + 1, 1 << 31, 2), zero), plan, target="hexagon")
        for zero in zeros
    ]
    assert key_of(cases[0]) == key_of(cases[1])
    told = [counted({"toml": case.to_toml(), "name": "c", "seconds": 60.0}) for case in cases]
    assert told[0] == told[1]
    assert "packets" in told[0]
    other = Case("c", scaled(chain, (1 << 30) + 1, 3 if zeros[0] == 0 else 0), plan, target="hexagon")
    assert key_of(other) != key_of(cases[0])
