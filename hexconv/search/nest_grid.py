"""Compute the figures of every plan of a nest of rows at once, from a few plans of each axis of the space.

Every figure is a sum of products: how often something happens, by words and stripes, times what it takes, by words and
k_split (`hexconv.search.nest_axes`). The closed form of single plans (`hexconv.analyze.rows`,
`hexconv.analyze.nest_packets`) gives the factors.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hexconv.analyze.copy_packets import on_filter, on_input
from hexconv.analyze.exact import Integers
from hexconv.analyze.nest_packets import on_conv, on_set_up
from hexconv.analyze.output_packets import on_output
from hexconv.analyze.outside import touched_by
from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import rows_work
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.search.nest_axes import NestAxes
from hexconv.search.nest_footprint import counts, footprint_bytes
from hexconv.search.space import Space
from hexconv.spec import Chain
from hexconv.spec.names import INPUT_CACHE, filter_name, kept_cache, target_cache
from hexconv.spec.places import MIXED


def nest_grid(chain: Chain, space: Space, priced: Callable[[Parts], float]) -> tuple[Integers, ...]:
    """Compute footprint, traffic, MACs and packets of every plan, [N] each."""
    axes = NestAxes(chain, space)
    figures = (footprint_bytes(axes), _traffic_bytes(axes), _macs(axes), _packets(axes, priced))
    return tuple(np.broadcast_to(each, space.shape).ravel() for each in figures)


def _traffic_bytes(axes: NestAxes) -> Integers:
    """The bytes that all tensors move between memory and the caches."""
    sample, convs = axes.one, range(len(axes.chain.conv))
    work = [rows_work(planned).traffic_bytes for planned in sample]
    total = sample[0].input_bytes(axes.made(0)[0]) + work[0]["output"]
    for index in convs:
        sizes = [each[filter_name(index + 1)] // p.filter_stagings(index) for each, p in zip(work, sample, strict=True)]
        total = total + axes.stagings(index) * np.array(sizes, axes.kind)
    return total + _outside_bytes(axes) if any(plan.storage in MIXED for plan in axes.space.words) else total


def _outside_bytes(axes: NestAxes) -> Integers:
    """The bytes that kernels read and write in caches that don't count."""
    caches = {cache.name: cache for one in axes.one for cache in rows_footprints(one)}
    total: Any = 0
    for index in range(len(axes.chain.conv)):
        making = axes.times(index + 1, lambda planned, index=index: planned.making_steps(index + 1))
        touched = [touched_by(planned, index) for planned in axes.one]
        often = (*axes.made(index + 1)[:2], making, axes.threads, *axes.together(index + 1))
        for times, sizes in zip(often, zip(*(each.parts for each in touched), strict=True), strict=True):
            for name in dict.fromkeys(name for size in sizes for name in size):
                of_tiles = np.array([size[name] for size in sizes], axes.kind)
                total = total + times * (1 - counts(axes, caches[name])) * of_tiles
        target, rows = caches[target_cache(index + 1, len(axes.chain.conv))], sum(axes.made(index + 1)[:2])
        total = total + (1 - counts(axes, target)) * axes.one[0].filled_bytes(index + 1, rows)
        if kept := caches.get(kept_cache(index + 1)):  # saved once, and restored once
            both = 2 - counts(axes, target) - counts(axes, kept)
            total = total + 2 * both * axes.one[0].kept_bytes(index + 1, rows)
    if kept := caches.get(kept_cache(0)):
        often = 3 - counts(axes, caches[INPUT_CACHE]) - 2 * counts(axes, kept)
        total = total + often * axes.rows(lambda planned: planned.kept_bytes(0, planned.first_reads))
    return total


def _macs(axes: NestAxes) -> Integers:
    """The multiply-accumulates of all convs."""
    total: Any = 0
    for index in range(len(axes.chain.conv)):
        row = [planned.macs_of_row(index) for planned in axes.one]
        staging = np.array([planned.staging_macs(index) for planned in axes.one], axes.kind)
        stages = axes.rows(lambda planned, index=index: planned.makes_any(index))
        total = total + axes.made(index + 1)[0] * np.array(row, axes.kind) + stages * staging
    return total


def _packets(axes: NestAxes, priced: Callable[[Parts], float]) -> Integers:
    """Return the packets that the model gives: the counts of parts, times their prices."""
    steps = axes.made(len(axes.chain.conv))[2]
    output = [axes.copies(lambda planned, of=of: priced(of(on_output(planned)))) for of in (_step, _once)]
    total = steps * output[0] + output[1] + priced(on_set_up(axes.one[0]))
    prices = [axes.rows(lambda planned: _prices(on_input(planned), priced))]
    for index in range(len(axes.chain.conv)):
        prices.append(axes.tiles(lambda planned, index=index: _prices(on_conv(planned, index), priced)))
        staged = axes.copies(lambda planned, index=index: priced(on_filter(planned, index)))
        total = total + axes.stagings(index) * staged
    for tensor, each in enumerate(prices):
        often = (*axes.made(tensor), axes.threads, *axes.together(tensor))
        total = total + sum(times * each[..., place] for place, times in enumerate(often))
    return total.astype(float)


def _prices(spent: Spent, priced: Callable[[Parts], float]) -> list[float]:
    """Price a row with elements, a row without, a step, what happens once, and rows that are made together."""
    return [priced(parts) for parts in spent.parts]


def _step(spent: Spent) -> Parts:
    return spent.step


def _once(spent: Spent) -> Parts:
    return spent.once
