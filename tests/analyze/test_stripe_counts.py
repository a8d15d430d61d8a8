"""Stripes of many heights at once have the counts of each height alone."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze.row_nest import planned_rows
from hexconv.analyze.row_stripes import RowsOfChain, StripeCounts
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from tests.draws import LOWERED
from tests.strategies import chains, is_supported

WAYS = tuple(product((False, True), repeat=2))
FIGURES = ("cache_rows", "logical_rows", "stored_rows", "making_steps", "steps", "stagings")
OF_HEIGHTS = ("stripes", "streams", "run_in", "warm_up", "ahead", "most_stripes", "first_reads")


def check(chain: Chain, threads: int, way: tuple[bool, bool]) -> None:
    """Hold every count of every height against that of the height by itself."""
    blocks = max(tensor.channel_blocks for tensor in tensor_extents(chain))
    planned = planned_rows(chain, Plan(kernel="hvx", threads=threads, k_split=blocks))
    rows = RowsOfChain.of(planned.chain, planned.bands, threads)
    heights = (*range(8, rows.stored[-1] + 8, 8), *(rows for rows in (1, 2, 3) if rows <= chain.shapes[-1][1]))
    counts = StripeCounts(rows, heights, *way)
    for at, height in enumerate(heights):
        one = StripeCounts(rows, (height,), *way)
        for name in (*FIGURES, *OF_HEIGHTS):
            assert np.array_equal(getattr(counts, name)[..., at], getattr(one, name)[..., 0]), (name, height)
        for index in range(len(chain.conv)):
            assert (counts.together(index)[:, at] == one.together(index)[:, 0]).all()
        if counts.ahead[at]:
            assert counts.reads_in_flight(at) == one.reads_in_flight(0)


@LOWERED
@given(chains(dtypes=("uint8", "int8", "int16")), st.integers(1, 3), st.sampled_from(WAYS))
def test_all_heights_have_the_counts_of_each_alone(chain: Chain, threads: int, way: tuple[bool, bool]) -> None:
    assume(kernel_of(chain, Plan(kernel="hvx")) == "hvx" and is_supported(chain))
    check(chain, threads, way)


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
def test_tall_chains_have_the_counts_of_each_height_alone(name: str, threads: int, way: tuple[bool, bool]) -> None:
    check(TALL[name], threads, way)
