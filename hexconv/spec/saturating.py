"""Let integer sums saturate where int32 can't hold them, if a chain's weights show that it changes no result.

Scales of networks spread sums over the codes of a dtype: where a sum leaves int32, its output has long been at an end
of its range. So it is where the sum saturates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import Chain
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32
from hexconv.spec.names import numbered
from hexconv.spec.requantize import FRACTION_BITS
from hexconv.spec.room import sums_refusals

Array = NDArray[Any]
LIMITS = tuple(1 << bits for bits in range(30, 23, -1))
"""Where sums of int16 may saturate, the first choice first: the later, the sooner an output has reached its end."""


def saturating(chain: Chain, sums: Sequence[Array], vectors: Mapping[str, Array]) -> Chain:
    """Return an integer chain whose sums saturate where they can leave int32; as it is where a result would change.

    Args:
        chain: the chain, with the limits of its weights.
        sums: for each conv, the largest absolute value of each output channel's sums, bias included.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel.
    """
    for index, refusal in enumerate(sums_refusals(chain, "plain")):
        leaves = chain.sum_dtype(index) == "int64" and not chain.saturates(index)
        if (refusal or leaves) and chain.conv[index].requantize:
            chain = _saturating(chain, index, _invisible_from(chain, index, sums[index], vectors))
    return chain


def _saturating(chain: Chain, index: int, least: float) -> Chain:
    """Return the chain with the largest limit that a kernel has room for, HVX if it can be; `least` is the least."""
    limits = LIMITS if chain.dtype == "int16" else (LARGEST_INT32, *LIMITS)
    tried = [_with_limit(chain, index, limit) for limit in limits if limit >= least]
    for kernel in ("hvx", "plain"):
        for one in tried:
            if not any(sums_refusals(one, of)[index] for of in {kernel, "plain"}):
                return one
    return chain


def _with_limit(chain: Chain, index: int, limit: int) -> Chain:
    convs = list(chain.conv)
    how = convs[index].requantize
    assert how
    convs[index] = replace(convs[index], requantize=replace(how, saturates_at=limit))
    return replace(chain, conv=tuple(convs))


def _invisible_from(chain: Chain, index: int, sums: Array, vectors: Mapping[str, Array]) -> float:
    """Return the least limit that no output shows: each channel is at an end of its range by then, or ends before."""
    how = chain.conv[index].requantize
    assert how
    low, high = how.codes(*INTEGER_RANGE[chain.dtype])
    multiplier, shift = (
        np.asarray(vectors.get(numbered(what, index + 1), getattr(how, what)), np.float64)
        for what in ("multiplier", "shift")
    )
    # One code more than the end, since two roundings may take up to one from it.
    reached = (max(high - how.zero_point, how.zero_point - low) + 1) / (multiplier * 2.0 ** (shift - FRACTION_BITS))
    return float(np.minimum(reached, sums).max())
