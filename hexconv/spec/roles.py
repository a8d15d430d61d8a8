"""The roles of buffers: where a plan places each, and what a conv does with it."""

from dataclasses import dataclass
from typing import Literal

from hexconv.spec.places import Role


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
