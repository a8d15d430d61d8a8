"""Depthwise convs by HVX, with channels as lanes, and convs in few small groups; exact, and as planned."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import planned_work
from hexconv.kernel.depthwise import columns_read, goes_down, taps_of, tile_uses
from hexconv.kernel.form import without_groups
from hexconv.lower import lower_case
from hexconv.run.measure import run_case, runner_of
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.judging import Verdict, judge
from tests.deep import one_in

UP = Requantize(multiplier=1 << 30, shift=-8, zero_point=3, rounding="up")
EVEN = Requantize(multiplier="per_channel", shift=-8, rounding="even")
ROLLED = Plan(kernel="hvx", k_split=2, order="h_outer", halo="roll", filters="resident", buffering="double")


def depthwise(channels: int, taps: int = 3, how: Requantize | None = UP, **fields) -> Conv2d:
    around = taps // 2
    pad = Padding(top=around, left=around, bottom=around, right=around)
    size = {"out_channels": channels, "groups": channels, "kernel": (taps, taps), "padding": pad}
    return Conv2d(**{**size, "requantize": how, "bias": True, "bias_limit": 1000, **fields})


def of(
    *convs: Conv2d, channels: int = 40, dtype: Dtype = "uint8", filters: Dtype = "int8", zero_point: int = 9
) -> Chain:
    return Chain(input=(1, 13, 22, channels), dtype=dtype, filter_dtype=filters, zero_point=zero_point, conv=convs)


PLACES = Requantize(multiplier="per_channel", shift=-8, rounding="even", fraction_bits=12)
WIDE = Conv2d(out_channels=72, requantize=EVEN)
CHAINS = {
    "3x3": of(depthwise(40)),
    "3x3 stride 2 between dense ones": of(WIDE, depthwise(72, stride=(2, 2), how=EVEN), WIDE, channels=24),
    "products of few places": of(WIDE, depthwise(72, stride=(2, 2), how=PLACES), WIDE, channels=24),
    "5x5 of int8": of(depthwise(40, 5, filter_zero_point=5), dtype="int8", zero_point=-9),
    "dilated, unsigned taps": of(depthwise(40, dilation=(2, 2)), filters="uint8"),
    "stride 3, any zero point": of(depthwise(40, stride=(3, 3), filter_zero_point=7), dtype="int8", filters="uint8"),
    "7x2 without padding": of(depthwise(40, kernel=(7, 2), padding=Padding(), filter_zero_point=128), filters="uint8"),
    "7x7 dilated, windows of 19 columns": of(depthwise(40, 7, dilation=(1, 3))),
    "sums": of(depthwise(40, how=None)),
    "16 channels of a block": of(depthwise(48, how=EVEN), WIDE, channels=48),
    "21 channels of a block": of(depthwise(53, 5), channels=53),
    "1x3, whose tiles hand words on": of(
        depthwise(48, kernel=(1, 3), filter_zero_point=5), dtype="int8", zero_point=-9, channels=48
    ),
    "43 channels, a table": of(
        depthwise(43, activation="table", stride=(1, 2)), dtype="int8", zero_point=-9, channels=43
    ),
    "two, one after the other": of(depthwise(40), depthwise(40, 5)),
    "groups of 6": of(Conv2d(out_channels=48, groups=4, kernel=(3, 3), requantize=UP), WIDE, channels=24),
    "two outputs a channel": of(Conv2d(out_channels=48, groups=24, kernel=(3, 3), requantize=UP), channels=24),
}


RUNS = [*((name, ROLLED) for name in CHAINS), ("3x3 stride 2 between dense ones", Plan(kernel="hvx"))]


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan"), one_in(8, RUNS))
def test_convs_in_groups_are_exact(name: str, plan: Plan) -> None:
    chain = CHAINS[name]
    case = Case("grouped", chain, plan, target="hexagon")
    assert [choice.used for choice in case.kernels] == ["hvx"] * len(chain.conv)
    run = run_case(case, lower_case(case), runner_of(case, "hexagon", slots=False), 3)
    assert run.check.passed
    assert run.check.max_abs_error == 0


def tall(*convs: Conv2d, channels: int = 40, **fields) -> Chain:
    return replace(of(*convs, channels=channels), input=(1, 41, 22, channels), output_layout="NHWC", **fields)


HALF = {"stride": (2, 2), "how": EVEN}
AWAY = Requantize(multiplier=1518025757, shift=-8)
DOWN = {
    "3x3, its rows narrowed later": (tall(depthwise(40, stride=(2, 2), how=AWAY)), 0),
    "3x3 and half to even, which is narrowed at once": (tall(depthwise(40, **HALF)), 0),
    "3x3 of 16 channels, two tiles a vector": (tall(depthwise(48, stride=(2, 2)), channels=48), 0),
    "3x3 between dense ones, each row handed to the next": (tall(WIDE, depthwise(72, **HALF), WIDE, channels=24), 1),
    "3x3 of sums": (tall(depthwise(40, stride=(2, 2), how=None)), 0),
    "2x3 of stride 1, whose second row is the next one's first": (tall(depthwise(40, kernel=(2, 3), stride=(1, 2))), 0),
    "1x3, which hands nothing down": (tall(depthwise(48, kernel=(1, 3)), channels=48), 0),
    "3x3 of stride 3, with a zero point of its own and a table": (
        tall(
            depthwise(40, stride=(3, 2), filter_zero_point=7, activation="table"),
            dtype="int8",
            filter_dtype="uint8",
            zero_point=-9,
        ),
        0,
    ),
}
STRIPES = (
    Plan(kernel="hvx", h_split=2, buffering="double", storage="vtcm"),
    Plan(kernel="hvx", rows=13, order="h_outer", halo="roll", buffering="double"),
)
TALL_RUNS = [(name, plan) for name in DOWN for plan in STRIPES]


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan"), one_in(4, TALL_RUNS))
def test_tiles_that_go_down_the_image_are_exact_and_counted(name: str, plan: Plan) -> None:
    chain, index = DOWN[name]
    case = Case("tall", chain, plan, target="hexagon")
    assert goes_down(chain, plan, index)
    assert judge(case) == Verdict(case, "agrees")


@pytest.mark.parametrize("stripe", [{"h_split": 1}, {"rows": 11}, {"h_split": 3, "threads": 4}])
def test_tiles_of_low_stripes_go_along_rows(stripe: dict[str, Any]) -> None:
    chain, _ = DOWN["3x3, its rows narrowed later"]
    assert not goes_down(chain, Plan(kernel="hvx", **stripe), 0)


SMALL = st.integers(1, 4)


@given(st.integers(1, 9), SMALL, SMALL, st.integers(1, 40), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_words_of_pixels_by_words_of_taps_are_the_conv(
    taps: int, stride: int, dilation: int, columns: int, first: int, seed: int
) -> None:
    conv = Conv2d(out_channels=8, kernel=(1, taps), stride=(1, stride), dilation=(1, dilation))
    random = np.random.default_rng(seed)
    weights, pixels = random.integers(-128, 128, taps), random.integers(0, 256, columns_read(conv, first, columns))
    for start in range(0, columns, 8):
        count = min(8, columns - start)
        window = (first + start) * stride
        for output, uses in enumerate(tile_uses(conv, count)):
            total = 0
            for use in uses:
                assert use.pixel % 2 == 0
                assert window + use.pixel + 4 <= len(pixels), "a word that isn't read"
                words = pixels[[window + pixel for pixel in use.pixels]]
                total += sum(int(words[byte]) * int(weights[tap]) for tap, byte in taps_of(conv, use.variant))
            at = window + output * stride
            assert total == int(pixels[at : at + conv.reach[1] : dilation] @ weights)


def test_only_groups_that_meet_all_blocks_become_dense() -> None:
    chain = without_groups(of(depthwise(40), Conv2d(out_channels=80, groups=2, requantize=UP)))
    assert [conv.groups for conv in chain.conv] == [40, 1]
    wide = of(depthwise(40, how=None, filter_l1=100), dtype="int16", zero_point=0)
    assert without_groups(wide).conv[0].groups == 40
    narrow = of(depthwise(24, how=None, filter_l1=100), dtype="int16", zero_point=0, channels=24)
    assert without_groups(narrow).conv[0].groups == 1


def test_a_depthwise_row_takes_a_product_for_each_row_of_taps_and_output() -> None:
    chain = Chain(input=(1, 56, 56, 144), dtype="uint8", filter_dtype="int8", conv=(depthwise(144),))
    instructions = planned_work(chain, ROLLED).macs["conv1"] // 128
    assert instructions == 56 * 56 * 9 / 2 * 3, "a block of 16 channels takes half of what 32 take"
    assert (
        planned_work(replace(chain, conv=(depthwise(144, how=None),)), ROLLED).macs["conv1"] // 128 == 56 * 56 * 5 * 3
    )
