"""Check for each kernel that int32 holds the sums of a chain, and say how large a bias may be.

The check is exact: a kernel is refused where some tensors of the chain's dtypes, within the limits that its convs
state, make an intermediate of `hexconv.spec.sums` overflow its integer.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from hexconv.spec.chain import Chain
from hexconv.spec.dtypes import LARGEST_INT32
from hexconv.spec.sums import LEAST_BIAS_LIMIT, Arithmetic, requantisation_steps, stated_bias, window_products

SATURATE = ", or let sums saturate (requantize.saturates_at)"
REMEMBERED = 1024
"""The number of chains whose refusals are kept: every plan of a chain asks for them."""


def bias_limit(chain: Chain, index: int) -> int:
    """Return the largest absolute value that the bias of a conv may have: the stated limit, or else what int32 leaves.

    If the conv states no limit, it is the room that is left beside sums and constants by every kernel that leaves at
    least `LEAST_BIAS_LIMIT`. It is 0 where there is no bias, or no room for one.
    """
    conv = chain.conv[index]
    if not conv.bias:
        return 0
    if conv.bias_limit is not None:
        return conv.bias_limit
    kernels = _kernels(chain, index)
    room = [_largest(lambda bias, kernel=kernel: _fits(chain, index, kernel, bias)) for kernel in kernels]
    return min([left for left in room if left >= LEAST_BIAS_LIMIT], default=max(0, *room))


@lru_cache(REMEMBERED)
def sums_refusals(chain: Chain, kernel: Arithmetic) -> tuple[str, ...]:
    """Say for each conv by how much its sums can leave their integer with a kernel, and what to state; empty if not.

    For hvx, convs with a shift to the left, and filters of int16 whose sums saturate, are left out, since hvx refuses
    them for another reason.
    """
    return tuple(
        _refusal(chain, index, kernel) if kernel in _kernels(chain, index) else "" for index in range(len(chain.conv))
    )


def sums_refusal(chain: Chain, kernel: Arithmetic) -> str:
    """Return the first refusal of a chain's convs; empty if there is none."""
    return next(filter(None, sums_refusals(chain, kernel)), "")


def _refusal(chain: Chain, index: int, kernel: Arithmetic) -> str:
    conv = chain.conv[index]
    bias = stated_bias(conv)
    worst = max(requantisation_steps(chain, index, kernel, bias), key=lambda step: step.excess)
    if not worst.excess:
        return ""
    reached = worst.most if worst.most > -worst.least else worst.least
    told = (
        f"chain.conv[{index}]: {window_products(chain, index)} products can sum to {reached} with {kernel} "
        f"({worst.name}), int{worst.bits} holds {worst.largest}, {worst.excess} less"
    )
    change = f"use fewer input channels or a smaller kernel, or state {_remedy(chain, index, kernel, bias)}"
    return f"{told}; {change}{SATURATE if _may_saturate(chain, index, kernel, bias) else ''}"


def _may_saturate(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> bool:
    """Whether a kernel would have room for the sums of a conv if they saturated; of int16, by some limit at least."""
    conv = chain.conv[index]
    if conv.requantize is None or chain.saturates(index):
        return False
    convs = list(chain.conv)
    convs[index] = replace(conv, requantize=replace(conv.requantize, saturates_at=1 << 24))
    return chain.dtype == "int16" or _fits(replace(chain, conv=tuple(convs)), index, kernel, bias)


def _remedy(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> str:
    """Say which limit would make the sums fit: one of the bias, or of the filter where no limit of the bias would."""
    if (left := _largest(lambda limit: _fits(chain, index, kernel, limit))) >= 0 and bias:
        return f"a bias_limit of up to {left}"

    def fits(filter_l1: int, bias: int) -> bool:
        convs = list(chain.conv)
        convs[index] = replace(convs[index], filter_l1=filter_l1)
        return _fits(replace(chain, conv=tuple(convs)), index, kernel, bias)

    if most := _largest(lambda filter_l1: fits(filter_l1, bias), 1):
        return f"a filter_l1 of up to {most}"
    most = _largest(lambda filter_l1: fits(filter_l1, LEAST_BIAS_LIMIT), 1)
    return f"a filter_l1 of up to {most}, with a bias_limit of up to {LEAST_BIAS_LIMIT}"


def _largest(fits: Callable[[int], bool], least: int = 0) -> int:
    """Return the largest number of int32 for which `fits` holds; one less than `least` if none does."""
    return bisect_left(range(least, LARGEST_INT32 + 1), True, key=lambda number: not fits(number)) + least - 1


def _kernels(chain: Chain, index: int) -> tuple[Arithmetic, ...]:
    """Return the kernels whose arithmetic has the requantisation of a conv."""
    how = chain.conv[index].requantize
    is_plain = how is not None and (how.shifts_left or (chain.saturates(index) and chain.dtype_of_filters == "int16"))
    return ("plain",) if is_plain else ("plain", "hvx")


def _fits(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> bool:
    return not any(step.excess for step in requantisation_steps(chain, index, kernel, bias))
