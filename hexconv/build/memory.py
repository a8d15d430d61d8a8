"""Where every pointer of a kernel points: into the input, the weights, the output, VTCM or scratch memory."""

from dataclasses import dataclass

from hexconv.build.weights import Weights
from hexconv.lower.callable import Callable


@dataclass(frozen=True)
class Pointer:
    """One parameter of a kernel.

    Attributes:
        base: `input`, `weights`, `output`, `vtcm` or `scratch`.
        offset_bytes: from there.
        step_bytes: from one task's to the next one's; 0 where all share it.
    """

    base: str
    offset_bytes: int
    step_bytes: int = 0


@dataclass(frozen=True)
class Placed:
    """All parameters of a kernel, and the memory that they take.

    Attributes:
        pointers: in the order of the parameters.
        vtcm_bytes: of the caches in VTCM together.
        scratch_bytes: of all other caches together.
        digest: of the weights that the pointers are for.
    """

    pointers: tuple[Pointer, ...]
    vtcm_bytes: int
    scratch_bytes: int
    digest: bytes


def placed(functions: Callable, weights: Weights) -> Placed:
    """One cache behind the other, each at a whole vector (`Memory.bytes` is a multiple of one)."""
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
