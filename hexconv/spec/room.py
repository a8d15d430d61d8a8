"""Whether int32 holds what requantisation adds up, kernel by kernel, and how much that leaves to a bias.

Nothing here has room to spare: a chain is refused for a kernel where some tensors of its dtypes, within the limits that
its convs state, make an intermediate of `hexconv.spec.sums` leave its integer.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.sums import Arithmetic, requantisation_steps, window_products

LARGEST_INT32 = 2**31 - 1
LEAST_BIAS_LIMIT = 2**12
"""A kernel that leaves less to the bias of a conv that states no limit doesn't serve it."""
REMEMBERED = 1024
"""Chains whose refusals are kept: every plan of a chain is asked about."""


def bias_limit(chain: Chain, index: int) -> int:
    """The largest value, signs dropped, that the bias of a conv may have: what it states, or else what int32 leaves.

    Where nothing is stated, that is what is left beside sums and constants, with each kernel that leaves at least
    `LEAST_BIAS_LIMIT`. 0 where there is no bias, or no room for one.
    """
    conv = chain.conv[index]
    if not conv.bias:
        return 0
    if conv.bias_limit is not None:
        return conv.bias_limit
    room = [_largest(lambda bias, kernel=kernel: _fits(chain, index, kernel, bias)) for kernel in _kernels(conv)]
    return min([left for left in room if left >= LEAST_BIAS_LIMIT], default=max(0, *room))


@lru_cache(REMEMBERED)
def sums_refusals(chain: Chain, kernel: Arithmetic) -> tuple[str, ...]:
    """Of each conv: that its sums could leave int32 with a kernel, by how much, and what to state instead; or nothing.

    Shifts to the left are no matter of hvx: what it doesn't serve for another reason is left out.
    """
    return tuple(
        _refusal(chain, index, kernel) if kernel in _kernels(conv) else "" for index, conv in enumerate(chain.conv)
    )


def sums_refusal(chain: Chain, kernel: Arithmetic) -> str:
    """The first of these; empty if there is none."""
    return next(filter(None, sums_refusals(chain, kernel)), "")


def _refusal(chain: Chain, index: int, kernel: Arithmetic) -> str:
    conv = chain.conv[index]
    stated = conv.bias_limit if conv.bias_limit is not None else LEAST_BIAS_LIMIT
    bias = stated if conv.bias else 0
    worst = max(requantisation_steps(chain, index, kernel, bias), key=lambda step: step.excess)
    if not worst.excess:
        return ""
    reached = worst.most if worst.most > -worst.least else worst.least
    told = (
        f"chain.conv[{index}]: {window_products(chain, index)} products can sum to {reached} with {kernel} "
        f"({worst.name}), int32 holds {LARGEST_INT32}, {worst.excess} less"
    )
    return f"{told}; use fewer input channels or a smaller kernel, or state {_remedy(chain, index, kernel, bias)}"


def _remedy(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> str:
    """The limit that would do; of the filter, where no bias would."""
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
    """The largest number up to that of int32 that fits, or one less than `least`."""
    return bisect_left(range(least, LARGEST_INT32 + 1), True, key=lambda number: not fits(number)) + least - 1


def _kernels(conv: Conv2d) -> tuple[Arithmetic, ...]:
    """Those whose arithmetic has this requantisation."""
    return ("plain",) if conv.requantize and conv.requantize.shifts_left else ("plain", "hvx")


def _fits(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> bool:
    return not any(step.excess for step in requantisation_steps(chain, index, kernel, bias))
