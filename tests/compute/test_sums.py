"""Sums fit int32: by the dtypes alone, or by what is said of the filters, which random tensors then keep to."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.computable import check_supported
from hexconv.errors import InputError, Unsupported
from hexconv.run.tensors import Tensors, packed_arguments, random_tensors
from hexconv.spec import Chain, Conv2d
from hexconv.spec.case import with_limits
from hexconv.spec.dtypes import Dtype
from hexconv.spec.ranges import bias_limit


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


def biased(channels: int, **fields: Any) -> Chain:
    conv = Conv2d(out_channels=512, bias=True, **fields)
    return Chain(input=(1, 2, 2, channels), dtype="int8", conv=(conv,))


@pytest.mark.parametrize("stated", [None, 0, 1000, 2**30])
def test_random_biases_go_as_far_as_their_limit_and_no_further(stated: int | None) -> None:
    of = biased(64, bias_limit=stated)
    limit = bias_limit(of, 0)
    assert limit == (2**31 - 1 - 64 * 128 * 128 if stated is None else stated)
    [bias] = random_tensors(of).biases
    assert bias is not None
    sizes = np.abs(bias.astype(np.int64))
    assert sizes.max() <= limit
    assert sizes.max() >= 0.5 * limit
    assert np.median(sizes) <= max(16 * np.sqrt(limit), 1)


def test_weights_beyond_the_limits_of_their_chain_are_refused_where_they_go_into_a_run() -> None:
    of = biased(2, filter_l1=9, bias_limit=7)
    filter, bias = np.full((512, 2, 1, 1), 4, np.int8), np.full(512, -7, np.int32)
    image = np.zeros(of.input, np.int8)
    packed_arguments(of, Tensors(image, (filter,), (bias,)))
    with pytest.raises(InputError, match=r"^filter1: got an output channel that sums to 10; expected up to 9, "):
        packed_arguments(of, Tensors(image, (filter + np.int8(1),), (bias,)))
    with pytest.raises(InputError, match=r"^bias1: got a value of 8, its sign dropped; expected up to 7, "):
        packed_arguments(of, Tensors(image, (filter,), (bias - np.int32(1),)))
    open_limit = biased(2)
    most = bias_limit(open_limit, 0)
    packed_arguments(open_limit, Tensors(image, (filter,), (np.full(512, most, np.int32),)))
    with pytest.raises(InputError, match="which int32 leaves beside its sums"):
        packed_arguments(open_limit, Tensors(image, (filter,), (np.full(512, -most - 1, np.int32),)))


def test_weights_state_their_limits() -> None:
    of = biased(2)
    filter, bias = np.zeros((512, 2, 1, 1), np.int8), np.zeros(512, np.int32)
    filter[3], bias[4] = -5, -(2**31)
    [conv] = with_limits(of, [filter], [bias]).conv
    assert (conv.filter_l1, conv.bias_limit) == (10, 2**31)
    with pytest.raises(Unsupported, match=f"state a bias_limit of up to {2**31 - 1 - 10 * 128}$"):
        check_supported(with_limits(of, [filter], [bias]))


def test_a_bias_that_no_kernel_has_room_for_is_refused_with_what_would_do() -> None:
    room = 2**31 - 1 - 2 * 128 * 128
    check_supported(biased(2, bias_limit=room))
    with pytest.raises(Unsupported, match=rf"with plain \(with bias\).*, 1 less; .* a bias_limit of up to {room}$"):
        check_supported(biased(2, bias_limit=room + 1))
