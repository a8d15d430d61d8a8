"""One cache as the closed form predicts it."""

from dataclasses import dataclass
from math import prod

from hexconv.spec import Plan
from hexconv.spec.places import Role
from hexconv.spec.roles import BUFFER_ROLES

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
