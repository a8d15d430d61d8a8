"""Limits that follow from a chain's weights: how large sums and biases can be, and whether the chain states less."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32
from hexconv.spec.names import bias_name, conv_name, filter_name
from hexconv.spec.room import bias_limit
from hexconv.spec.saturating import saturating

Array = NDArray[Any]
NO_VECTORS: Mapping[str, Array] = MappingProxyType({})


def largest_l1(conv: Conv2d, filter: Array) -> int:
    """Return the largest absolute sum of an output channel of an integer filter (OIHW), the zero point subtracted."""
    apart = np.abs(filter.astype(np.int32) - conv.filter_zero_point)
    return int(apart.sum(axis=(1, 2, 3), dtype=np.int64).max(initial=0))


def largest_bias(bias: Array) -> int:
    """Return the largest absolute value of an integer bias."""
    return int(np.abs(bias.astype(np.int64)).max(initial=0))


def sums_by_channel(chain: Chain, index: int, filter: Array, bias: Array | None) -> tuple[Array, Array]:
    """Return the least and the largest sum, bias included, that each output channel of a conv can have, int64 [K].

    Each element of the image is at one end of its dtype, or at the zero point, which padding has.
    """
    low, high = (end - chain.output_zero_point(index) for end in INTEGER_RANGE[chain.dtype])
    apart = filter.astype(np.int64) - chain.conv[index].filter_zero_point
    up, down = (np.sum(part, axis=(1, 2, 3)) for part in (np.maximum(apart, 0), np.minimum(apart, 0)))
    added = 0 if bias is None else bias.astype(np.int64)
    return up * low + down * high + added, up * high + down * low + added


def largest_sum(chain: Chain, index: int, filter: Array, bias: Array | None) -> int:
    """Return the largest absolute value of a sum of any output channel, bias included."""
    least, most = sums_by_channel(chain, index, filter, bias)
    return int(np.maximum(-least, most).max(initial=0))


def beyond_int32(chain: Chain, weights: Mapping[str, Array]) -> Iterator[str]:
    """Yield a sentence on each conv whose sums leave int32 and are held in 64 bits: which channel, and by how much.

    Args:
        chain: the chain, with the limits of its weights.
        weights: `filter1`, `bias1`, ..., logical.
    """
    for index in range(len(chain.conv)):
        number = index + 1
        if chain.sum_dtype(index) != "int64" or chain.saturates(index):
            continue
        least, most = sums_by_channel(chain, index, weights[filter_name(number)], weights.get(bias_name(number)))
        reached = np.maximum(-least, most)
        channel, beyond = int(reached.argmax()), int(reached.max()) - LARGEST_INT32
        yield f"{conv_name(number)}: sums of channel {channel} reach {reached.max()}, {beyond} beyond int32"


def with_limits(
    chain: Chain,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> Chain:
    """Return an integer chain with the limits that its weights have; return a float chain as it is.

    These are `filter_l1`, `bias_limit` and `sum_limit`.

    Sums of int16 that leave int32 saturate where that changes no result (`hexconv.spec.saturating`).

    Args:
        chain: the chain.
        filters: OIHW, one per conv.
        biases: [K] or None, one per conv.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel.

    Raises:
        InputError: a filter, a bias or a sum of both exceeds the limit that its conv states.
    """
    if not chain.is_integer:
        return chain
    convs = []
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
        _check(chain, index, filter, bias, conv.bias_limit)
        limit = None if bias is None else largest_bias(bias)
        sums = largest_sum(chain, index, filter, bias)
        convs.append(replace(conv, filter_l1=max(largest_l1(conv, filter), 1), bias_limit=limit, sum_limit=sums))
    ends = [sums_by_channel(chain, index, *each) for index, each in enumerate(zip(filters, biases, strict=True))]
    return saturating(replace(chain, conv=tuple(convs)), [np.maximum(-least, most) for least, most in ends], vectors)


def check_weights(chain: Chain, filters: Sequence[Array], biases: Sequence[Array | None]) -> None:
    """Refuse weights of an integer chain beyond what it states, or beyond what int32 leaves where it states nothing.

    Raises:
        InputError: a filter beyond the `filter_l1` of its conv, a bias beyond its `bias_limit`, or a sum beyond its
            `sum_limit`.
    """
    if chain.is_integer:
        for index, (filter, bias) in enumerate(zip(filters, biases, strict=True)):
            _check(chain, index, filter, bias, bias_limit(chain, index))


def _check(chain: Chain, index: int, filter: Array, bias: Array | None, limit: int | None) -> None:
    conv = chain.conv[index]
    if conv.filter_l1 is not None and (sums := largest_l1(conv, filter)) > conv.filter_l1:
        allowed = f"up to {conv.filter_l1}, the filter_l1 of chain.conv[{index}]"
        raise InputError(filter_name(index + 1), f"an output channel that sums to {sums}", allowed)
    if bias is not None and limit is not None and (value := largest_bias(bias)) > limit:
        reason = "as it states" if conv.bias_limit is not None else "which int32 leaves beside its sums"
        allowed = f"up to {limit}, the bias_limit of chain.conv[{index}], {reason}"
        raise InputError(bias_name(index + 1), f"a value of {value}, its sign dropped", allowed)
    if conv.sum_limit is not None and (sums := largest_sum(chain, index, filter, bias)) > conv.sum_limit:
        given = filter_name(index + 1) if bias is None else f"{filter_name(index + 1)} and {bias_name(index + 1)}"
        allowed = f"up to {conv.sum_limit}, the sum_limit of chain.conv[{index}]"
        raise InputError(given, f"an output channel whose sums reach {sums}, their sign dropped", allowed)
