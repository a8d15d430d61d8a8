"""What random cases are drawn from: the largest numbers of everything, and how often what is rare comes."""

from dataclasses import dataclass

from hexconv.spec.chain import Dtype
from hexconv.spec.kernels import Kernel
from hexconv.spec.knobs import KNOBS
from hexconv.spec.places import STORAGES, Storage


@dataclass(frozen=True)
class Scope:
    """The largest numbers that are drawn.

    Attributes:
        dtypes: of chains.
        kernels: that plans ask for.
        storages: of caches.
        turned: knobs that may be drawn from their values; the others stay at their defaults.
        convs: in a chain.
        batch: images at a time.
        output: rows and columns of a chain's output, where paddings don't make more of them.
        channels: of a tensor, but for the long sums.
        macs: multiply-adds of a case, redone ones included: some tenths of a second of scalar code.
        elements: of the input: strides may leave most of it unread.
    """

    dtypes: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
    kernels: tuple[Kernel, ...] = ("plain", "host", "hvx")
    storages: tuple[Storage, ...] = STORAGES
    turned: tuple[str, ...] = tuple(KNOBS)
    convs: int = 4
    batch: int = 4
    output: int = 48
    channels: int = 192
    macs: int = 8_000_000
    elements: int = 2_000_000


EVERYTHING = Scope()
"""The scope of the sweep."""


@dataclass(frozen=True)
class Kind:
    """What doesn't change as sizes get smaller.

    Attributes:
        dtype: of the chain.
        filter_dtype: of its filters, if another one.
        kernel: that the plan asks for.
        is_served: whether what that kernel can't serve is left out: groups, and shifts to the left for hvx.
    """

    dtype: Dtype
    filter_dtype: Dtype | None
    kernel: Kernel
    is_served: bool

    @property
    def highest_shift(self) -> int:
        """Of requantisations."""
        return 0 if self.kernel == "hvx" and self.is_served else 30
