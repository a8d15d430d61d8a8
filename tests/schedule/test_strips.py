"""Stripes of columns: exact for chains with and without padding, in caches of a strip, each column written once."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import cache_footprints, cache_usage, needed_work, planned_work, vtcm_fit, work_usage
from hexconv.analyze.usage import miscounts
from hexconv.errors import InputError
from hexconv.run.copy_engine import Copies, Moment
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.spec.places import Storage
from hexconv.spec.strips import strips_of, why_no_strips
from hexconv.sweep.judging import short_copies
from tests.deep import DEEP, one_in
from tests.draws import JUDGED, RUN
from tests.lowered import lower_case
from tests.strategies import cases

"""Of drawn chains a third can keep columns: the others share none, or have one strip, or blocks that are not whole."""
DTYPES: tuple[Dtype, ...] = ("uint8", "int8", "int16")
HOW = Requantize(multiplier=1 << 30, shift=-9, zero_point=120)
VALID = Conv2d(out_channels=40, kernel=(3, 3), filter_zero_point=128, requantize=HOW)
"""The zero points lie in the middle: results are codes of all sizes, and not all the largest one."""
SAME = replace(VALID, padding=Padding(top=1, left=1, bottom=1, right=1))
SIGNED = replace(SAME, filter_zero_point=0)
LOPSIDED = replace(VALID, kernel=(1, 4), padding=Padding(left=14, right=1))
STEPPING = replace(VALID, kernel=(1, 1), stride=(1, 19), padding=Padding(left=140, right=190))
IMAGE = Chain(input=(1, 13, 47, 24), dtype="uint8", zero_point=128, output_layout="NHWC", conv=(VALID, VALID, VALID))
CHAINS = {
    "without padding": IMAGE,
    "padded": replace(IMAGE, conv=(SAME, SAME, replace(SAME, out_channels=20))),
    "two images of three channels": replace(IMAGE, input=(2, 13, 47, 3), conv=(SAME, SAME)),
    "a stride between": replace(IMAGE, input=(1, 13, 101, 24), conv=(SAME, replace(SAME, stride=(1, 2)), SAME)),
    "padding wider than a strip": replace(IMAGE, conv=(LOPSIDED, SAME)),
    "blocks of the input": replace(IMAGE, input_layout="NHWC8h8w32c", conv=(SAME, SAME)),
    "blocks of the output": replace(IMAGE, input=(1, 13, 40, 24), output_layout="NHWC8h8w32c", conv=(SAME, SAME)),
    "int8": replace(IMAGE, dtype="int8", zero_point=-7, output_layout="NHCW32c", conv=(SIGNED, SIGNED)),
    "depthwise": replace(IMAGE, input=(1, 13, 47, 40), conv=(replace(SAME, groups=40), SAME)),
    "blocks of four channels": replace(
        IMAGE,
        dtype="int8",
        zero_point=-7,
        conv=tuple(replace(SIGNED, out_channels=size, requantize=replace(HOW, rounding="up")) for size in (12, 3, 3)),
    ),
    "int16": replace(
        IMAGE,
        dtype="int16",
        zero_point=0,
        conv=(replace(SIGNED, filter_l1=30000, requantize=replace(HOW, zero_point=0)),) * 2,
    ),
    "an image that ends where strips do": replace(IMAGE, conv=(SAME,)),
}
ROLLED = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", storage="vtcm")
PLANS = {
    "rows in rings": replace(ROLLED, rows=2, w_split=2),
    "blocks of rows": Plan(kernel="hvx", w_split=1),
    "threads": replace(ROLLED, rows=1, w_split=2, halo="recompute", threads=2),
    "intermediates outside of VTCM": replace(ROLLED, rows=1, w_split=1, storage="input+filters+output"),
}

KEPT = {
    "kept": replace(PLANS["rows in rings"], column_halo="keep"),
    "kept, one thing after the other": replace(
        ROLLED, w_split=1, column_halo="keep", buffering="single", filters="per_tile"
    ),
    "kept by threads": replace(ROLLED, rows=1, w_split=2, column_halo="keep", threads=2),
    "kept outside of VTCM": replace(PLANS["intermediates outside of VTCM"], column_halo="keep"),
}
"""Likewise where columns that two strips read are kept."""

EACH = [(name, list(PLANS)[(place + 1) % 4]) for place, name in enumerate(CHAINS)]
MOMENTS: tuple[Moment, ...] = ("late", "early")
WITHOUT_INPUT = "intermediates+filters+output"
RUNS = [(name, list(PLANS)[place % 3], MOMENTS[place % 2]) for place, name in enumerate(CHAINS)]
"""Each chain under some of the plans, by turns; those with a cache outside of VTCM are counted, not run."""


@pytest.mark.parametrize(("name", "plan"), one_in(3, EACH))
def test_sizes_bytes_and_products_are_those_that_are_predicted(name: str, plan: str) -> None:
    case = Case(name, CHAINS[name], PLANS[plan])
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


KEPT_EACH = [(name, plan) for place, name in enumerate(CHAINS) for plan in (list(KEPT)[place % 3], list(KEPT)[3])]
KEPT_RUN = [(name, list(KEPT)[(place + 1) % 3], MOMENTS[place // 3 % 2]) for place, name in enumerate(CHAINS)]


@pytest.mark.parametrize(("name", "plan"), one_in(2, KEPT_EACH))
def test_sizes_bytes_and_products_are_those_that_are_predicted_where_columns_are_kept(name: str, plan: str) -> None:
    case = Case(name, CHAINS[name], KEPT[plan])
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan", "copies"), one_in(7, KEPT_RUN))
def test_strips_that_keep_columns_are_exact(name: str, plan: str, copies: Moment) -> None:
    case = Case(name, CHAINS[name], KEPT[plan])
    run = run_case(case, lower_case(case), Simulator(copies=Copies(copies), slots=False))
    assert run.check.passed
    assert list(short_copies(run)) == []


@pytest.mark.parametrize(("kernel", "stride", "rows"), one_in(3, [(1, 2, 2), (2, 3, 3), (3, 2, 2), (3, 1, 3)]))
@pytest.mark.parametrize("storage", ["input+filters+output", WITHOUT_INPUT])
def test_rows_of_the_input_are_kept_once_whatever_a_step_reads_again(
    kernel: int, stride: int, rows: int, storage: Storage
) -> None:
    first = replace(VALID, kernel=(kernel, 3), stride=(stride, 1))
    chain = replace(IMAGE, input=(1, 23, 47, 24), conv=(first, VALID))
    case = Case("kept", chain, replace(ROLLED, rows=rows, w_split=2, column_halo="keep", storage=storage))
    assert list(miscounts(work_usage(case, count(lower_case(case))))) == []


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("stride", "rows", "storage"),
    one_in(3, [(2, 2, "vtcm"), (3, 1, "vtcm"), (2, 2, WITHOUT_INPUT), (3, 1, WITHOUT_INPUT)]),
)
def test_rows_of_the_input_are_kept_where_a_later_stride_steps_over_rows(
    stride: int, rows: int, storage: Storage
) -> None:
    last = replace(VALID, kernel=(1, 1), stride=(stride, 1))
    chain = replace(IMAGE, input=(1, 23, 47, 24), conv=(VALID, replace(VALID, kernel=(1, 3)), last))
    case = Case("kept", chain, replace(ROLLED, rows=rows, w_split=2, column_halo="keep", storage=storage))
    lowered = lower_case(case)
    assert list(miscounts(work_usage(case, count(lowered)))) == []
    assert run_case(case, lowered, Simulator(slots=False)).check.passed


@DEEP
@pytest.mark.simulator
@JUDGED
@given(cases(DTYPES, kernels=("hvx",), channels=40), st.integers(1, 3), st.sampled_from(MOMENTS))
def test_drawn_strips_that_keep_columns_are_exact(drawn: Case, w_split: int, copies: Moment) -> None:
    case = keeping(drawn, w_split)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []
    assert run_case(case, lowered, Simulator(copies=Copies(copies), slots=False)).check.passed


@RUN
@given(cases(DTYPES, kernels=("hvx",), channels=40), st.integers(1, 3))
def test_drawn_strips_that_keep_columns_are_as_large_as_predicted(drawn: Case, w_split: int) -> None:
    case = keeping(drawn, w_split)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


def keeping(case: Case, w_split: int) -> Case:
    """A drawn case in strips that keep columns, where it can have any."""
    assume(not why_no_strips(case.chain, w_split) and not why_no_strips(case.chain, w_split, "keep"))
    strips = {"order": "h_outer", "halo": "roll", "w_split": w_split, "column_halo": "keep"}
    kept = replace(case, plan=replace(case.plan, threads=1, storage="vtcm", arch="v69", **strips))
    assume(vtcm_fit(kept.chain, kept.settled).fits)
    return kept


def test_where_columns_are_kept_each_one_is_read_once_and_none_is_made_twice() -> None:
    plain = replace(VALID, out_channels=64, filter_zero_point=0)  # its products are in proportion to columns
    chain, plan = replace(IMAGE, conv=(plain, plain, plain)), KEPT["kept"]
    work, needed = planned_work(chain, plan), needed_work(chain).traffic_bytes
    whole = planned_work(chain, replace(plan, w_split=None, column_halo="recompute"))
    strips = strips_of(chain, plan)
    assert strips
    assert (work.traffic_bytes["input"], work.traffic_bytes["output"]) == (needed["input"], needed["output"])
    # 47 columns of the input take three strips of 16, and so all tensors have 48.
    assert (strips.count, [tensor.made for tensor in strips.tensors]) == (3, [16] * 4)
    for conv, columns in (("conv1", 45), ("conv2", 43), ("conv3", 41)):
        assert work.macs[conv] * columns == whole.macs[conv] * 48


def test_what_is_kept_is_a_cache_of_all_rows() -> None:
    found = {cache.name: cache for cache in cache_footprints(IMAGE, KEPT["kept"]) if cache.role == "kept"}
    assert {name: cache.shape for name, cache in found.items()} == {
        "kept0": (1, 13, 2, 24),
        "kept1": (1, 11, 3, 2, 16),
        "kept2": (1, 9, 3, 2, 16),
    }


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan", "copies"), one_in(7, RUNS))
def test_strips_are_exact(name: str, plan: str, copies: Moment) -> None:
    case = Case(name, CHAINS[name], PLANS[plan])
    run = run_case(case, lower_case(case), Simulator(copies=Copies(copies), slots=False))
    assert run.check.passed
    assert list(short_copies(run)) == []


def test_a_strip_holds_its_columns_and_those_that_its_neighbours_share() -> None:
    plan = PLANS["rows in rings"]
    whole, strips = (
        {cache.name: cache.shape for cache in cache_footprints(IMAGE, replace(plan, w_split=width))}
        for width in (None, 2)
    )
    assert (whole["input_cache"][2], strips["input_cache"][2]) == (47, 16 + 6)
    assert whole["filter1_cache"] == strips["filter1_cache"]


def test_what_strips_share_is_read_again_and_nothing_is_written_twice() -> None:
    plan = PLANS["rows in rings"]
    moved = planned_work(IMAGE, plan).traffic_bytes
    needed = needed_work(IMAGE).traffic_bytes
    assert moved["input"] - needed["input"] == 13 * 24 * (3 * 22 - 47)  # three strips of 16 + 6 columns
    assert moved["output"] == needed["output"]


def test_strips_of_a_padded_chain_read_the_image_alone() -> None:
    chain = CHAINS["padded"]
    strips = strips_of(chain, Plan(kernel="hvx", w_split=2))
    assert strips
    assert [strips.valid_columns(0, number) for number in range(strips.count)] == [(3, 22), (0, 22), (0, 19)]


@pytest.mark.parametrize(
    ("chain", "w_split", "why"),
    [
        (IMAGE, 7, "6 blocks of 8 columns"),
        (replace(IMAGE, output_layout="NHWC8h8w32c"), 2, "has 1, and is whole"),
        (replace(IMAGE, input=(1, 13, 1, 24), conv=(STEPPING,)), 1, "nothing but padding"),
    ],
)
def test_what_cannot_be_computed_in_strips_is_refused_with_the_reason(chain: Chain, w_split: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Case("c", chain, Plan(kernel="hvx", w_split=w_split))


def test_other_kernels_refuse_strips() -> None:
    with pytest.raises(InputError, match="hvx obeys it"):
        Plan(kernel="plain", w_split=2)
