"""Predict the memories of a nest of rows: caches that take turns share one, every other cache has its own."""

from collections.abc import Iterator, Sequence

from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.rows import PlannedRows
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.analyze.sharing import PredictedAllocation
from hexconv.spec import Plan


def rows_allocations(planned: PlannedRows, plan: Plan) -> Iterator[PredictedAllocation]:
    """Yield every memory of a nest of rows, in the order of the first cache in each.

    >>> from hexconv.analyze.rows import planned_rows
    >>> from hexconv.spec import Chain, Conv2d, Requantize
    >>> conv = Conv2d(out_channels=128, requantize=Requantize(multiplier=1 << 20))
    >>> chain, plan = Chain(input=(1, 8, 8, 128), dtype="uint8", conv=(conv, conv, conv)), Plan(kernel="hvx")
    >>> [(memory.holds, memory.bytes) for memory in rows_allocations(planned_rows(chain, plan), plan)][:2]
    [(('input_cache', 'intermediate2'), 8192), (('filter1_cache', 'filter2_cache', 'filter3_cache'), 4096)]

    Args:
        planned: the chain as its nest sees it.
        plan: the plan, which says which caches lie in VTCM.
    """
    caches = rows_footprints(planned)
    turns = planned.turns
    shared: dict[tuple[object, ...], list[PredictedCache]] = {}
    for cache in caches:
        key = (turns.get(cache.name, cache.name), cache.dtype, cache.is_in_vtcm(plan))
        shared.setdefault(key, []).append(cache)
    yield from (_memory(together, plan) for together in shared.values())


def _memory(together: Sequence[PredictedCache], plan: Plan) -> PredictedAllocation:
    names, most = tuple(cache.name for cache in together), max(cache.bytes for cache in together)
    first = together[0]
    return PredictedAllocation(names, first.dtype, most, first.is_in_vtcm(plan), first.copies)
