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

An input of few channels is unfolded before that (`hexconv.spec.unfolded`): its first conv reads taps as channels.
"""

from dataclasses import fields, replace
from functools import lru_cache
from math import prod

from pydantic.dataclasses import dataclass as validated

from hexconv.hashed import hashed_once
from hexconv.spec.chain import PIXELS, Chain, Conv2d, Padding
from hexconv.spec.choices import Kernel, PaddingRows
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.fields import STRICT
from hexconv.spec.unfolded import Unfolding

Phases = tuple[int, int]
"""How many phase images a tensor has, down and across; or the number of one of them."""
VECTOR_BYTES = 128
"""A vector of HVX, by which an input is unfolded: a shorter one is copied as it is."""
MOST_ROWS = 8
"""The most rows of taps that are unfolded: each has a bit of a byte that says whether the image has it."""
ONE_BYTE = ("uint8", "int8")


@lru_cache(REMEMBERED)
def stride_phases(chain: Chain) -> tuple[Phases, ...]:
    """Return the phase images of every tensor of a chain.

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


@lru_cache(REMEMBERED)
def unfolding_of(chain: Chain) -> Unfolding | None:
    """Return how the input of a chain is unfolded for an engine of 32 channels; None where it is not.

    It is the way that leaves the fewest taps, and of those the one that reads the fewest rows at a time. Only pixels in
    memory are unfolded, of one byte an element, that no later conv adds.

    >>> convs = {kernel: Conv2d(out_channels=8, kernel=(kernel, kernel)) for kernel in (1, 3, 7)}
    >>> chains = [Chain(input=(1, 16, 16, 3), dtype="uint8", conv=(conv,)) for conv in convs.values()]
    >>> [found and found.kernel for found in map(unfolding_of, chains)]
    [None, (3, 3), (1, 7)]
    """
    conv, (_, rows, columns, channels) = chain.conv[0], chain.input
    is_alone = not conv.is_grouped and len(chain.readers[0]) == 1
    in_pixels = chain.input_layout == PIXELS and chain.dtype in ONE_BYTE and prod(chain.input) >= VECTOR_BYTES
    ways = [(1, conv.kernel[1]), (conv.kernel[0], 1), conv.kernel]
    fit = [way for way in ways if 1 < prod(way) <= CHANNEL_BLOCK // channels and way[0] <= MOST_ROWS]
    if not (is_alone and in_pixels and fit):
        return None
    kernel = max(fit, key=prod)
    made, given = chain.shapes[1][1:3], (rows, columns)
    before = conv.padding.top, conv.padding.left
    axes = [
        (made[axis], conv.stride[axis], conv.dilation[axis], before[axis])
        if kernel[axis] > 1
        else (given[axis], 1, 1, 0)
        for axis in (0, 1)
    ]
    outputs, strides, dilations, padding = zip(*axes, strict=True)
    return Unfolding(chain.input, outputs, kernel, strides, dilations, padding)


def unfolded_conv(conv: Conv2d, by: Unfolding) -> Conv2d:
    """Return the first conv of a chain as it reads the unfolded input.

    >>> stem = Conv2d(out_channels=64, kernel=(7, 7), stride=2, padding=3)
    >>> by = unfolding_of(Chain(input=(1, 224, 224, 3), dtype="uint8", conv=(stem,)))
    >>> conv = unfolded_conv(stem, by) if by else stem
    >>> conv.kernel, conv.stride, conv.padding
    ((7, 1), (2, 1), Padding(top=3, left=0, bottom=3, right=0))
    """
    down, across = (taps > 1 for taps in by.kernel)
    pad = conv.padding
    return replace(
        conv,
        kernel=_but(conv.kernel, down, across),
        stride=_but(conv.stride, down, across),
        dilation=_but(conv.dilation, down, across),
        padding=Padding(
            top=0 if down else pad.top,
            bottom=0 if down else pad.bottom,
            left=0 if across else pad.left,
            right=0 if across else pad.right,
        ),
    )


def _but(pair: tuple[int, int], down: bool, across: bool) -> tuple[int, int]:
    """Return a pair with 1 for the axes whose taps are unfolded."""
    return (1 if down else pair[0], 1 if across else pair[1])
