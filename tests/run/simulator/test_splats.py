"""Splats: the same results as by words, and no scalar load from a cache."""

from dataclasses import replace

import pytest

from hexconv.analyze import work_usage
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from tests.deep import DEEP, one_in
from tests.lowered import lower_case

BY_SPLATS = Plan(kernel="hvx", k_split=2, storage="vtcm", activations="splats")


def pair(dtype: Dtype, filter_dtype: Dtype) -> Chain:
    """Runs of 80 words and of 64, whose vectors begin anywhere and reach past the last row."""
    how = Requantize(multiplier=1 << 30, shift=-12 if dtype == "int16" else -8)
    before, around = Padding(top=0, left=2, bottom=0, right=1), Padding(top=1, left=1, bottom=1, right=1)
    convs = (
        Conv2d(out_channels=64, kernel=(1, 5), padding=before, requantize=how),
        Conv2d(out_channels=40, kernel=(3, 4), stride=(1, 2), padding=around, requantize=how),
    )
    limit = 20000 if dtype == "int16" else None
    convs = tuple(replace(conv, filter_l1=limit) for conv in convs)
    return Chain(input=(1, 9, 13, 64), dtype=dtype, filter_dtype=filter_dtype, conv=convs)


@pytest.mark.simulator
@pytest.mark.parametrize(
    "chain",
    one_in(4, [pair("uint8", "int8"), pair("uint8", "uint8"), pair("int8", "int8"), pair("int16", "int8")]),
    ids=lambda chain: f"{chain.dtype}x{chain.dtype_of_filters}",
)
def test_splats_are_right_and_leave_vtcm_to_vectors(chain: Chain) -> None:
    case = Case("splats", chain, BY_SPLATS)
    lowered = lower_case(case)
    assert work_usage(case, count(lowered)).agrees
    ran = run_case(case, lowered, Simulator())
    assert ran.check.passed, ran.check
    assert ran.slots
    assert ran.slots.vtcm_scalar_loads == 0
    by_words = replace(case, plan=replace(BY_SPLATS, activations="words"))
    words = run_case(by_words, lower_case(by_words), Simulator())
    assert words.slots
    assert words.slots.vtcm_scalar_loads


@pytest.mark.simulator
@pytest.mark.parametrize("rows_above", [0, 1, 2])
def test_splats_of_rows_of_one_vector_are_right(rows_above: int) -> None:
    """LLVM unrolls few rows, so that it knows where in a vector each begins: at byte 128 of rows behind padding."""
    how = Requantize(multiplier=1 << 26, shift=-6)
    around = Padding(top=rows_above, left=0, bottom=1, right=2)
    convs = Conv2d(out_channels=32, requantize=how), Conv2d(out_channels=1, stride=(1, 9), padding=around)
    chain = Chain(input=(1, 1, 2, 8), dtype="uint8", conv=(convs[0], replace(convs[1], requantize=how)))
    case = Case("one-vector", chain, Plan(kernel="hvx", activations="splats"))
    ran = run_case(case, lower_case(case), Simulator(slots=False))
    assert ran.check.passed, ran.check


@DEEP
@pytest.mark.simulator
def test_splats_whose_amounts_need_many_registers_are_right() -> None:
    """LLVM leaves the amounts of some alignments in registers that these cannot name (`hexconv.lower.assembly`)."""
    how = Requantize(multiplier=1 << 30, shift=-10, rounding="up")
    convs = (
        Conv2d(out_channels=16, kernel=(3, 2), padding=Padding(top=6, left=1), filter_l1=65535, requantize=how),
        Conv2d(
            out_channels=32, kernel=(1, 2), padding=Padding(top=8, left=1, bottom=7), filter_l1=56946, requantize=how
        ),
        Conv2d(out_channels=32, padding=Padding(top=8, right=1), groups=32, filter_l1=7072),
    )
    chain = Chain(input=(1, 1, 13, 8), dtype="int16", conv=convs)
    case = Case("many-registers", chain, Plan(kernel="hvx", activations="splats"))
    ran = run_case(case, lower_case(case), Simulator(slots=False))
    assert ran.check.passed, ran.check
