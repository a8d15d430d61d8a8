"""Where each cache of a case lies, if the allocations are stacked one upon the other."""

from dataclasses import dataclass

from hexconv.analyze.planned import Planned
from hexconv.spec import Case


@dataclass(frozen=True)
class Place:
    """The place of a cache: its allocation, and its first byte if the allocations are stacked one upon the other."""

    cache: str
    role: str
    bytes: int
    allocation: str
    offset_bytes: int


def places(case: Case) -> tuple[Place, ...]:
    """Return the places of all caches of a case."""
    planned = Planned.of(case)
    caches = {cache.name: cache for cache in planned.caches}
    found, offset = [], 0
    for memory in planned.allocations:
        for name in memory.holds:
            found.append(Place(name, caches[name].role, caches[name].bytes, memory.holds[0], offset))
        offset += memory.bytes
    order = list(caches)
    return tuple(sorted(found, key=lambda place: order.index(place.cache)))
