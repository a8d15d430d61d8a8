"""Values of every plan of a nest of rows at once: caches, footprint, traffic, MACs, packets; one plan is a grid of one.

Every figure is a sum of products: how often something happens, by words and stripes, times what it takes, by words and
k_split (`hexconv.analyze.row_axes`).

Traffic. Counted are the input's logical elements of all rows that are read; each filter whenever a step of its conv
makes anything, or once for all threads if it is resident; and the packed output once. Where stripes roll inside of
channel tiles, each thread stages the filter of the last conv once. Biases, vectors and tables go through no cache;
`hexconv.analyze.planned` counts them once a call.

With double buffering a cache that is copied to or from more than once gets a second slot.

If some caches lie in VTCM and another lies outside, what a kernel does in that other one is traffic: every load and
every store counts, however often it touches the same byte. Copies into a cache and out of it are counted with the
argument that they copy, and filling its padding isn't counted. Counted are caches, and the buffers that hold their
elements in another order: `split`, a source of int16 that is taken apart, and `planes`, a source where lanes are
pixels, or dense rows as often as they are copied. A kernel's sums and constants don't count, nor does what it reads in
`words`, the cache of a filter whose words scalar loads read.

HVX kernels read and write, for a row of outputs:

    source   4 bytes for each word of 4 channels under a window, once for each tile of channels (or two vectors for
             each 32 words of a run, where they are spread over vectors); where the zero point of
             the filter wants windows summed ahead, all vectors of the rows under the row of outputs as well; a
             depthwise conv reads vectors of 4 pixels, those that its windows meet, once for rows made together
    filter   128 bytes for each word, block of 32 channels and tile of pixels; of a depthwise conv, once for rows made
             together, or for each of their tiles
    target   whole vectors, those of the fringe included

Scalar code in their nest reads 4 bytes of the source and 32 of the filter for 8 output channels; product by product, an
element for 8 products (a depthwise conv one each), and one of the filter for each. It writes all that it makes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from hexconv.analyze.caches import PredictedAllocation, PredictedCache
from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.nest_packets import on_set_up
from hexconv.analyze.plan_axes import Plans
from hexconv.analyze.row_axes import ONCE, CacheColumn, NestAxes, Priced, Tiles, as_parts
from hexconv.analyze.row_footprint import caches_of, scratch_of
from hexconv.analyze.row_nest import PlannedRows
from hexconv.kernel.bands import turns
from hexconv.kernel.cost import Parts
from hexconv.kernel.form import rows_together
from hexconv.spec import Chain, Plan
from hexconv.spec.names import (
    INPUT_CACHE,
    OUTPUT_CACHE,
    conv_name,
    filter_cache,
    filter_name,
    intermediate,
    kept_cache,
    target_cache,
    words_cache,
)

OF_STRIPES = ("input", "intermediate", "output")
"""The roles of caches that hold the rows of a stripe."""
KEPT = "kept"
"""The role of caches that hold columns of all rows of a tensor."""
OF_FILTERS = ("filter", "words")
"""The roles of caches that hold a whole filter where filters are resident, and a tile of it where they aren't."""
ALONE = -1


def rows_of_plan(chain: Chain, plan: Plan) -> NestAxes:
    """Return a plan of a nest of rows as a grid of one."""
    return NestAxes(chain, Plans.of(plan))


def rows_footprints(axes: NestAxes) -> tuple[PredictedCache, ...]:
    """Predict every cache of one plan, then the scratch of its kernels.

    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
    >>> plan = Plan(kernel="hvx", order="h_outer", halo="roll", buffering="double")
    >>> [(cache.name, cache.bytes) for cache in rows_footprints(rows_of_plan(chain, plan))][:3]
    [('input_cache', 147456), ('filter1_cache', 73728), ('intermediate1', 81920)]
    """
    planned, doubled, (plan,) = axes.one, rows_doubled(axes), axes.plans.words
    is_resident = plan.filters == "resident"
    caches = [cache for tensor in range(len(axes.convs) + 1) for cache in caches_of(planned, tensor, is_resident)]
    scratch = [cache for index in axes.convs for cache in scratch_of(planned, index)]
    found: list[PredictedCache] = []
    for cache in (*caches, *scratch):
        if cache.is_vtcm_only and not cache.is_in_vtcm(plan):
            continue
        first, *shape = cache.shape
        if cache.role in (*OF_STRIPES, KEPT):
            shape[0] = int(_rows(axes, cache.role, cache.number).item())
        parts = [axes.threads] if axes.threads > 1 and not (is_resident and cache.role in OF_FILTERS) else []
        parts += [2] if cache.name in doubled else []
        found.append(replace(cache, shape=(*parts, first, *shape), copies=_copies(axes, cache.role).item()))
    return tuple(found)


def _rows(axes: NestAxes, role: str, tensor: int) -> Any:
    """Return how often a cache holds the row, or the block of rows, that it is predicted for: [words, H, 1]."""
    if role == KEPT:
        return np.array(axes.one.extents[tensor].rows)
    return axes.cache_rows[:, tensor, :, None] // axes.one.layouts.row_units[tensor]


def _copies(axes: NestAxes, role: str) -> Integers:
    """Return how many threads have a cache of their own, [words, 1, 1]; filters that are resident serve all."""
    return np.where(axes.plans.flags("filters", "resident") & (role in OF_FILTERS), 1, axes.threads)


def rows_allocations(axes: NestAxes) -> Iterator[PredictedAllocation]:
    """Yield every memory of one plan, in the order of the first cache in each: caches that share memory have one.

    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> conv = Conv2d(out_channels=128, requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 8, 8, 128), dtype="uint8", conv=(conv, conv, conv))
    >>> [(memory.holds, memory.bytes) for memory in rows_allocations(rows_of_plan(chain, Plan(kernel="hvx")))][:2]
    [(('input_cache', 'intermediate2'), 8192), (('filter1_cache', 'filter2_cache', 'filter3_cache'), 4096)]
    """
    shared: dict[tuple[object, ...], list[PredictedCache]] = {}
    memories, (plan,) = _turns(axes), axes.plans.words
    for cache in rows_footprints(axes):
        turn = memories[cache.name].item() if cache.name in memories else ALONE
        key = (cache.name if turn == ALONE else turn, cache.dtype, cache.is_in_vtcm(plan))
        shared.setdefault(key, []).append(cache)
    for first, *others in shared.values():
        names, most = (first.name, *(cache.name for cache in others)), max(cache.bytes for cache in (first, *others))
        yield PredictedAllocation(names, first.dtype, most, first.is_in_vtcm(plan), first.copies)


def footprint_bytes(axes: NestAxes, granule_bytes: int) -> Integers:
    """Compute the bytes of all memories; what one holds is rounded up to whole granules."""
    every, two_slots, memories = list(_caches(axes)), _two_slots(axes), _turns(axes)
    kind = _kind(axes, every)
    total, largest = np.zeros(1, kind), dict[tuple[int, str], Integers]()
    for tensor, column in every:
        cache = column.cache
        name, copies = _name(cache.role, tensor), _copies(axes, cache.role)
        held = _held_bytes(axes, tensor, column, kind) * (1 + two_slots.get(name, 0)) * axes.plans.counts(cache)
        held = copies * ceil_divide(held, granule_bytes) * granule_bytes
        if name not in memories:
            total = total + held
            continue
        turn = memories[name]
        total = total + np.where(turn == ALONE, held, 0)
        for memory in {*turn.ravel().tolist()} - {ALONE}:
            others = largest.get((memory, cache.dtype), 0)
            largest[memory, cache.dtype] = np.maximum(others, np.where(turn == memory, held, 0))
    return sum(largest.values(), total)


def _caches(axes: NestAxes) -> Iterator[tuple[int, CacheColumn]]:
    """Yield each cache with the number of its tensor."""
    for tensor in range(len(axes.convs) + 1):
        for column in axes.k_splits.caches(tensor):
            yield tensor, column


def _name(role: str, tensor: int) -> str:
    """Return the name of a cache of a tensor, which its slots have and the caches that share its memory list."""
    named = {"intermediate": intermediate, "filter": filter_cache, "words": words_cache}
    of_ends = {"input": INPUT_CACHE, "output": OUTPUT_CACHE}
    return named[role](tensor) if role in named else of_ends.get(role, role)


def _kind(axes: NestAxes, every: list[tuple[int, CacheColumn]]) -> type[Any]:
    """Return the integer type that holds the bytes of all caches of all threads, each in two slots."""
    rows = [max(axes.one.extents[at].rows, int(most)) for at, most in enumerate(axes.cache_rows.max(axis=(0, 2)))]
    return integer_type(4 * axes.threads * sum(rows[tensor] * column.most_bytes for tensor, column in every))


def _held_bytes(axes: NestAxes, tensor: int, column: CacheColumn, kind: type[Any]) -> Integers:
    """Compute the bytes that one cache of a thread holds in one slot: 0 in plans that don't have it."""
    role, staged, resident = (
        column.cache.role,
        *(each.astype(kind, copy=False)[None, None] for each in (column.staged, column.resident)),
    )
    if role in OF_FILTERS:
        return np.where(axes.plans.flags("filters", "resident"), resident, staged)
    return staged * _rows(axes, role, tensor) if role in (*OF_STRIPES, KEPT) else staged


def _turns(axes: NestAxes) -> dict[str, Integers]:
    """Return [words, H, 1]: the number of the memory that a cache shares with others, or ALONE; by its name.

    Each stripe makes all rows that it reads then: no ring and no kept column hands any on to the next one. Caches that
    share memory in no plan are left out.
    """
    strips = axes.one.strips
    if strips and strips.keeps:
        return {}
    whole = axes.rows(lambda counts: counts.stripes)[..., None] == 1
    makes_anew = axes.plans.flags("halo", "recompute") | whole
    of_words = [turns(axes.chain, plan) for plan in axes.plans.words]
    kinds = {memories: kind for kind, memories in enumerate(dict.fromkeys(of_words))}
    numbers = [{name: number for number, names in enumerate(memories) for name in names} for memories in kinds]
    which = [kinds[memories] for memories in of_words]
    return {
        name: np.where(makes_anew, np.array([each.get(name, ALONE) for each in numbers])[which, None, None], ALONE)
        for name in dict.fromkeys(name for memories in numbers for name in memories)
    }


def _two_slots(axes: NestAxes) -> dict[str, Integers]:
    """Return whether each cache has two slots (`Plans.two_slots`)."""
    trips = axes.rows(lambda counts: counts.most_stripes + counts.run_in)[..., None]
    before: list[Any] = [False] * (len(axes.convs) - 1)  # a stripe of an intermediate is made in one step
    tiles = [axes.of_conv(Tiles.channel_tiles, index) for index in axes.convs]
    again, rings = (trips > 1) | (axes.again > 1), axes.rows(lambda counts: counts.streams)[..., None]
    steps, in_tiles = [*before, trips > 1], [*before, axes.plans.rolls_in_tiles & rings]
    return axes.plans.two_slots(axes.one.extents[-1].batch > 1, steps, [*before, again], tiles, rings, in_tiles)


def rows_doubled(axes: NestAxes) -> frozenset[str]:
    """Return the names of the caches of one plan that have two slots."""
    return frozenset(name for name, two in _two_slots(axes).items() if two.item())


def rows_in_flight(axes: NestAxes) -> int:
    """How many copies of the input a thread of one plan has under way at once, with double buffering.

    A ring copies row by row; one that isn't read ahead has a copy for each stripe that only reads, and the next one.
    """
    (stripes,) = axes.counts.values()
    if not stripes.streams[0]:
        return 2 if INPUT_CACHE in rows_doubled(axes) else 1
    return stripes.reads_in_flight(0) if stripes.ahead[0] else 1 + int((stripes.warm_up - stripes.run_in)[0])


def rows_traffic(axes: NestAxes) -> dict[str, Integers]:
    """Compute the bytes that plans move between memory and the caches, by argument, and by cache outside of VTCM."""
    steps, alike = axes.but_for_places
    traffic = {"input": steps.one.input_bytes(steps.made(0)[0])}
    for index in axes.convs:
        sizes = steps.of_conv(Tiles.filter_bytes, index).astype(steps.kind)
        traffic[filter_name(index + 1)] = steps.stagings(index) * sizes
    traffic["output"] = np.array(axes.tiles[0].output_bytes)
    if axes.plans.is_mixed:
        traffic = {name: _of_all(size, alike) for name, size in traffic.items()}
        outside = {name: 1 - axes.plans.counts(cache) for name, cache in _every_cache(axes).items()}
        for name, size in rows_touched(steps):
            if outside[name].any():
                traffic[name] = traffic.get(name, 0) + outside[name] * _of_all(size, alike)
    return traffic


def _of_all(figures: Integers, alike: Any) -> Integers:
    """Return the figures of all plans from those of plans that differ in more than where caches lie."""
    return figures[alike] if figures.ndim and len(figures) > 1 else figures


def _every_cache(axes: NestAxes) -> dict[str, PredictedCache]:
    """Return all caches that some plan has, by name."""
    found = dict[str, PredictedCache]()
    for planned in (tiles.planned for tiles in axes.tiles):
        for tensor in range(len(axes.convs) + 1):
            scratch = scratch_of(planned, tensor - 1) if tensor else ()
            found |= {cache.name: cache for cache in (*caches_of(planned, tensor, is_resident=False), *scratch)}
    return found


def rows_touched(axes: NestAxes) -> Iterator[tuple[str, Integers]]:
    """Yield the bytes that kernels read and write in caches, wherever these lie, by the name of the cache."""
    making = axes.times(lambda counts: counts.making_steps)
    for tensor in range(1, len(axes.convs) + 1):
        touched = [tiles.touched(tensor - 1).parts for tiles in axes.tiles]
        steps, (rows, blank, _) = axes.repeated(tensor, making[:, tensor]), axes.made(tensor)
        often = (rows, blank, steps, axes.threads * _makes_any(axes, tensor), *axes.together(tensor - 1))
        for times, sizes in zip(often, zip(*touched, strict=True), strict=False):
            for name in dict.fromkeys(name for size in sizes for name in size):
                yield name, times * np.array([size[name] for size in sizes], axes.kind)
        target = target_cache(tensor, len(axes.convs))
        yield target, _in_strips(axes, PlannedRows.filled_bytes, tensor, rows + blank)
        kept = _in_strips(axes, PlannedRows.kept_bytes, tensor, rows + blank)
        yield from _kept_bytes(axes, tensor, target, 2 * kept)
    reads = axes.times(lambda counts: counts.first_reads)[..., None] * _makes_any(axes, 1)
    yield from _kept_bytes(axes, 0, INPUT_CACHE, _in_strips(axes, PlannedRows.kept_bytes, 0, reads))


def _in_strips(
    axes: NestAxes, bytes_of: Callable[[PlannedRows, int, Any], Any], tensor: int, rows: Integers
) -> Integers:
    """Return bytes of rows in all strips; a tile's plan says how many channels of an intermediate are stored."""
    count = axes.one.strips.count if axes.one.strips else 1
    return rows // count * np.array([bytes_of(tiles.planned, tensor, count) for tiles in axes.tiles], axes.kind)


def _kept_bytes(axes: NestAxes, tensor: int, cache: str, size: Integers) -> Iterator[tuple[str, Integers]]:
    """Yield the bytes of columns that are kept: saved once, unless they come from memory, and restored once."""
    if axes.one.strips and axes.one.strips.tensors[tensor].kept:
        yield from ((cache, size), (kept_cache(tensor), size if tensor else 2 * size))


def _makes_any(axes: NestAxes, tensor: int) -> Integers:
    """Whether any logical element of a tensor is made: its reader may read nothing but its padding."""
    first, end = axes.one.extents[tensor].valid_columns
    return (axes.made(tensor)[0] > 0) & (first < end)


def rows_macs(axes: NestAxes) -> dict[str, Integers]:
    """Compute the multiply-accumulates of each conv, recomputed ones included."""
    found: dict[str, Integers] = {}
    for index in axes.convs:
        row = axes.of_conv(Tiles.row_macs, index).astype(axes.kind)
        staging = axes.of_conv(Tiles.staging_macs, index).astype(axes.kind)
        total = axes.made(index + 1)[0] * row
        found[conv_name(index + 1)] = total + _makes_any(axes, index + 1) * staging if staging.any() else total
    return found


def rows_costs(axes: NestAxes, priced: Priced) -> Iterator[tuple[str, Any, Any]]:
    """Yield what each stage of a run does, how often, and what it takes each time.

    Stages are `set up`, `read input`, `conv 1`, `read filter1`, `write output`.
    """
    yield from costs_of_steps(axes, priced)
    yield "write output", 1, output_prices(axes, priced)[1]
    yield "set up", 1, priced(on_set_up(axes.one))
    for index in axes.convs:
        once = axes.of_conv(Tiles.prices, index, priced)[..., ONCE]
        yield f"conv {index + 1}", axes.threads, once


def costs_of_steps(axes: NestAxes, priced: Priced) -> Iterator[tuple[str, Any, Any]]:
    """Yield what steps do, as in `rows_costs`: all but what a run does once."""
    yield "write output", axes.made(len(axes.convs))[2], output_prices(axes, priced)[0]
    for index in axes.convs:
        yield f"read filter{index + 1}", axes.stagings(index), axes.filter_copies(index, priced)
    yield from _costs_of_rings(axes, priced)
    every = [_input_prices(axes, priced)]
    every += [axes.of_conv(Tiles.prices, index, priced) for index in axes.convs]
    for tensor, taken in enumerate(every):
        often = (*axes.made(tensor), None, *(axes.together(tensor - 1) if tensor else ()))
        for place, times in enumerate(often):
            if times is not None:
                yield f"conv {tensor}" if tensor else "read input", times, taken[..., place]


def _costs_of_rings(axes: NestAxes, priced: Priced) -> Iterator[tuple[str, Any, Any]]:
    """Yield what steps and rows take beside where rings hold intermediates, as in `rows_costs`."""
    rings, *others = axes.rows(lambda counts: counts.streams)[..., None], *axes.convs[:-1]
    if not others or not rings.any():
        return
    of_step, of_row, of_output = (priced(Parts(**{part: 1})) for part in ("ring_step", "ring_made", "ring_handed"))
    for index in others:
        if not rows_together(axes.one.chain, index).sizes:
            rows, _, steps = axes.made(index + 1)
            several = _rows_of_step(axes, index) > 1
            yield f"conv {index + 1}", rings * several * steps * axes.of_conv(Tiles.channel_tiles, index), of_step
            yield f"conv {index + 1}", rings * rows * axes.of_conv(Tiles.tiles_of_lanes, index), of_row
    written = axes.made(len(axes.convs))[2] * axes.of_conv(Tiles.channel_tiles, axes.convs[-1])
    yield "write output", rings * written * axes.plans.flags("buffering", "double"), of_output


def _rows_of_step(axes: NestAxes, index: int) -> Integers:
    """Return how many rows of what a conv makes a whole stripe needs anew, [1, H, 1]: a ring of one row has no turn."""
    strides = prod(conv.stride[0] for conv in axes.one.chain.conv[index + 1 :])
    return strides * np.array(axes.plans.heights)[None, :, None]


def output_prices(axes: NestAxes, priced: Priced) -> tuple[Integers, Integers]:
    """Price a step that copies some of the output, and what copies of all of it take beside: [words, 1, K]."""
    is_double = axes.plans.flags("buffering", "double")[..., None]
    prices = axes.of_tiles(lambda tiles: tiles.output_prices(priced))
    found = np.where(is_double, prices[..., 1, :], prices[..., 0, :])
    return found[..., 0], found[..., 1]


def _input_prices(axes: NestAxes, priced: Priced) -> Integers:
    """Price rows and steps of the input: [words, H, K, prices], or [words, H, 1, prices] where all are alike in K."""
    ahead = axes.rows(lambda each: each.ahead > 0)[:, :, None, None]
    rings = axes.rows(lambda each: each.streams)[:, :, None, None]
    # One layout of the input mostly serves all values of k_split.
    lying = {tiles.planned.layouts.activations[0]: tiles for tiles in axes.tiles}
    known = {layout: tiles.input_prices(priced) for layout, tiles in lying.items()}
    some = axes.tiles if len(known) > 1 else axes.tiles[:1]
    prices = np.array([known[tiles.planned.layouts.activations[0]] for tiles in some])[None, None]
    (single, single_ring, double, double_ring, reading_ahead) = (prices[..., way, :] for way in range(5))
    is_double = axes.plans.flags("buffering", "double")[..., None]
    alone, overlapping = np.where(rings, single_ring, single), np.where(rings, double_ring, double)
    return np.where(is_double, np.where(ahead, reading_ahead, overlapping), alone)


def rows_packets(axes: NestAxes, priced: Priced) -> Integers:
    """Return the packets of all plans that the model gives: the counts of parts, times their prices."""
    stages: dict[str, Any] = defaultdict(int)
    for stage, times, packets in rows_costs(axes, priced):
        stages[stage] = stages[stage] + times * packets
    return np.asarray(sum(stages.values()), float)


def parts_of_stages(axes: NestAxes) -> dict[str, Parts]:
    """How often each part occurs in each stage of a run of one plan (`rows_costs`)."""
    stages: dict[str, Parts] = defaultdict(Parts)
    for stage, times, parts in rows_costs(axes, as_parts):
        stages[stage].add(np.asarray(parts).item(), int(np.asarray(times).item()))
    return stages


def nest_parts(axes: NestAxes) -> Parts:
    """How often each part that `hexconv.analyze.nest_packets` lists occurs in a run of one plan."""
    parts = Parts()
    for stage in parts_of_stages(axes).values():
        parts.add(stage)
    return parts
