"""What nests do for all heights of stripes at once, against the closed form of each single plan."""

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze.row_nest import PlannedRows, planned_rows
from hexconv.analyze.row_stripes import RowsOfChain
from hexconv.analyze.stripe_counts import StripeCounts, stripe_counts
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from tests.draws import LOWERED
from tests.strategies import chains, is_supported

WAYS = tuple(product((False, True), repeat=2))


def counts_of(chain: Chain, threads: int, rolls: bool, is_double: bool) -> tuple[list[PlannedRows], StripeCounts]:
    """The plans of every height, each by itself, and the counts of all together."""
    plan = Plan(
        kernel="hvx",
        threads=threads,
        order="h_outer",
        halo="roll" if rolls else "recompute",
        buffering="double" if is_double else "single",
        k_split=max(tensor.channel_blocks for tensor in tensor_extents(chain)),
    )
    output = tensor_extents(chain)[-1]
    heights = [{"h_split": blocks} for blocks in range(1, output.row_blocks + 1)]
    heights += [{"rows": rows} for rows in (1, 2, 3) if rows <= output.rows]
    plans = [planned_rows(chain, Plan(**{**plan.stated, "kernel": "hvx", **height})) for height in heights]
    rows = tuple(planned.plan.stripe_rows for planned in plans)
    return plans, stripe_counts(RowsOfChain.of(plans[0]), rows, rolls, is_double)


def check(plans: list[PlannedRows], counts: StripeCounts) -> None:
    """Hold every count of every height against that of its plan."""
    images = plans[0].extents[-1].batch
    for at, one in enumerate(plans):
        for tensor in range(len(one.extents)):
            assert counts.logical_rows[tensor, at] * images == one.logical_rows(tensor), one.plan.slug
            assert counts.stored_rows[tensor, at] * images == one.stored_rows(tensor), one.plan.slug
            assert counts.making_steps[tensor, at] * images == one.making_steps(tensor), one.plan.slug
            assert counts.steps[tensor, at] * images == one.step_count(tensor), one.plan.slug
            assert counts.cache_rows[tensor, at] == one.cache_rows[tensor], one.plan.slug
        for index, conv in enumerate(counts.chain.convs):
            assert counts.stagings[index + 1, at] * images == one.filter_stagings(index), one.plan.slug
            if conv.together:
                together = (counts.together(index)[:, at] * images).tolist()
                assert together == one.rows_together(index + 1), one.plan.slug
        assert (counts.stripes[at], counts.streams[at]) == (one.stripes, one.streams), one.plan.slug
        assert (counts.run_in[at], counts.ahead[at]) == (one.run_in, one.ahead_rows), one.plan.slug
        assert counts.most_stripes[at] == one.bands.most_stripes, one.plan.slug
        if one.makes_any(0):
            assert counts.first_reads[at] * images == one.first_reads, one.plan.slug


@LOWERED
@given(chains(dtypes=("uint8", "int8", "int16")), st.integers(1, 3), st.sampled_from(WAYS))
def test_all_heights_have_the_counts_of_single_plans(chain: Chain, threads: int, way: tuple[bool, bool]) -> None:
    assume(kernel_of(chain, Plan(kernel="hvx")) == "hvx" and is_supported(chain))
    check(*counts_of(chain, threads, *way))


HOW = Requantize(multiplier=1 << 30, shift=-9)
DEPTHWISE = Conv2d(
    out_channels=32, groups=32, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=HOW
)
TALL = {
    # Tiles go down in tall stripes, and cover some rows together in low ones.
    "depthwise": Chain(input=(2, 61, 9, 32), dtype="uint8", conv=(Conv2d(out_channels=32, requantize=HOW), DEPTHWISE)),
    # Strides step over rows, and a stripe reads far beyond itself.
    "strides": Chain(
        input=(1, 200, 5, 8),
        dtype="uint8",
        output_layout="NHWC",
        conv=(
            Conv2d(out_channels=8, kernel=(3, 1), stride=(4, 1), requantize=HOW),
            Conv2d(out_channels=8, kernel=(5, 1), dilation=(3, 1), requantize=HOW),
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", TALL)
def test_tall_chains_have_the_counts_of_single_plans(name: str, threads: int, way: tuple[bool, bool]) -> None:
    check(*counts_of(TALL[name], threads, *way))
