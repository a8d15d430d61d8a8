"""Stripes of slabs that roll: every slab is made once, in rings that hold just the slabs that are read."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import cache_usage, needed_work, planned_work, work_usage
from hexconv.analyze.block_nest import BlockStripes
from hexconv.analyze.usage import miscounts
from hexconv.compute.computable import check_supported
from hexconv.errors import HexconvError
from hexconv.lower import lower_case
from hexconv.lower.lowered import Lowered
from hexconv.run.copy_engine import MOMENTS, Copies, Moment
from hexconv.run.host import Host, count
from hexconv.run.measure import run_case
from hexconv.schedule import stream
from hexconv.schedule.stream import Share
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import Buffering
from hexconv.sweep.judging import judge
from tests.deep import one_in
from tests.draws import JUDGED

SAME = Conv2d(out_channels=40, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))
HALF = replace(SAME, stride=(2, 2))
BYTES = replace(SAME, filter_zero_point=128, requantize=Requantize(multiplier=1 << 30, shift=-9, zero_point=120))
"""The zero points lie in the middle: results are codes of all sizes, and not all the largest one."""
CHAINS = {
    "three": Chain(input=(1, 44, 9, 8), conv=(SAME, SAME, SAME)),
    "stride": Chain(input=(2, 70, 10, 8), conv=(SAME, HALF, SAME)),
    "strides": Chain(input=(1, 130, 9, 8), conv=(replace(SAME, stride=(3, 1)), HALF, replace(HALF, bias=True))),
    "far": Chain(input=(1, 80, 6, 8), conv=(SAME, Conv2d(out_channels=8, kernel=(5, 1), dilation=(6, 1)))),
    "over": Chain(input=(1, 300, 4, 8), conv=(SAME, Conv2d(out_channels=8, stride=(12, 1)), SAME)),
    "bytes": Chain(input=(1, 50, 9, 40), dtype="uint8", zero_point=128, conv=(BYTES, replace(BYTES, stride=(2, 1)))),
}
ROLLED = Plan(kernel="plain", order="h_outer", halo="roll")
PLANS = {
    "1": ROLLED,
    "2-double": replace(ROLLED, h_split=2, filters="resident", buffering="double"),
    "1-double": replace(ROLLED, k_split=2, buffering="double"),
    "one-stripe": replace(ROLLED, h_split=3, buffering="double"),
}
BUFFERING: list[Buffering] = ["single", "double"]
EACH = [(name, plan, MOMENTS[(i + j) % 3]) for i, name in enumerate(CHAINS) for j, plan in enumerate(PLANS)]
"""Each chain under each plan, the moments of copies by turns."""


def is_right(case: Case, lowered: Lowered, moment: Moment = "late") -> bool:
    return run_case(case, lowered, Host(Copies(moment), calls=1)).check.passed


@pytest.mark.parametrize(("name", "plan", "moment"), one_in(5, EACH))
def test_results_sizes_bytes_and_products_are_those_that_are_predicted(name: str, plan: str, moment: Moment) -> None:
    case = Case(name, CHAINS[name], PLANS[plan])
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []
    assert is_right(case, lowered, moment)


@pytest.mark.parametrize(
    ("name", "ring"), one_in(5, product(("three", "stride", "bytes"), ("input_cache", "intermediate")))
)
def test_a_ring_that_is_one_slab_shorter_is_wrong(name: str, ring: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def shorter(shares: Sequence[Share]) -> dict[str, int]:
        return {one.of.buffer: one.ring_rows - one.of.buffer.startswith(ring) for one in shares}

    case = Case(name, CHAINS[name], ROLLED)
    assert is_right(case, lower_case(case))
    monkeypatch.setattr(stream, "rings_of", shorter)
    assert not is_right(case, lower_case(case))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", [name for name in CHAINS if name != "over"])
def test_nothing_is_read_or_computed_twice(name: str, plan: str) -> None:
    done, needed = planned_work(CHAINS[name], PLANS[plan]), needed_work(CHAINS[name])
    assert done.traffic_bytes["input"] <= needed.traffic_bytes["input"] * 1.1  # whole slabs
    for number, shape in enumerate(CHAINS[name].shapes[1:], 1):
        outputs = needed.macs[f"conv{number}"] // (shape[1] * shape[2])
        assert done.macs[f"conv{number}"] <= shape[0] * shape[1] * shape[2] * outputs


@pytest.mark.parametrize("h_split", [1, 2, 3])
def test_strides_behind_an_intermediate_cost_its_source_no_slabs(h_split: int) -> None:
    tall = replace(CHAINS["strides"], input=(1, 900, 9, 8))
    stripes = BlockStripes(tall, (h_split,), rolls=True)
    assert stripes.step_slabs[:2, 0].tolist() == [h_split, h_split]
    assert stripes.row_steps[:2, 0].tolist() == [2, 2]
    assert stripes.slabs[:3, 0].tolist() == [3 * h_split, 2 * h_split + 1, 2 * h_split + 1]


def test_a_filter_is_staged_where_a_step_makes_anything_alone() -> None:
    """12 slabs of the first intermediate, 2 at a time from the second one on: steps 0, 1-2, 3-4, 5."""
    chain = Chain(input=(1, 46, 9, 8), conv=(SAME, SAME))
    assert BlockStripes(chain, (2,), rolls=True).made.stagings[1:, 0].tolist() == [4, 3]


@st.composite
def short_cases(draw: st.DrawFn) -> Case:
    """Chains over few rows with padding below: warm-up stripes may make all slabs of an intermediate."""
    conv = st.builds(
        Conv2d,
        out_channels=st.just(5),
        kernel=st.tuples(st.integers(2, 4), st.just(1)),
        stride=st.tuples(st.sampled_from([1, 1, 2]), st.just(1)),
        padding=st.builds(Padding, top=st.integers(0, 3), left=st.just(0), bottom=st.integers(0, 9), right=st.just(0)),
    )
    try:
        convs = tuple(draw(st.lists(conv, min_size=3, max_size=4)))
        chain = Chain(input=(draw(st.integers(1, 2)), draw(st.integers(1, 6)), 1, 5), conv=convs)
        check_supported(chain)
        plan = replace(ROLLED, h_split=draw(st.sampled_from([1, 1, 2])), buffering=draw(st.sampled_from(BUFFERING)))
        return Case("short", chain, plan)
    except HexconvError:
        assume(False)
        raise


def check(case: Case) -> None:
    verdict = judge(case)
    assert verdict.outcome != "disagrees", verdict.reasons


@JUDGED
@given(short_cases())
def test_drawn_chains_over_few_rows_agree_in_every_respect(case: Case) -> None:
    check(case)
