"""Cuts: the recurrence against every way to cut, one by one."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hexconv.report.words import plan_name
from hexconv.search import Objective, Question, Space, best_cuts, best_plan, evaluate, plan_chain
from hexconv.search.cuts import Cuts, Pieces, piece_of
from hexconv.search.machine import rates
from hexconv.search.planned_chains import PAID
from hexconv.search.question import COSTS, SLACK, value
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of
from hexconv.spec.kernels import KERNELS
from tests.deep import DEEP
from tests.draws import JUDGED, LOWERED
from tests.strategies import chains, is_supported

PAGE = Path(__file__).parents[2] / "hexconv" / "docs" / "how-to" / "fit.md"
SAME = Conv2d(out_channels=64, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))


def parts_an_add(chain: Chain, cut: int) -> bool:
    """Whether a tensor before a cut, but for the one that is cut, is added behind it."""
    return any(conv.add is not None and conv.add.tensor < cut <= index for index, conv in enumerate(chain.conv))


def every_cut(chain: Chain, question: Question) -> list[tuple[float, int]]:
    """Cost in the objective and largest footprint of each way to cut that fits."""
    count, found = len(chain.conv), []
    for inner in (ends for size in range(count) for ends in combinations(range(1, count), size)):
        if any(parts_an_add(chain, cut) for cut in inner):
            continue
        pieces = [piece_of(chain, *part) for part in pairwise((0, *inner, count))]
        plans = [best_plan(piece, question).best if is_supported(piece) else None for piece in pieces]
        figures = [plan for plan in plans if plan]
        if len(figures) < len(plans):
            continue
        largest = max(one.footprint_bytes for one in figures)
        costs = {
            "traffic": sum(one.traffic_bytes for one in figures),
            "latency": sum(one.latency_packets for one in figures),
            "time": sum(one.time_packets(question.beta) for one in figures),
            "footprint": largest,
        }
        found.append((costs[question.objective], largest))
    return found


def cost(cuts: Cuts, question: Question) -> float | None:
    return value(cuts.best, COSTS[question.objective][0], question) if cuts.best else None


@LOWERED
@given(chains(), st.sampled_from(get_args(Objective)), st.integers(13, 20))
def test_no_cut_costs_less(chain: Chain, objective: Objective, log_limit: int) -> None:
    assume(is_supported(chain) and Space.of(chain, Plan()).size <= 400)
    question = Question(1 << log_limit, objective, equally_quick=0.0)
    cuts, every = best_cuts(chain, question), every_cut(chain, question)
    assert (cuts.best is None) == (not every)
    if cuts.best:
        least = min(costs for costs, _ in every)
        assert cost(cuts, question) == pytest.approx(least, rel=SLACK if objective == "time" else 1e-6)
        assert cuts.best.footprint_bytes <= question.vtcm_bytes
        assert len(cuts.joints) == len(cuts.best.pieces) - 1


def pareto(points: set[tuple[float, int]]) -> set[tuple[float, int]]:
    """The points that no other one beats in both; packets to the nearest."""
    found: list[tuple[float, int]] = []
    for packets, moved in sorted((round(packets, 3), moved) for packets, moved in points):
        if not found or moved < found[-1][1]:
            found.append((packets, moved))
    return set(found)


@LOWERED
@given(chains(), st.sampled_from(("traffic", "latency")), st.integers(13, 20))
def test_the_front_is_that_of_all_plans_of_all_pieces_of_all_cuts(
    chain: Chain, objective: Objective, log_limit: int
) -> None:
    assume(is_supported(chain) and Space.of(chain, Plan()).size <= 400)
    question = Question(1 << log_limit, objective, Plan(kernel="plain"), equally_quick=0.0)
    every: dict[int, set[tuple[float, int]]] = {0: {(0.0, 0)}}
    for start, end in combinations(range(len(chain.conv) + 1), 2):
        if any(parts_an_add(chain, cut) for cut in (start, end)):
            continue
        piece = piece_of(chain, start, end)
        if not is_supported(piece):
            continue
        settled = question.settled(piece)
        grid = evaluate(piece, Space.of(piece, settled.plan), rates(settled.plan.arch))
        fits = grid.footprint_bytes <= question.vtcm_bytes
        plans = pareto(set(zip(grid.latency_packets[fits].tolist(), grid.traffic_bytes[fits].tolist(), strict=True)))
        longer = {(a + c, b + d) for a, b in every.get(start, ()) for c, d in plans}
        every[end] = pareto(every.get(end, set()) | longer)
    found = {(cut.latency_packets, cut.traffic_bytes) for cut in best_cuts(chain, question).quick}
    for some, others in ((found, every.get(len(chain.conv), set())), (every.get(len(chain.conv), set()), found)):
        for packets, moved in some:  # sums of floats differ in their last places
            assert any(other <= packets + 0.01 and also <= moved for other, also in others)


def test_single_convs_are_searched_and_longer_pieces_that_move_too_much_are_not() -> None:
    chain = Chain(input=(1, 32, 32, 64), conv=(SAME,) * 3)
    pieces = Pieces(chain, Question(1 << 22))
    assert all(pieces.promising(first, first + 1) for first in range(3))
    assert pieces.promising(0, 3)
    assert not pieces.promising(0, 2)


@DEEP
@JUDGED
@given(chains(), st.integers(14, 19))
def test_less_traffic_needs_exactly_the_memory_that_is_said(chain: Chain, log_limit: int) -> None:
    assume(is_supported(chain) and Space.of(chain, Plan()).size <= 400)
    question = Question(1 << log_limit)
    cuts = best_cuts(chain, question)
    assume(cuts.best is not None)
    assert cuts.best is not None
    now = cuts.best.traffic_bytes
    if cuts.margin is None:
        unlimited = best_cuts(chain, Question(1 << 50)).best
        assert unlimited is not None
        assert unlimited.traffic_bytes == now
        return
    enough = best_cuts(chain, replace(question, vtcm_bytes=cuts.margin.footprint_bytes)).best
    short = best_cuts(chain, replace(question, vtcm_bytes=cuts.margin.footprint_bytes - 1)).best
    assert enough is not None
    assert short is not None
    assert enough.traffic_bytes == cuts.margin.traffic_bytes < (now or 0)
    assert short.traffic_bytes == now


def test_a_piece_reads_what_the_piece_before_writes() -> None:
    chain = Chain(input=(2, 40, 36, 20), conv=(SAME, replace(SAME, stride=(2, 2)), SAME))
    pieces = [piece_of(chain, index, index + 1) for index in range(3)]
    assert [piece.shapes[-1] for piece in pieces] == [*chain.shapes[1:]]
    assert [piece.input for piece in pieces] == [*chain.shapes[:-1]]


def test_a_piece_takes_the_zero_point_that_the_conv_before_leaves() -> None:
    conv = Conv2d(out_channels=8, requantize=Requantize(multiplier=1 << 30, zero_point=5))
    chain = Chain(input=(1, 8, 8, 8), dtype="uint8", zero_point=3, conv=(conv, conv))
    assert [piece_of(chain, index, index + 1).zero_point for index in range(2)] == [3, 5]


def test_the_row_of_64x64x128_in_one_mebibyte() -> None:
    """3x3 -> 3x3, float32: fused nothing fits; apart it does, and less traffic needs more memory, to the byte."""
    three = Conv2d(out_channels=128, kernel=(3, 3))
    chain, question = Chain(input=(1, 64, 64, 128), conv=(three, three)), Question(1 << 20)
    fused, cuts = best_plan(chain, question), best_cuts(chain, question)
    assert fused.best is None
    assert fused.smallest.footprint_bytes == 1196032
    assert cuts.best is not None
    assert cuts.margin is not None
    assert [piece.name for piece in cuts.best.pieces] == ["conv1", "conv2"]
    assert (cuts.best.footprint_bytes, cuts.best.traffic_bytes) == (950272, 13375488)
    assert (cuts.margin.footprint_bytes, cuts.margin.over_bytes) == (1064960, 16384)
    assert cuts.margin.traffic_bytes == 12849152


@pytest.mark.parametrize("mebibytes", [1, 2, 4])
def test_the_page_has_these_rows(mebibytes: int) -> None:
    three = Conv2d(out_channels=128, kernel=(3, 3))
    chain, question = Chain(input=(1, 64, 64, 128), conv=(three, three)), Question(mebibytes << 20)
    fused, cuts = best_plan(chain, question), best_cuts(chain, question)
    assert cuts.best is not None
    whole = f"nothing fits: {fused.smallest.footprint_bytes} at least"
    if fused.best:
        traffic = "" if len(cuts.best.pieces) == 1 else f", {fused.best.traffic_bytes}"
        whole = f"`{plan_name(fused.best.plan)}`{traffic}"
    pieces = " \\| ".join(piece.name for piece in cuts.best.pieces) if len(cuts.best.pieces) > 1 else "the same"
    needed = ", all that is needed" if cuts.best.traffic_bytes == fused.proof.lower_bound else ""
    less = "nothing has less"
    if cuts.margin:
        less = f"{cuts.margin.footprint_bytes} bytes of VTCM, {cuts.margin.over_bytes} too many"
    row = f"| {mebibytes} MiB | {whole} | {pieces} | {cuts.best.traffic_bytes}{needed} | {less} |"
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def check_beside_no_plan(chain: Chain, question: Question) -> None:
    """The quickest is no slower than no plan, and not worse in bytes nor in packets, or all that aren't are slower."""
    answer = plan_chain(Case("any", chain, question.plan), question)
    best, default, speed = answer.cuts.best, answer.unplanned, question.beta
    if not best or not default:
        return
    time = best.time_packets(speed)
    assert time <= default.time_packets(speed) * (1 + SLACK)
    most = default.traffic_bytes, default.latency_packets
    if best.traffic_bytes > most[0] or best.latency_packets > most[1]:
        others = (cut for cut in answer.cuts.quick if cut.traffic_bytes <= most[0] and cut.latency_packets <= most[1])
        assert all(cut.time_packets(speed) > time * (1 + PAID) for cut in others)


@LOWERED
@given(chains(dtypes=("uint8", "int8")), st.integers(14, 20), st.integers(1, 3), st.sampled_from([0.25, 2.0, 28.0]))
def test_the_quickest_is_no_worse_than_no_plan(chain: Chain, log_limit: int, threads: int, speed: float) -> None:
    plan = Plan(kernel="hvx", threads=threads)
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    check_beside_no_plan(chain, Question(1 << log_limit, "time", plan, target="hexagon", bytes_per_packet=speed))


def test_a_quicker_plan_that_moves_more_bytes_than_none_is_not_the_answer() -> None:
    how, sides = Requantize(multiplier=1 << 17, shift=-4), Padding(top=1, left=1, bottom=1, right=1)
    first = Conv2d(out_channels=16, kernel=(3, 3), padding=sides, requantize=how)
    convs = (first, Conv2d(out_channels=32, kernel=(3, 3), padding=sides, requantize=how))
    chain = Chain(input=(1, 96, 96, 3), dtype="uint8", output_layout="NHWC", conv=convs)
    question = Question(1 << 18, "time", Plan(kernel="hvx"), target="hexagon", bytes_per_packet=28.0)
    answer, quickest = plan_chain(Case("any", chain, question.plan), question), best_cuts(chain, question).best
    best, default = answer.cuts.best, answer.unplanned
    assert best and default and quickest  # noqa: PT018
    assert quickest.traffic_bytes > default.traffic_bytes >= best.traffic_bytes
    assert best.latency_packets <= default.latency_packets
    check_beside_no_plan(chain, question)


def test_a_chain_with_more_plans_outside_of_vtcm_than_a_search_looks_at_is_planned_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = Chain(
        input=(1, 26, 26, 256),
        dtype="int8",
        conv=(replace(SAME, out_channels=256, requantize=Requantize(multiplier=1 << 30, shift=-9)),),
    )
    inside = plan_chain(Case("inside", chain), Question(1 << 17, "time", target="hexagon", caches="all-in-vtcm"))
    monkeypatch.setitem(KERNELS, "hvx", replace(KERNELS["hvx"], most_plans=inside.found.proof.plans))
    asked = plan_chain(Case("asked", chain), Question(1 << 17, "time", target="hexagon", caches="as-needed"))
    assert asked.question.caches == "all-in-vtcm"
    assert asked.cuts.best == inside.cuts.best


HOW = Requantize(multiplier=1 << 17, shift=-4)
POOLED = Chain(
    input=(1, 16, 16, 8),
    dtype="uint8",
    conv=(Conv2d(out_channels=8, requantize=HOW), Conv2d(out_channels=8, pool="max"), Conv2d(out_channels=8)),
)


@LOWERED
@given(chains(dtypes=("uint8", "int8")), st.integers(14, 20))
@example(POOLED, 17)
def test_an_answer_names_the_kernels_of_its_pieces(chain: Chain, log_limit: int) -> None:
    answer = plan_chain(Case("drawn", chain), Question(1 << log_limit, "time", target="hexagon"))
    assume(answer.winners)
    used = [choice.used for winner in answer.winners for choice in winner.case.kernels]
    assert [choice.used for choice in answer.kernels] == used
