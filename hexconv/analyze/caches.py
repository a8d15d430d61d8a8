"""A cache and an allocation as the closed form predicts them, and the shapes of packed blocks."""

from dataclasses import dataclass
from math import prod

from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.spec.places import BUFFER_ROLES, Role

DTYPE_BYTES = {"float32": 4, "float16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "int16": 2}


@dataclass(frozen=True)
class PredictedCache:
    """One cache as the closed form predicts it.

    Attributes:
        name: `input_cache`, `filter1_cache`, `intermediate1`, `accumulator1`, `output_cache`.
        role: what the cache holds, one of `BUFFER_ROLES`.
        number: the number of the conv that it belongs to, from 1: an intermediate or the output belongs to the conv
            that makes it; 0 for the input.
        dtype: the type of an element.
        shape: the packed sizes, in elements.
        copies: how many equal parts the first axis has: one for each thread that has a cache of its own.
        is_vtcm_only: whether there is no such cache outside of VTCM.
    """

    name: str
    role: str
    number: int
    dtype: str
    shape: tuple[int, ...]
    copies: int = 1
    is_vtcm_only: bool = False

    @property
    def place(self) -> Role:
        """The role by which a plan says whether this buffer lies in VTCM or outside."""
        return BUFFER_ROLES[self.role].place

    def is_in_vtcm(self, plan: Plan) -> bool:
        """Whether a plan puts it into VTCM. Words of weights never lie there, nor words of windows beside splats."""
        by_word = self.role == "words" or (self.role == "window" and plan.activations == "splats")
        return plan.is_in_vtcm(self.place) and not by_word

    @property
    def elements(self) -> int:
        """How many elements the cache holds, in all of its copies."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes the cache holds, in all of its copies."""
        return self.elements * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class PredictedAllocation:
    """One physical allocation.

    Attributes:
        holds: the names of its caches, in the order of their first use.
        dtype: the type of the first cache.
        bytes: the bytes of the largest cache.
        is_in_vtcm: whether it lies in VTCM.
        copies: how many equal parts it has: one for each thread that has caches of its own.
    """

    holds: tuple[str, ...]
    dtype: str
    bytes: int
    is_in_vtcm: bool
    copies: int = 1

    @property
    def elements(self) -> int:
        """How many elements of `dtype` fit into it."""
        return self.bytes // DTYPE_BYTES[self.dtype]


BLOCK = (ROW_BLOCK, COLUMN_BLOCK, CHANNEL_BLOCK)
FILTER_BLOCK = (8, 32, 4)


def packed_filter(chain: Chain, index: int) -> tuple[int, ...]:
    """Return the shape of the packed filter of conv `index`; its first axis is blocks of 32 output channels."""
    out_channels, inputs, *kernel = chain.filter_shapes[index]
    out_blocks = -(-out_channels // CHANNEL_BLOCK)
    if chain.conv[index].is_grouped and inputs % CHANNEL_BLOCK:
        return (out_blocks, inputs, *kernel, CHANNEL_BLOCK)
    return (out_blocks, -(-inputs // CHANNEL_BLOCK), *kernel, *FILTER_BLOCK)


def has_accumulator(chain: Chain, index: int) -> bool:
    """Whether conv `index` sums into an accumulator, since an epilogue turns its sums into what it writes."""
    conv = chain.conv[index]
    changes = conv.bias or conv.activation != "none" or conv.requantize is not None or conv.add is not None
    return changes or chain.output_dtype(index) != chain.sum_dtype(index)
