"""Chains and cases of hypothesis, with small shapes: the sweep's own draw, which shrinks towards one 1x1 conv.

What can be drawn is said in `hexconv.sweep.random_case` and what it calls; a class that is added there is drawn here.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from hexconv.compute.computable import check_supported
from hexconv.errors import Unsupported
from hexconv.spec import Case, Chain
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import Kernel
from hexconv.spec.places import Storage
from hexconv.sweep.random_case import drawn_case
from hexconv.sweep.random_chains import EVERYTHING, Draw

SMALL = replace(EVERYTHING, output=20, channels=100)


class Shrinking(Draw):
    """Numbers that hypothesis draws, and makes smaller."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))


@st.composite
def cases(
    draw: st.DrawFn,
    dtypes: Sequence[Dtype] = SMALL.dtypes,
    storage: tuple[Storage, ...] = SMALL.storages,
    kernels: tuple[Kernel, ...] = ("plain",),
    channels: int = SMALL.channels,
) -> Case:
    """Cases of these dtypes whose plans ask for one of these kernels."""
    scope = replace(SMALL, dtypes=tuple(dtypes), storages=storage, kernels=kernels, channels=channels)
    case = drawn_case(Shrinking(draw), scope, "drawn")
    assume(is_supported(case.chain))  # a drawn conv may read the padding of its input alone
    return case


def chains(dtypes: Sequence[Dtype] = SMALL.dtypes, channels: int = SMALL.channels) -> st.SearchStrategy[Chain]:
    """Chains of these dtypes; tensors have up to so many channels, but for those of long sums."""
    return cases(dtypes, channels=channels).map(lambda case: case.chain)


def convs_alone(chain: Chain) -> bool:
    """Whether a chain has no pools."""
    return not any(conv.pool for conv in chain.conv)


def is_supported(chain: Chain) -> bool:
    """Whether a chain has plans at all."""
    try:
        check_supported(chain)
    except Unsupported:
        return False
    return True
