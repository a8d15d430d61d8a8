"""All caches of a plan in one arena: an offset for each, such that nothing that is live together overlaps.

TVM's StorageRewrite gives caches that take turns one allocation, and no allocation another's place: a large cache that
is dead leaves no room for two small ones. With offsets of our own it does. Each cache in turn goes to the lowest place
where it meets no other in space and time (first fit); what comes out depends on the order, so several are tried: by
size, by start, by length of life. TVM's own allocations, each at a whole vector behind the one before, are a placement
too, so that the arena is never larger than they are together.

TVM lets a statement that works element by element write the cache that it reads. Only its placement has such pairs; the
two caches then start at the same byte.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hexconv.analyze.footprint import PredictedCache, plain_footprints
from hexconv.analyze.liveness import Lifetime, lifetimes
from hexconv.analyze.sharing import plain_allocations
from hexconv.spec import Chain, Plan

ALIGNMENT_BYTES = 128
"""One HVX vector."""


@dataclass(frozen=True)
class Placement:
    """Where one cache lies, and when it is live.

    Attributes:
        name: of the cache.
        dtype: of an element.
        offset_bytes: from the start of the arena.
        bytes: of the cache.
        lifetime: statements, in program order.
    """

    name: str
    dtype: str
    offset_bytes: int
    bytes: int
    lifetime: Lifetime

    @property
    def end_bytes(self) -> int:
        """One past its last byte."""
        return self.offset_bytes + self.bytes

    def overlaps(self, other: "Placement") -> bool:
        """Whether both hold some byte at the same time."""
        in_space = self.offset_bytes < other.end_bytes and other.offset_bytes < self.end_bytes
        return in_space and self.lifetime.meets(other.lifetime)


@dataclass(frozen=True)
class Arena:
    """All caches of a plan, placed.

    Attributes:
        bytes: of the arena.
        live_bytes: the most that is live at any statement; no arena is smaller.
        placements: in the order in which the caches become live.
    """

    bytes: int
    live_bytes: int
    placements: tuple[Placement, ...]


def plan_arena(chain: Chain, plan: Plan) -> Arena:
    """Place all caches of a plan.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> arena = plan_arena(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> {placement.name: placement.offset_bytes for placement in arena.placements if placement.offset_bytes < 262144}
    {'input_cache': 0, 'filter2_cache': 65536, 'output_cache': 0}
    """
    caches, lives = plain_footprints(chain, plan), lifetimes(chain, plan)
    orders: list[Callable[[PredictedCache], tuple[int, ...]]] = [
        lambda cache: (-cache.bytes, lives[cache.name].first),
        lambda cache: (lives[cache.name].first, -cache.bytes),
        lambda cache: (lives[cache.name].first - lives[cache.name].last, -cache.bytes),
    ]
    candidates = [_first_fit(sorted(caches, key=order), lives) for order in orders]
    best = min([*candidates, _merged(chain, plan, lives)], key=_size)
    placed = sorted(best, key=lambda placement: (placement.lifetime.first, placement.offset_bytes))
    return Arena(_size(best), _most_live(best), tuple(placed))


def _first_fit(caches: Iterable[PredictedCache], lives: dict[str, Lifetime]) -> list[Placement]:
    """Each cache at the lowest offset where it meets none of those before it."""
    placed: list[Placement] = []
    for cache in caches:
        life = lives[cache.name]
        offsets = sorted({0, *(_aligned(other.end_bytes) for other in placed if other.lifetime.meets(life))})
        tried = (Placement(cache.name, cache.dtype, offset, cache.bytes, life) for offset in offsets)
        placed.append(next(place for place in tried if not any(place.overlaps(other) for other in placed)))
    return placed


def _merged(chain: Chain, plan: Plan, lives: dict[str, Lifetime]) -> list[Placement]:
    """TVM's allocations one behind the other, every cache at the start of its own."""
    caches = {cache.name: cache for cache in plain_footprints(chain, plan)}
    placed, offset = [], 0
    for memory in plain_allocations(chain, plan):
        held = [caches[name] for name in memory.holds]
        placed += [Placement(cache.name, cache.dtype, offset, cache.bytes, lives[cache.name]) for cache in held]
        offset = _aligned(offset + memory.bytes)
    return placed


def _size(placements: Sequence[Placement]) -> int:
    """Bytes up to the end of the last cache."""
    return max(placement.end_bytes for placement in placements)


def _most_live(placements: Sequence[Placement]) -> int:
    """The most bytes that are live at one statement; two caches at one place, element by element, count once."""
    times = {placement.lifetime.first for placement in placements}
    return max(sum(_live_at(placements, time).values()) for time in times)


def _live_at(placements: Sequence[Placement], time: int) -> dict[int, int]:
    """Bytes by offset of what is live at a statement."""
    return {p.offset_bytes: p.bytes for p in placements if p.lifetime.first <= time <= p.lifetime.last}


def _aligned(offset_bytes: int) -> int:
    """The next offset at which a cache may start."""
    return -(-offset_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
