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
from hexconv.spec.choices import Kernel, PaddingRows
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.few_channels import unfolded_conv, unfolding_of
from hexconv.spec.fields import STRICT
from hexconv.spec.unfolded import Unfolding

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


@hashed_once
@validated(frozen=True, kw_only=True, config=STRICT)
class PhasedChain(Chain):
    """A chain whose tensors lie in phase images, without columns of padding that add nothing.

    Attributes:
        taps_in_channels: how its input is unfolded, if it is (`hexconv.spec.unfolded`).
    """

    taps_in_channels: Unfolding | None = None

    @property
    def unfolded(self) -> Unfolding | None:
        """How its input is unfolded."""
        return self.taps_in_channels

    @property
    def leaves_zeros_out(self) -> bool:
        """The matrix engine has nothing to add for bytes of 0."""
        return True

    @property
    def phases(self) -> tuple[Phases, ...]:
        """The phase images of every tensor."""
        return stride_phases(self)


@hashed_once
@validated(frozen=True, kw_only=True, config=STRICT)
class SlabPaddedChain(PhasedChain):
    """The same with padding above intermediates in whole slabs, where their logical rows take a slab less then."""

    @property
    def pads_in_slabs(self) -> bool:
        """A packet's taps may lie in two slabs."""
        return True


def in_phases(chain: Chain, kernel: Kernel | None, padding_rows: PaddingRows = "read") -> Chain:
    """Return a chain as the nest of its kernel has it: for the matrix engine in images, without padding of zeros.

    Its input is unfolded where it has few channels.

    Args:
        chain: the chain.
        kernel: its kernel.
        padding_rows: how many rows of padding are stored (`Plan.padding_rows`).
    """
    if kernel != "hmx":
        return chain
    kind = SlabPaddedChain if padding_rows == "slabs" else PhasedChain
    known = {field.name: getattr(chain, field.name) for field in fields(chain)}
    by = None if isinstance(chain, PhasedChain) else unfolding_of(chain)
    if by:
        convs = (unfolded_conv(chain.conv[0], by), *chain.conv[1:])
        known |= {"input": by.shape, "conv": convs, "taps_in_channels": by}
    return kind(**known)
