"""Verdicts on outputs: what passes, and what an error is judged by."""

import numpy as np
import pytest

from hexconv.compute import magnitude, reference
from hexconv.errors import Overran
from hexconv.kernel.layouts import ACTIVATION_TAG
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run import measure
from hexconv.run.check import TOLERANCE, Check, check
from hexconv.run.host import Host
from hexconv.run.measure import run_case
from hexconv.run.tensors import random_tensors, run_bytes
from hexconv.spec import Case, Chain, Conv2d, Plan

SHAPE = (1, 3, 5, 7)


def judged(
    values: np.ndarray, expected: np.ndarray, size: float = 0.0, dtype: str = "float32", longest_sum: int = 1
) -> Check:
    """The verdict on logical values."""
    layout = packed(ACTIVATION_TAG, expected.shape)
    return check(layout.pack(values), layout, expected, dtype, size, longest_sum)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("largest", [1e-3, 1.0, 1e3])
def test_errors_are_judged_by_the_larger_of_outputs_and_what_they_sum(dtype: str, largest: float) -> None:
    expected = np.zeros(SHAPE)
    expected[0, 1, 2, 3] = largest
    for size in (0.0, 1.0):
        allowed = TOLERANCE[dtype][1] * max(largest, size)
        wrong = expected.copy()
        wrong[0, 0, 0, 0] = 0.99 * allowed
        assert judged(wrong, expected, size, dtype).passed
        wrong[0, 0, 0, 0] = 1.01 * allowed
        assert not judged(wrong, expected, size, dtype).passed


def test_integers_are_exact_however_large_their_sums() -> None:
    expected = np.ones(SHAPE, np.int32)
    wrong = expected.copy()
    wrong[0, 2, 4, 6] = 2
    assert judged(expected, expected, 1e9, "int32").passed
    assert not judged(wrong, expected, 1e9, "int32").passed


def test_what_is_no_number_never_passes() -> None:
    wrong = np.zeros(SHAPE)
    wrong[0, 0, 0, 0] = np.nan
    assert not judged(wrong, np.zeros(SHAPE), 1e9).passed


@pytest.mark.parametrize("convs", [1, 2, 4])
def test_the_magnitude_of_random_tensors_is_that_of_their_outputs(convs: int) -> None:
    chain = Chain(input=(1, 9, 9, 16), conv=(Conv2d(out_channels=24, kernel=(2, 3), bias=True),) * convs)
    tensors = random_tensors(chain)
    logical = (chain, tensors.image, tensors.filters, tensors.biases)
    assert 0.1 < magnitude(*logical) / np.std(reference(*logical)) < 10


def test_a_relu6_limits_what_the_next_conv_gets_and_no_error_of_its_own() -> None:
    chain = Chain(input=(1, 4, 4, 8), conv=(Conv2d(out_channels=8, activation="relu6"),) * 2)
    tensors = random_tensors(chain)
    largest_filter = float(np.sqrt(np.square(tensors.filters[1].astype(np.float64)).sum(axis=(1, 2, 3)).max()))
    order = magnitude(chain, 1e6 * tensors.image, tensors.filters, tensors.biases)
    assert order == pytest.approx(6 * largest_filter)


@pytest.mark.parametrize("products", [100, 3000, 70154, 200000])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0])
def test_a_long_sum_of_equal_products_may_be_rounded_each_time_in_the_same_direction(
    products: int, value: float
) -> None:
    rounded = np.cumsum(np.full(products, value, np.float32), dtype=np.float32)[-1]
    expected = np.full(SHAPE, products * np.float64(np.float32(value)))
    assert judged(np.full(SHAPE, rounded, np.float32), expected, longest_sum=products).passed
    assert not judged(0.98 * expected, expected, longest_sum=products).passed


def test_a_run_may_take_all_memory_and_no_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("small", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan())
    monkeypatch.setattr(measure, "available_memory_bytes", lambda: run_bytes(case.chain))
    assert run_case(case, lower_case(case), Host()).check.passed
    monkeypatch.setattr(measure, "available_memory_bytes", lambda: run_bytes(case.chain) - 1)
    with pytest.raises(Overran, match="1 less; use a smaller case"):
        run_case(case, lower_case(case), Host())
