"""Values of every plan of a nest of rows at once: footprint, traffic, MACs, packets.

Every figure is a sum of products: how often something happens, by words and stripes, times what it takes, by words and
k_split (`hexconv.search.row_axes`). The closed form of single plans (`hexconv.analyze.row_nest`,
`hexconv.analyze.nest_packets`) gives the factors.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hexconv.analyze.caches import PredictedCache
from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.nest_packets import on_set_up
from hexconv.analyze.row_footprint import rows_footprints
from hexconv.analyze.traffic import touched_by
from hexconv.kernel.bands import turns
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.row_axes import KEPT, OF_FILTERS, OF_STRIPES, Held, NestAxes, Priced
from hexconv.search.space import Space
from hexconv.spec import Chain
from hexconv.spec.names import (
    INPUT_CACHE,
    OUTPUT_CACHE,
    filter_cache,
    intermediate,
    kept_cache,
    target_cache,
    words_cache,
)
from hexconv.spec.places import MIXED

ALONE = -1


def footprint_bytes(axes: NestAxes) -> Integers:
    """Compute the bytes of all memories; what one holds is rounded up to whole granules."""
    every, slots, takes_turns = list(_caches(axes)), _slots(axes), _turns(axes)
    kind = _kind(axes, every)
    total, largest = np.zeros(1, kind), dict[tuple[int, str], Integers]()
    for tensor, caches in every:
        cache = next(each.cache for each in caches if each)
        name = _name(cache.role, tensor)
        held = _held_bytes(axes, tensor, caches, slots.get(name, 1), kind)
        if name not in takes_turns:
            total = total + held
            continue
        turn = takes_turns[name]
        total = total + np.where(turn == ALONE, held, 0)
        for memory in {*turn.ravel().tolist()} - {ALONE}:
            others = largest.get((memory, cache.dtype), 0)
            largest[memory, cache.dtype] = np.maximum(others, np.where(turn == memory, held, 0))
    return sum(largest.values(), total)


def _caches(axes: NestAxes) -> Iterator[tuple[int, list[Held | None]]]:
    """Yield each cache with the number of its tensor: [K], None where plans don't have it."""
    for tensor in range(len(axes.chain.conv) + 1):
        every = [tiles.caches(tensor - 1) if tensor else tiles.caches_of_input() for tiles in axes.tiles]
        for key in dict.fromkeys(key for each in every for key in each):
            yield tensor, [each.get(key) for each in every]


def _name(role: str, tensor: int) -> str:
    """Return the name of a cache of a tensor by which others know its slots, and with whom it takes turns."""
    named = {"intermediate": intermediate, "filter": filter_cache, "words": words_cache}
    of_ends = {"input": INPUT_CACHE, "output": OUTPUT_CACHE}
    return named[role](tensor) if role in named else of_ends.get(role, role)


def _kind(axes: NestAxes, every: list[tuple[int, list[Held | None]]]) -> type:
    """Return the integer type that holds the bytes of all caches, each in two slots."""
    most = 0
    for tensor, caches in every:
        rows = max(axes.one.extents[tensor].rows, int(axes.cache_rows[:, tensor].max()))
        most += rows * max(each.bytes + each.resident[0] for each in caches if each)
    return integer_type(4 * most)


def _held_bytes(axes: NestAxes, tensor: int, caches: list[Held | None], slots: Any, kind: type) -> Integers:
    """Compute the bytes of VTCM that one cache needs: 0 in plans that don't have it, or whose figure leaves it out.

    Args:
        axes: the plans.
        tensor: the tensor that the cache belongs to.
        caches: the cache [K]; None where plans don't have it.
        slots: how many slots it has.
        kind: the integer type of the bytes.
    """
    known = next(each for each in caches if each)
    sizes, copies = _sizes([each.bytes if each else 0 for each in caches], kind), known.copies
    if known.cache.role in OF_FILTERS:
        is_resident = axes.space.flags("filters", "resident")
        resident = _sizes([each.resident[0] if each else 0 for each in caches], kind)
        sizes, copies = np.where(is_resident, resident, sizes), np.where(is_resident, known.resident[1], copies)
    elif known.cache.role in OF_STRIPES:
        sizes = sizes * axes.cache_rows[:, tensor, :, None]
    elif known.cache.role == KEPT:
        sizes = sizes * axes.one.extents[tensor].rows
    bytes = sizes * slots * counts(axes, known.cache)
    return copies * -(-bytes // (copies * GRANULE_BYTES)) * GRANULE_BYTES


def _sizes(sizes: list[int], kind: type) -> Integers:
    """Return sizes of each k_split: [1, 1, K]."""
    return np.array(sizes, kind)[None, None]


def _turns(axes: NestAxes) -> dict[str, Integers]:
    """Return [words, H, 1]: the number of the memory in which a cache takes turns with others, or ALONE; by its name.

    Caches that take turns in no plan are left out.
    """
    strips = axes.one.strips
    if strips and strips.keeps:
        return {}
    whole = axes.rows(lambda counts: counts.stripes)[..., None] == 1
    makes_anew = axes.space.flags("halo", "recompute") | whole
    of_words = [
        {name: number for number, names in enumerate(turns(len(axes.convs), plan)) for name in names}
        for plan in axes.space.words
    ]
    names = dict.fromkeys(name for memories in of_words for name in memories)
    return {
        name: np.where(makes_anew, np.array([each.get(name, ALONE) for each in of_words])[:, None, None], ALONE)
        for name in names
    }


def counts(axes: NestAxes, cache: PredictedCache) -> Integers:
    """Return [words, 1, 1]: 1 where a cache counts, else 0.

    Where some cache lies in VTCM, those in VTCM count; elsewhere all do that there are.
    """
    plans = {plan.storage: plan for plan in axes.space.words}
    there = {
        storage: cache.is_in_vtcm(plan) or not (plan.uses_vtcm or cache.is_vtcm_only) for storage, plan in plans.items()
    }
    if len(there) == 1:
        return np.full((1, 1, 1), int(*there.values()))
    return np.array([there[plan.storage] for plan in axes.space.words])[:, None, None] * 1


def _slots(axes: NestAxes) -> dict[str, Integers]:
    """Return the slots of each cache: 2 if it is copied to or from more than once while something computes."""
    double, per_tile = axes.space.flags("buffering", "double"), axes.space.flags("filters", "per_tile")
    # Whether a copy is repeated: loops around it multiply, so it is where any of them has more than one trip.
    again = np.full((1, 1, 1), axes.one.extents[-1].batch > 1)
    repeats: dict[str, Integers] = {}
    for index in reversed(axes.convs):
        is_last = index == axes.convs[-1]
        if is_last:
            again = again | (axes.rows(lambda counts: counts.most_stripes + counts.run_in)[..., None] > 1)
        tiles = again | (axes.of_tiles(lambda tiles, index=index: tiles.channel_tiles(index)) > 1)
        repeats |= {OUTPUT_CACHE: tiles} if is_last else {}
        repeats |= dict.fromkeys((filter_cache(index + 1), words_cache(index + 1)), tiles & per_tile)
        again = again | (axes.again > 1) if is_last else again
    repeats[INPUT_CACHE] = again & ~axes.rows(lambda counts: counts.streams)[..., None]
    return {name: np.where(double & each, 2, 1) for name, each in repeats.items()}


def nest_grid(chain: Chain, space: Space, priced: Priced) -> tuple[Integers, ...]:
    """Compute footprint, traffic, MACs, packets and exposed bytes of every plan, [N] each."""
    axes = NestAxes(chain, space)
    traffic = _traffic_bytes(axes)
    figures = (footprint_bytes(axes), traffic, _macs(axes), _packets(axes, priced), _exposed_bytes(axes, traffic))
    return tuple(np.broadcast_to(each, space.shape).ravel() for each in figures)


def nest_footprint(chain: Chain, space: Space) -> Integers:
    """Compute the footprint of every plan, [N], alone."""
    return np.broadcast_to(footprint_bytes(NestAxes(chain, space)), space.shape).ravel()


def _traffic_bytes(axes: NestAxes) -> Integers:
    """The bytes that all tensors move between memory and the caches."""
    total = axes.one.input_bytes(axes.made(0)[0]) + axes.tiles[0].output_bytes
    for index in axes.convs:
        sizes = axes.of_tiles(lambda tiles, index=index: tiles.filter_bytes(index)).astype(axes.kind)
        total = total + axes.stagings(index) * sizes
    return total + _outside_bytes(axes) if any(plan.storage in MIXED for plan in axes.space.words) else total


def _exposed_bytes(axes: NestAxes, traffic: Integers) -> Integers:
    """The bytes that are copied while nothing computes.

    With double buffering these are, in each thread, the first stripe of the input, filters that are resident or else
    the first tile of each, and the last tile of the output; beside them, what kernels read and write outside of VTCM.
    """
    resident, last = axes.space.flags("filters", "resident"), axes.convs[-1]
    reads, makes = (np.maximum(axes.made(tensor)[2] // axes.threads, 1) for tensor in (0, last + 1))
    tiles = [axes.of_tiles(lambda tiles, index=index: tiles.channel_tiles(index)) for index in axes.convs]
    total = ceil_divide(axes.one.input_bytes(axes.made(0)[0]), reads)
    total = total + ceil_divide(axes.tiles[0].output_bytes, makes * tiles[last])
    for index in axes.convs:
        sizes = axes.of_tiles(lambda tiles, index=index: tiles.filter_bytes(index))
        total = total + np.where(resident, sizes, ceil_divide(sizes, tiles[index]))
    if any(plan.storage in MIXED for plan in axes.space.words):
        total = total + _outside_bytes(axes)
    return np.where(axes.space.flags("buffering", "double"), np.minimum(total, traffic), traffic)


def _outside_bytes(axes: NestAxes) -> Integers:
    """The bytes that kernels read and write in caches that don't count."""
    sample = [tiles.planned for tiles in axes.tiles]
    caches = {cache.name: cache for one in sample for cache in rows_footprints(one)}
    making = axes.times(lambda counts: counts.making_steps)
    total: Any = 0
    for index in axes.convs:
        touched = [touched_by(planned, index) for planned in sample]
        steps = axes.repeated(index + 1, making[:, index + 1])
        often = (*axes.made(index + 1)[:2], steps, axes.threads, *axes.together(index))
        for times, sizes in zip(often, zip(*(each.parts for each in touched), strict=True), strict=False):
            for name in dict.fromkeys(name for size in sizes for name in size):
                of_tiles = np.array([size[name] for size in sizes], axes.kind)
                total = total + times * (1 - counts(axes, caches[name])) * of_tiles
        target, rows = caches[target_cache(index + 1, len(axes.chain.conv))], sum(axes.made(index + 1)[:2])
        total = total + (1 - counts(axes, target)) * axes.one.filled_bytes(index + 1, rows)
        if kept := caches.get(kept_cache(index + 1)):  # saved once, and restored once
            both = 2 - counts(axes, target) - counts(axes, kept)
            total = total + 2 * both * axes.one.kept_bytes(index + 1, rows)
    if kept := caches.get(kept_cache(0)):
        often = 3 - counts(axes, caches[INPUT_CACHE]) - 2 * counts(axes, kept)
        total = total + often * axes.one.kept_bytes(0, _first_reads(axes))
    return total


def _first_reads(axes: NestAxes) -> Integers:
    """How many rows of the input steps of the first conv are the first to read in their strip: [words, H, 1]."""
    first, end = axes.one.extents[1].valid_columns
    return axes.times(lambda counts: counts.first_reads)[..., None] * (first < end)


def _macs(axes: NestAxes) -> Integers:
    """The multiply-accumulates of all convs."""
    total: Any = 0
    for index in axes.convs:
        row, staging = (
            axes.of_tiles(each).astype(axes.kind)
            for each in (lambda tiles: tiles.row_macs(index), lambda tiles: tiles.staging_macs(index))  # noqa: B023
        )
        rows = axes.made(index + 1)[0]
        total = total + rows * row
        if staging.any():
            first, end = axes.one.extents[index + 1].valid_columns
            total = total + ((rows > 0) & (first < end)) * staging
    return total


def _packets(axes: NestAxes, priced: Priced) -> Integers:
    """Return the packets that the model gives: the counts of parts, times their prices."""
    steps, is_double = axes.made(len(axes.chain.conv))[2], axes.space.flags("buffering", "double")[..., None]
    single, double = (axes.of_tiles(lambda tiles, way=way: tiles.output_prices(way, priced)) for way in (False, True))
    output = np.where(is_double, double, single)
    total = steps * output[..., 0] + output[..., 1] + priced(on_set_up(axes.one))
    every = [_input_prices(axes, priced)]
    for index in axes.convs:
        every.append(axes.of_tiles(lambda tiles, index=index: tiles.prices(index, priced)))
        staged = axes.copies(lambda tiles, index=index: tiles.filter_prices(index, priced))
        total = total + axes.stagings(index) * staged
    for tensor, each in enumerate(every):
        together = axes.together(tensor - 1) if tensor else []
        often = (*axes.made(tensor), axes.threads, *together)
        total = total + sum(times * each[..., place] for place, times in enumerate(often))
    return total.astype(float)


def _input_prices(axes: NestAxes, priced: Priced) -> Integers:
    """Price rows and steps of the input: [words, H, K, prices]."""
    ahead = axes.rows(lambda counts: counts.ahead) > 0
    # Few layouts of the input serve all values of k_split.
    lying = {tiles.planned.forms.activations[0]: tiles for tiles in axes.tiles}
    single, double, reading_ahead = (
        axes.of_tiles(lambda tiles, known=known: known[tiles.planned.forms.activations[0]])
        for known in (
            {layout: tiles.input_prices(*way, priced) for layout, tiles in lying.items()}
            for way in ((False, False), (True, False), (True, True))
        )
    )
    is_double = axes.space.flags("buffering", "double")[..., None]
    return np.where(is_double, np.where(ahead[:, :, None, None], reading_ahead, double), single)
