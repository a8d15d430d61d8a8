"""Chains that are alike: a search of one answers for all of them. Networks repeat their blocks, with other weights.

On HVX a plan's figures follow from shapes, from how tensors lie, and from which instructions narrow the sums. By how
much these scale, and the limits of weights, only decide who serves a conv and how it is narrowed; so chains that agree
in that, and in everything else but such numbers, have the same grid of figures.

    conv 64 -> 64, scale 0.0021, sums to 71,204    one search for
    conv 64 -> 64, scale 0.0037, sums to 55,190    both of them
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from functools import lru_cache

from hexconv.search.space import REMEMBERED
from hexconv.spec import Chain, Conv2d, Plan, choose_kernels
from hexconv.spec.narrowing import MADE_UNSIGNED, FixedPoint
from hexconv.spec.ranges import narrowing_at

OF_WEIGHTS = ("filter_l1", "bias_limit", "sum_limit")
"""Fields of a conv that say how large its weights are."""
NARROWED = ("requantize", "add")
"""Fields of a conv of whose numbers only what is computed by them matters."""
SHAPED = tuple(each.name for each in fields(Conv2d) if each.name not in (*OF_WEIGHTS, *NARROWED))


def first_alike(chain: Chain, plan: Plan) -> Chain:
    """Return the first chain that was asked for of those that any plan takes as long and as much memory for.

    Args:
        chain: the chain; it is alike no other where a kernel but hvx serves some conv, or where sums of int16 saturate.
        plan: the plan of a settled question, which names the kernel.

    >>> from hexconv.spec import Requantize
    >>> def scaled(multiplier: int) -> Chain:
    ...     conv = Conv2d(out_channels=8, kernel=(3, 3), requantize=Requantize(multiplier=multiplier, shift=-3))
    ...     return Chain(input=(1, 8, 8, 8), dtype="uint8", conv=(conv,))
    >>> first, other = scaled(1_300_000_001), scaled(1_400_000_001)
    >>> [first_alike(chain, Plan(kernel="hvx")) == first for chain in (first, other)]
    [True, True]
    """
    convs = range(len(chain.conv))
    is_of_hvx = all(choice.used == "hvx" for choice in choose_kernels(chain, plan))
    if not (chain.is_integer and is_of_hvx) or any(map(chain.raises, convs)):
        return chain
    lies = chain.input, chain.dtype, chain.filter_dtype, chain.input_layout, chain.output_layout
    return _first(_Alike((lies, *(_taken_by(chain, index) for index in convs)), chain))


@dataclass(frozen=True)
class _Alike:
    """A chain that equals all others that are alike."""

    decides: Hashable
    chain: Chain = field(compare=False)


@lru_cache(REMEMBERED)
def _first(alike: _Alike) -> Chain:
    return alike.chain


def _taken_by(chain: Chain, index: int) -> Hashable:
    """Return all on which it depends what conv `index` takes, but for how the chain's tensors lie."""
    conv, source = chain.conv[index], chain.output_zero_point(index)
    shape = tuple(getattr(conv, name) for name in SHAPED)
    return shape, conv.add and conv.add.tensor, (source == 0, source == -MADE_UNSIGNED), _narrowing(chain, index)


def _narrowing(chain: Chain, index: int) -> Hashable:
    """Return by which instructions the sums of conv `index` are narrowed, whatever the numbers in them are."""
    how = chain.conv[index].requantize
    if how is None:
        return None
    sequence, _offset = narrowing_at(chain, index)
    stated = how.rounding, how.engine, how.clamp is not None, how.vectors
    if not isinstance(sequence, FixedPoint):
        return stated, sequence.halves is not None
    numbers = [getattr(sequence, each.name) for each in fields(sequence) if each.name not in ("zero_point", "lift")]
    return stated, sequence.lift > 0, tuple(each if isinstance(each, bool) else each is None for each in numbers)
