"""The scope of random cases: the largest numbers that are drawn."""

from dataclasses import dataclass

from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import Kernel
from hexconv.spec.knobs import KNOBS
from hexconv.spec.places import STORAGES, Storage


@dataclass(frozen=True)
class Scope:
    """The largest numbers that are drawn.

    Attributes:
        dtypes: the dtypes of chains.
        kernels: the kernels that plans ask for.
        storages: the places of caches.
        turned: the knobs that may be drawn from their values; the others stay at their defaults.
        convs: the most convs in a chain.
        batch: the most images at a time.
        output: the most rows and columns of a chain's output, where padding doesn't add more.
        channels: the most channels of a tensor, except in chains with long sums.
        macs: the most multiply-adds of a case, recomputed ones included: some tenths of a second of scalar code.
        elements: the most elements of the input; strides may leave most of it unread.
    """

    dtypes: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
    kernels: tuple[Kernel, ...] = ("plain", "hvx")
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
    """The traits of a random case that stay fixed while smaller and smaller sizes are drawn.

    Attributes:
        dtype: the dtype of the chain.
        filter_dtype: the dtype of its filters, if it is another one.
        kernel: the kernel that the plan asks for.
        is_served: whether features that the kernel can't serve are left out: groups, and shifts to the left for hvx.
    """

    dtype: Dtype
    filter_dtype: Dtype | None
    kernel: Kernel
    is_served: bool

    @property
    def highest_shift(self) -> int:
        """The largest shift of requantisations."""
        return 0 if self.kernel == "hvx" and self.is_served else 30
