"""Phase images: every tensor that a later conv reads with a stride lies in images of pixels that are a stride apart.

The matrix engine reads 8 by 8 pixels that lie side by side. So where convs with a stride follow, a tensor is cut into
images by the remainders of its rows and columns, `down` by `across` of them, products of the strides that follow:

    tensor 4 x 4, read with stride 2                   its phase images, in one row of tiles

        a b a b                                            a a   b b   c c   d d
        c d c d                                            a a   b b   c c   d d
        a b a b
        c d c d

In these every conv has a stride of 1: for outputs of phase p, tap t reads divmod(stride * p + t * dilation, phases), so
many pixels further in that phase. What is made of the images is made in images again, by the conv before or by the copy
of the input. The output of a chain has one image.
"""

from dataclasses import fields
from functools import lru_cache

from pydantic.dataclasses import dataclass as validated

from hexconv.hashed import hashed_once
from hexconv.spec.chain import Chain
from hexconv.spec.choices import Kernel
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.fields import STRICT

Phases = tuple[int, int]
"""How many phase images a tensor has, down and across; or the number of one of them."""


@lru_cache(REMEMBERED)
def stride_phases(chain: Chain) -> tuple[Phases, ...]:
    """Return the phase images of every tensor of a chain.

    >>> from hexconv.spec.chain import Conv2d
    >>> convs = (Conv2d(out_channels=8, stride=(1, 2)), Conv2d(out_channels=8), Conv2d(out_channels=8, stride=2))
    >>> stride_phases(Chain(input=(1, 16, 16, 8), conv=convs))
    ((2, 4), (2, 2), (2, 2), (1, 1))
    """

    def read(index: int, made: Phases) -> Phases:
        down, across = chain.conv[index].stride
        return made[0] * down, made[1] * across

    return chain.backwards((1, 1), read)


@lru_cache(REMEMBERED)
def last_phases(chain: Chain) -> tuple[Phases, ...]:
    """Return the last phase of every tensor that is read: a kernel smaller than its stride steps over some.

    >>> from hexconv.spec.chain import Conv2d
    >>> convs = (Conv2d(out_channels=8, kernel=(3, 3)), Conv2d(out_channels=8, kernel=(1, 2), stride=(2, 3)))
    >>> last_phases(Chain(input=(1, 16, 16, 8), conv=convs))
    ((1, 2), (0, 1), (0, 0))
    """
    images = stride_phases(chain)

    def read(index: int, made: tuple[set[int], ...]) -> tuple[set[int], ...]:
        conv = chain.conv[index]
        axes = zip(made, images[index], conv.stride, conv.dilation, conv.kernel, strict=True)
        return tuple(
            {(stride * phase + tap * apart) % count for phase in phases for tap in range(taps)}
            for phases, count, stride, apart, taps in axes
        )

    return tuple((max(down), max(across)) for down, across in chain.backwards(({0}, {0}), read))


@hashed_once
@validated(frozen=True, kw_only=True, config=STRICT)
class PhasedChain(Chain):
    """A chain whose tensors lie in phase images."""

    @property
    def phases(self) -> tuple[Phases, ...]:
        """The phase images of every tensor."""
        return stride_phases(self)

    @property
    def last_phases(self) -> tuple[Phases, ...]:
        """The last phase of every tensor that is read."""
        return last_phases(self)


def in_phases(chain: Chain, kernel: Kernel | None) -> Chain:
    """Return a chain as the nest of its kernel has it: in phase images where the matrix engine computes strides."""
    if kernel != "hmx" or stride_phases(chain)[0] == (1, 1):
        return chain
    return PhasedChain(**{field.name: getattr(chain, field.name) for field in fields(chain)})
