"""Decides where every pointer of a kernel points: into the input, the weights, the output, VTCM or scratch memory."""

from dataclasses import dataclass

from hexconv.build.weights import Weights
from hexconv.lower.callable import Callable


@dataclass(frozen=True)
class Pointer:
    """One parameter of a kernel.

    Attributes:
        base: `input`, `weights`, `output`, `vtcm` or `scratch`.
        offset_bytes: the distance from the start of the base.
        step_bytes: the distance from one task's buffer to the next task's; 0 if all tasks share one.
    """

    base: str
    offset_bytes: int
    step_bytes: int = 0


@dataclass(frozen=True)
class Placed:
    """Where all parameters of a kernel point, and the memory that they take.

    Attributes:
        pointers: a pointer for each parameter, in their order.
        vtcm_bytes: the bytes of all caches in VTCM together.
        scratch_bytes: the bytes of all other caches together.
        digest: the digest of the weights that the pointers are for.
    """

    pointers: tuple[Pointer, ...]
    vtcm_bytes: int
    scratch_bytes: int
    digest: bytes


def placed(functions: Callable, weights: Weights) -> Placed:
    """Place the caches one after the other, each at a whole vector (`Memory.bytes` is a multiple of a vector)."""
    pointers = [
        Pointer(name, 0) if name in ("input", "output") else Pointer("weights", weights.offsets_bytes[name])
        for name in functions.arguments
    ]
    used = {"vtcm": 0, "scratch": 0}
    for memory in functions.memories:
        base = "vtcm" if memory.in_vtcm else "scratch"
        pointers.append(Pointer(base, used[base], memory.bytes if memory.copies > 1 else 0))
        used[base] += memory.bytes * memory.copies
    return Placed(tuple(pointers), used["vtcm"], used["scratch"], weights.digest)
