"""Sums fit int32: by the dtypes alone, or by what is said of the filters, which random tensors then keep to."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.limits import check_supported
from hexconv.errors import Unsupported
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain, Conv2d
from hexconv.spec.chain import Dtype


def chain(dtype: Dtype, filter_dtype: Dtype, channels: int, filter_l1: int | None = None, zero_point: int = 0) -> Chain:
    conv = Conv2d(out_channels=8, filter_l1=filter_l1, filter_zero_point=zero_point)
    return Chain(input=(1, 2, 2, channels), dtype=dtype, filter_dtype=filter_dtype, conv=(conv,))


@pytest.mark.parametrize(
    ("dtype", "filter_dtype", "most"),
    [("uint8", "uint8", 33025), ("uint8", "int8", 65793), ("int8", "int8", 131071), ("int16", "int8", 511)],
)
def test_as_many_products_as_fit_are_served_and_one_more_is_refused(
    dtype: Dtype, filter_dtype: Dtype, most: int
) -> None:
    check_supported(chain(dtype, filter_dtype, most))
    with pytest.raises(Unsupported, match=f"{most + 1} products can sum to"):
        check_supported(chain(dtype, filter_dtype, most + 1))


def test_a_stated_limit_of_the_filter_counts_instead_and_the_refusal_names_the_largest() -> None:
    with pytest.raises(Unsupported, match=r"filter_l1 of up to 65535$"):
        check_supported(chain("int16", "int16", 1000))
    check_supported(chain("int16", "int16", 1000, filter_l1=65535))
    with pytest.raises(Unsupported, match=r"filter_l1 of up to 65535$"):
        check_supported(chain("int16", "int16", 1000, filter_l1=65536))


@given(
    channels=st.integers(1, 300),
    filter_l1=st.integers(1, 65535),
    filter_dtype=st.sampled_from(("int8", "int16")),
    zero_point=st.integers(-128, 127),
)
def test_random_filters_keep_to_their_limit(
    channels: int, filter_l1: int, filter_dtype: Dtype, zero_point: int
) -> None:
    zero_point = zero_point if filter_dtype == "int8" else 0
    stated = chain("int16", filter_dtype, channels, filter_l1, zero_point)
    [filter] = random_tensors(stated).filters
    assert filter.dtype == filter_dtype
    assert np.abs(filter.astype(int) - zero_point).sum(axis=(1, 2, 3)).max() <= filter_l1


def test_random_filters_come_near_their_limit() -> None:
    [filter] = random_tensors(chain("int16", "int16", 128, 65535)).filters
    assert np.abs(filter.astype(int)).sum(axis=(1, 2, 3)).min() > 0.8 * 65535


def test_a_filter_dtype_that_is_the_chains_is_the_same_chain() -> None:
    assert chain("int16", "int16", 4) == replace(chain("int16", "int8", 4), filter_dtype=None)
    assert chain("uint8", "int8", 4).slug == "n1h2w2c4-k8r1x1-uint8xint8"
