"""Where each cache of a case lies: in its allocation, the allocations one upon the other."""

from dataclasses import dataclass

from hexconv.analyze.predicted import cache_footprints, shared_allocations
from hexconv.spec import Case


@dataclass(frozen=True)
class Place:
    """Where a cache lies: an allocation, and its first byte if the allocations stand one upon the other."""

    cache: str
    role: str
    bytes: int
    allocation: str
    offset_bytes: int


def places(case: Case) -> tuple[Place, ...]:
    """Every cache of a case in its allocation."""
    caches = {cache.name: cache for cache in cache_footprints(case.chain, case.settled)}
    found, offset = [], 0
    for memory in shared_allocations(case.chain, case.settled):
        for name in memory.holds:
            found.append(Place(name, caches[name].role, caches[name].bytes, memory.holds[0], offset))
        offset += memory.bytes
    order = list(caches)
    return tuple(sorted(found, key=lambda place: order.index(place.cache)))
