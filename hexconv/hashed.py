"""Remember the hash of a frozen dataclass: chains and layouts are keys of many caches, and have many parts."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

HASH = "_hash"
Frozen = TypeVar("Frozen", bound=type)


def hashed_once(kind: Frozen) -> Frozen:
    """Decorate a frozen dataclass: each instance computes its hash once.

    A copy in another process computes its own, since hashes of text differ from process to process.
    """
    compute = cast(Callable[[Any], int], kind.__hash__)

    def remembered(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            known = compute(self)
            object.__setattr__(self, HASH, known)
            return known

    def without_hash(self: Any) -> dict[str, Any]:
        return {name: value for name, value in cast(dict[str, Any], vars(self)).items() if name != HASH}

    kind.__hash__ = remembered  # pyright: ignore[reportAttributeAccessIssue]  # a function becomes a method here
    kind.__getstate__ = without_hash
    return kind
