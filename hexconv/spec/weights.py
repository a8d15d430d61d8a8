"""Limits that follow from a chain's weights: how large sums and biases can be, and whether the chain states less."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.names import bias_name, filter_name
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


def with_limits(
    chain: Chain,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> Chain:
    """Return an integer chain with the `filter_l1` and `bias_limit` of its weights; return a float chain as it is.

    Sums of int16 that leave int32 saturate where that changes no result (`hexconv.spec.saturating`).

    Args:
        chain: the chain.
        filters: OIHW, one per conv.
        biases: [K] or None, one per conv.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel.

    Raises:
        InputError: a filter or a bias exceeds the limit that its conv states.
    """
    if not chain.is_integer:
        return chain
    convs = []
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
        _check(index, conv, filter, bias, conv.bias_limit)
        limit = None if bias is None else largest_bias(bias)
        convs.append(replace(conv, filter_l1=max(largest_l1(conv, filter), 1), bias_limit=limit))
    sums = [_largest_sums(*each) for each in zip(chain.conv, filters, biases, strict=True)]
    return saturating(replace(chain, conv=tuple(convs)), sums, vectors)


def _largest_sums(conv: Conv2d, filter: Array, bias: Array | None) -> Array:
    """Return the largest absolute value of each channel's sums of int16, bias included."""
    apart = np.abs(filter.astype(np.int64) - conv.filter_zero_point).sum(axis=(1, 2, 3))
    return apart * -INTEGER_RANGE["int16"][0] + (0 if bias is None else np.abs(bias.astype(np.int64)))


def check_weights(chain: Chain, filters: Sequence[Array], biases: Sequence[Array | None]) -> None:
    """Refuse weights of an integer chain beyond what it states, or beyond what int32 leaves where it states nothing.

    Raises:
        InputError: a filter above its conv's `filter_l1`, or a bias above its `bias_limit`.
    """
    if chain.is_integer:
        for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
            _check(index, conv, filter, bias, bias_limit(chain, index))


def _check(index: int, conv: Conv2d, filter: Array, bias: Array | None, limit: int | None) -> None:
    if conv.filter_l1 is not None and (sums := largest_l1(conv, filter)) > conv.filter_l1:
        allowed = f"up to {conv.filter_l1}, the filter_l1 of chain.conv[{index}]"
        raise InputError(filter_name(index + 1), f"an output channel that sums to {sums}", allowed)
    if bias is not None and limit is not None and (value := largest_bias(bias)) > limit:
        reason = "as it states" if conv.bias_limit is not None else "which int32 leaves beside its sums"
        allowed = f"up to {limit}, the bias_limit of chain.conv[{index}], {reason}"
        raise InputError(bias_name(index + 1), f"a value of {value}, its sign dropped", allowed)
