"""Chains of which HVX serves some convs: one nest, in which scalar code fills the others."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import tvm

from hexconv.analyze import cache_usage, needed_macs, work_usage
from hexconv.analyze.usage import miscounts
from hexconv.lower import annotated_tir
from hexconv.run.fills import fills_of_run
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.judging import judge
from tests.deep import one_in
from tests.lowered import lower_case

CASES = Path(__file__).parents[2] / "schedules" / "hvx"
RIGHT = Requantize(multiplier=1 << 30, shift=-9, zero_point=7)
LEFT = Requantize(multiplier=1 << 20, shift=2, zero_point=5)
"""The same scale with a shift to the left, which HVX has no instruction for."""
SAME = Padding(top=1, left=1, bottom=1, right=1)


def conv(channels: int, how: Requantize | None, **more: object) -> Conv2d:
    return Conv2d(out_channels=channels, requantize=how, **more)  # pyright: ignore


def chain(dtype: Dtype, channels: int, *convs: Conv2d) -> Chain:
    zero_point = 0 if dtype == "int16" else 3
    if dtype == "int16":
        convs = tuple(
            replace(each, filter_l1=30000, requantize=each.requantize and replace(each.requantize, zero_point=0))
            for each in convs
        )
    return Chain(input=(1, 12, 13, channels), dtype=dtype, zero_point=zero_point, conv=convs)


TAPS = {"kernel": (3, 3), "padding": SAME, "bias": True, "filter_zero_point": 0}
CHAINS = {
    "between two of hvx": chain(
        "uint8", 40, conv(70, RIGHT, **TAPS), conv(100, LEFT, activation="table"), conv(40, RIGHT, **TAPS)
    ),
    "first and last": chain("int8", 5, conv(36, LEFT, **TAPS), conv(64, RIGHT), conv(33, LEFT, stride=(2, 2))),
    "depthwise": chain("uint8", 40, conv(70, RIGHT), conv(70, LEFT, groups=70, **TAPS), conv(32, RIGHT)),
    "sums that leave": chain("uint8", 8, conv(32, LEFT, **TAPS), conv(70, RIGHT, **TAPS), conv(9, None)),
    "int16": chain("int16", 33, conv(70, RIGHT), conv(70, LEFT, kernel=(2, 3)), conv(32, RIGHT)),
}
SPLIT = Plan(kernel="hvx", storage="filters")
ROLLED = Plan(
    kernel="hvx",
    k_split=2,
    order="h_outer",
    halo="roll",
    filters="resident",
    buffering="double",
    storage="intermediates",
)


@pytest.mark.parametrize(("name", "plan"), one_in(3, product(CHAINS, (SPLIT, ROLLED))))
def test_a_mixed_chain_has_the_sizes_bytes_and_products_that_are_predicted(name: str, plan: Plan) -> None:
    case = Case(name, CHAINS[name], plan)
    assert {choice.used for choice in case.kernels} == {"hvx", "plain"}
    usage = cache_usage(case, lowered := lower_case(case))
    assert usage.agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


@pytest.mark.parametrize("name", one_in(3, CHAINS))
def test_what_is_printed_of_scalar_code_parses_back(name: str) -> None:
    """Its sums are buffers of one number."""
    case = Case(name, CHAINS[name], SPLIT)
    lowered = lower_case(case)
    text = annotated_tir(case, lowered, "")
    assert "register_sum0" in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), lowered.module)


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(3, ["depthwise", "between two of hvx", "int16"]))
def test_a_mixed_chain_is_right_at_the_ends_of_its_values(name: str) -> None:
    """Which are what finds sums that leave their words."""
    case = Case(name, CHAINS[name], ROLLED if name == "depthwise" else SPLIT)
    fills = fills_of_run(case.chain, 1, 0)
    assert run_case(case, lower_case(case), Simulator(slots=False), fills=fills).check.passed


@pytest.mark.simulator
@pytest.mark.parametrize("zero_point", [253, 254])
def test_scalar_sums_are_exact_on_either_side_of_where_their_zero_points_make_more_than_int32(zero_point: int) -> None:
    """A filter's elements are stored 128 higher: with 66064 stored ones 253 makes 2139416576, and 254 2147872768."""
    to_the_left = Requantize(multiplier=1 << 15, shift=2, zero_point=128)
    long = Conv2d(out_channels=3, kernel=(2, 1), bias=True, requantize=to_the_left)
    convs = (long, Conv2d(out_channels=1, filter_zero_point=-1, filter_l1=65535))
    input = (1, 2, 1, 33025)
    chain = Chain(input=input, dtype="uint8", filter_dtype="int8", zero_point=zero_point, conv=convs)
    case = Case("long", chain, Plan(kernel="hvx", rows=1))
    assert [choice.used for choice in case.kernels] == ["plain", "hvx"]
    verdict = judge(case)
    assert verdict.outcome == "agrees", verdict.reasons


@pytest.mark.simulator
def test_a_conv_that_hvx_does_not_serve_costs_itself_alone() -> None:
    """All plain, this chain reaches 0.63 multiply-accumulates per packet."""
    case = Case.load(CASES / "mixed-kernels.toml")
    assert [choice.used for choice in case.kernels] == ["hvx", "plain", "hvx"]
    result = run_case(case, lower_case(case), Simulator(slots=False))
    assert result.check.passed
    assert result.counts
    assert needed_macs(case.chain) / result.counts.packets >= 56
