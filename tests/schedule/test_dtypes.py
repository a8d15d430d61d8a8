"""Filters of another dtype, and int16: what random draws may miss, in cases of their own."""

from dataclasses import replace

import pytest

from hexconv.analyze import cache_usage, work_usage
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import Kernel
from tests.deep import one_in
from tests.lowered import lower_case

PAIRS: list[tuple[Dtype, Dtype]] = [("uint8", "int8"), ("int8", "uint8"), ("int16", "int8"), ("int16", "int16")]
AROUND = Padding(top=1, left=1, bottom=1, right=1)


def two_convs(dtype: Dtype, filter_dtype: Dtype) -> Chain:
    """Pixels that are no part of a vector, so that tiles sum their windows; channels that fill no block; a bias."""
    shift = Requantize(multiplier=1 << 24, shift=-4 if dtype == "int16" else -6, rounding="up")
    zero_point = 7 if filter_dtype != "int16" else 0
    conv = Conv2d(out_channels=40, filter_l1=65535, filter_zero_point=zero_point, requantize=shift)
    first = replace(conv, kernel=(3, 3), padding=AROUND, bias=True)
    return Chain(
        input=(1, 11, 9, 40), dtype=dtype, filter_dtype=filter_dtype, conv=(first, replace(conv, stride=(2, 1)))
    )


@pytest.mark.parametrize("kernel", ["plain", "hvx"])
@pytest.mark.parametrize(("dtype", "filter_dtype"), PAIRS)
def test_closed_forms_are_what_is_allocated_and_counted(dtype: Dtype, filter_dtype: Dtype, kernel: Kernel) -> None:
    """With caches outside of VTCM, where all that a kernel reads and writes of them is traffic too."""
    case = Case("two", two_convs(dtype, filter_dtype), Plan(kernel=kernel, storage="input"))
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees


@pytest.mark.simulator
@pytest.mark.parametrize(("dtype", "filter_dtype"), one_in(2, [PAIRS[0], *PAIRS[2:]]))
def test_tiles_that_sum_their_windows_are_exact(dtype: Dtype, filter_dtype: Dtype) -> None:
    case = Case("two", two_convs(dtype, filter_dtype), Plan(kernel="hvx"))
    lowered = lower_case(case)
    assert not [cache for cache in lowered.caches if cache.name == "columns1"]
    assert run_case(case, lowered, Simulator(slots=False)).check.passed
