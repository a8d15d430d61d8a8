"""The role of each buffer, and its place: in VTCM or outside of it.

storage = "global"              all outside
    storage = "vtcm"                all in VTCM
    storage = "filters+output"      these roles in VTCM, the others outside

A kernel's further buffers lie with the role that they are made from: buffers made of filters lie with the filters, an
input split into parts with the input, and sums that are kept for a while with the intermediates.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

ALIGNMENT_BYTES = 128
"""One HVX vector: every pointer that is passed starts at a multiple of it."""

Role = Literal["input", "intermediates", "filters", "output"]
ROLES: tuple[Role, ...] = get_args(Role)

Storage = Literal[
    "global",
    "vtcm",
    "input",
    "intermediates",
    "filters",
    "output",
    "input+intermediates",
    "input+filters",
    "input+output",
    "intermediates+filters",
    "intermediates+output",
    "filters+output",
    "input+intermediates+filters",
    "input+intermediates+output",
    "input+filters+output",
    "intermediates+filters+output",
]
STORAGES: tuple[Storage, ...] = get_args(Storage)
"""Every way to place caches."""

MIXED: tuple[Storage, ...] = STORAGES[2:]
"""The ways with some roles in VTCM and others outside."""


@cache
def roles_in_vtcm(storage: Storage) -> frozenset[Role]:
    """Return the roles whose caches lie in VTCM.

    >>> sorted(roles_in_vtcm("filters+output")), len(roles_in_vtcm("vtcm")), len(roles_in_vtcm("global"))
    (['filters', 'output'], 4, 0)
    """
    if storage == "vtcm":
        return frozenset(ROLES)
    return frozenset(role for role in ROLES if role in storage.split("+"))


Caches = Literal["as-needed", "all-in-vtcm", "anywhere", "no-vtcm-scalar-loads"]
"""How a search places caches: all in VTCM, but outside where that helps; all in VTCM; any of them outside; or outside
all those that scalar loads read."""

SEARCHED: dict[Caches, tuple[Storage, ...]] = {
    "as-needed": ("vtcm",),
    "all-in-vtcm": ("vtcm",),
    "anywhere": ("vtcm", *MIXED),
    "no-vtcm-scalar-loads": tuple(each for each in MIXED if not roles_in_vtcm(each) & {"input", "intermediates"}),
}
"""The ways to place caches that a search tries, where it tries several."""


@dataclass(frozen=True)
class BufferRole:
    """What is known of every buffer of a role.

    Attributes:
        place: the role by which a plan places it (`hexconv.spec.places`).
        holds_elements: whether it holds elements of a tensor, not sums or constants.
        multiplied_as: what a conv multiplies it as; None for what no product reads.
    """

    place: Role
    holds_elements: bool = False
    multiplied_as: Literal["source", "filter"] | None = None


BUFFER_ROLES = {
    "input": BufferRole("input", True, "source"),
    "split": BufferRole("input", True, "source"),
    "filter": BufferRole("filters", True, "filter"),
    "words": BufferRole("filters", False, "filter"),
    "offset": BufferRole("filters"),
    "scale": BufferRole("filters"),
    "intermediate": BufferRole("intermediates", True, "source"),
    "planes": BufferRole("intermediates", True, "source"),
    "kept": BufferRole("intermediates", True),
    "accumulator": BufferRole("intermediates"),
    "window": BufferRole("intermediates"),
    "output": BufferRole("output", True),
}
"""By the role of a cache, or of a kernel's scratch."""


def roles_multiplied_as(what: Literal["source", "filter"]) -> tuple[str, ...]:
    """Return the roles of buffers that a conv multiplies as its source, or as its filter.

    >>> roles_multiplied_as("filter")
    ('filter', 'words')
    """
    return tuple(role for role, known in BUFFER_ROLES.items() if known.multiplied_as == what)
