"""Kernels that are weighed: no dearer than any of them alone, and the least of every way to cut and to choose."""

from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import get_args

import pytest

from hexconv.errors import Unsupported
from hexconv.lower import lower_case
from hexconv.model import import_model
from hexconv.network.planned_model import plan, question_of
from hexconv.run.measure import run_case, runner_of
from hexconv.search import Objective, Question, best_cuts, best_plan
from hexconv.search.cuts import piece_of
from hexconv.search.question import COSTS, value
from hexconv.search.weighed_kernels import best_weighed, by_kernel, weighed
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.random_case import drawn_case
from hexconv.sweep.random_chains import OF_ENGINE, Seeded
from tests.network.models import Network, saved

SMALL = replace(OF_ENGINE, output=40, channels=100, convs=3)
SIDES = Padding(top=1, left=1, bottom=1, right=1)


def drawn(number: int) -> Chain:
    return drawn_case(Seeded(512, number), SMALL, "drawn").chain


def asked(objective: Objective, threads: int = 1) -> Question:
    return replace(question_of(1 << 20, objective, threads=threads, kernel="hmx"), equally_quick=0.0)


def served(piece: Chain, question: Question) -> list[Question]:
    """The question for each kernel that serves a piece; where none does, for what the piece falls back to."""
    each = [one for one in question.by_kernel if one.settled(piece).plan.kernel == one.plan.kernel]
    return each or [replace(question, weighs=())]


def costs(chain: Chain, question: Question) -> list[float]:
    """What each way costs to cut a chain, and to choose a kernel for each piece; nothing of it by a recurrence."""
    count, found, first = len(chain.conv), list[float](), COSTS[question.objective][0]
    for inner in (ends for size in range(count) for ends in combinations(range(1, count), size)):
        pieces = [piece_of(chain, *part) for part in pairwise((0, *inner, count))]
        for chosen in product(*(served(piece, question) for piece in pieces)):
            try:
                plans = [best_plan(piece, one).best for piece, one in zip(pieces, chosen, strict=True)]
            except Unsupported:
                continue
            each = [value(one, first, question) for one in plans if one]
            if len(each) == len(plans):
                found.append(max(each) if question.objective == "footprint" else sum(each))
    return found


@pytest.mark.parametrize("objective", get_args(Objective))
@pytest.mark.parametrize("threads", [1, 4])
def test_the_answer_is_the_least_of_every_choice(objective: Objective, threads: int) -> None:
    question, both = asked(objective, threads), set[str]()
    for number in range(12):
        chain = drawn(number)
        best, ways = best_cuts(chain, question).best, costs(chain, question)
        assert (best is None) == (not ways), number
        if best:
            least = value(best, COSTS[objective][0], question)
            # On the engine one thread serves where several don't fit: with less memory than any way of `costs`.
            alone = any(piece.figures.plan.threads < threads for piece in best.pieces)
            assert (alone and least < min(ways)) or least == pytest.approx(min(ways), rel=question.slack or 1e-9), (
                number
            )
            both |= {piece.figures.plan.kernel for piece in best.pieces if piece.figures.plan.kernel}
    assert both >= ({"hvx", "hmx"} if objective in ("time", "latency") and threads == 1 else {"hvx"})


@pytest.mark.parametrize("objective", get_args(Objective))
def test_no_kernel_alone_costs_less(objective: Objective) -> None:
    question, first = asked(objective), COSTS[objective][0]
    for number in range(12, 40):
        chain = drawn(number)
        try:
            best = best_weighed(chain, question)
        except Unsupported:  # its sums are too large for any kernel
            continue
        for kernel, found in by_kernel(chain, question).items():
            assert best.smallest.footprint_bytes <= found.smallest.footprint_bytes
            if found.best:
                assert best.best
                least = value(found.best, first, question) * (1 + question.slack)
                assert value(best.best, first, question) <= least, f"{number}: {kernel}"
                ends = best.quick[0], found.quick[0]
                assert value(ends[0], question.quickness, question) <= value(ends[1], question.quickness, question)


MANY, FEW = (1, 56, 56, 64), (1, 32, 32, 3)


@pytest.mark.parametrize(("sizes", "kernel"), [(MANY, "hmx"), (FEW, "hvx")])
def test_a_piece_says_why_it_got_its_kernel(sizes: tuple[int, int, int, int], kernel: str) -> None:
    conv = Conv2d(out_channels=sizes[3], kernel=(3, 3), padding=SIDES, requantize=Requantize(multiplier=1 << 22))
    chain = Chain(input=sizes, dtype="uint8", filter_dtype="int8", conv=(conv,))
    question = asked("time", threads=4)
    best = best_weighed(chain, question).best
    assert best
    told = weighed("conv1", chain, best, question)
    assert told
    assert (told.kernel, set(told.least)) == (kernel, {"hvx", "hmx"})
    other = "hvx" if kernel == "hmx" else "hmx"
    figures = f"T {told.least[told.kernel]:,.0f} against {told.least[other]:,.0f} on {other.upper()}"
    assert told.told.startswith(f"conv1 on {kernel.upper()}: {figures}")
    assert told.least[told.kernel] < told.least[other]
    assert weighed("conv1", chain, best, replace(question, weighs=())) is None


def test_a_piece_says_why_the_engine_does_not_serve_it() -> None:
    conv = Conv2d(out_channels=8, kernel=(9, 9), requantize=Requantize(multiplier=1 << 22))
    chain, question = Chain(input=(1, 20, 20, 8), dtype="uint8", filter_dtype="int8", conv=(conv,)), asked("traffic")
    best = best_weighed(chain, question).best
    assert best
    told = weighed("conv1", chain, best, question)
    assert told
    assert "; hmx serves kernels that reach 8 by 8 pixels at most" in told.told


def test_a_models_cases_say_why(tmp_path: Path) -> None:
    """A conv of many channels on the engine, one of few on HVX; both say the figures that decided."""
    net = Network()
    stem = net.conv8(net.start(), (8, 3, 1, 1))
    path = saved(net, [net.classified(net.conv8(stem, (64, 8, 3, 3)), 64)], tmp_path / "two.onnx")
    planned = plan(import_model(path), question_of(1 << 20, "time", kernel="hmx"))
    cases = [case for member in planned.members for case, _ in member.pieces]
    for case in cases:
        for choice in case.kernels:
            assert choice.used == case.plan.kernel
            assert " on H" in choice.why
    assert [choice for answer in planned.network.planned for choice in answer.kernels] == [
        choice for case in cases for choice in case.kernels
    ]
    forced = plan(import_model(path), replace(question_of(1 << 20, "time"), plan=Plan(kernel="hmx")))
    assert all(case.weighed == "" for member in forced.members for case, _ in member.pieces)


@pytest.mark.simulator
@pytest.mark.parametrize("channels", [3, 8, 16])
def test_pixels_that_are_filled_to_32_channels_are_priced(channels: int) -> None:
    """On the engine each byte of fringe takes packets of the thread."""
    fast = Requantize(multiplier=1 << 30, shift=-9, engine="fast")
    conv = Conv2d(out_channels=32, kernel=(3, 3), stride=(2, 2), padding=SIDES, requantize=fast)
    chain = Chain(input=(1, 32, 32, channels), dtype="uint8", filter_dtype="int8", conv=(conv,))
    answer = best_plan(chain, Question(1 << 20, "latency", Plan(kernel="hmx", arch="v69"))).best
    assert answer
    case = Case("narrow", chain, answer.plan)
    counts = run_case(case, lower_case(case), runner_of(case, "hexagon", 600, slots=False)).counts
    assert counts
    assert 0.5 < answer.latency_packets / counts.packets < 2
