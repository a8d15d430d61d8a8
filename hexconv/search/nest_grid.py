"""Compute the figures of every plan of a nest of rows at once, from the axes of the space.

Every figure is a sum of products: how often something happens, by words and stripes, times what it takes, by words and
k_split (`hexconv.search.nest_axes`). The closed form of single plans (`hexconv.analyze.rows`,
`hexconv.analyze.nest_packets`) gives the factors.
"""

from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.nest_packets import on_set_up
from hexconv.analyze.outside import touched_by
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.search.nest_axes import NestAxes
from hexconv.search.nest_footprint import counts, footprint_bytes
from hexconv.search.nest_tiles import Priced
from hexconv.search.space import Space
from hexconv.spec import Chain
from hexconv.spec.names import INPUT_CACHE, kept_cache, target_cache
from hexconv.spec.places import MIXED


def nest_grid(chain: Chain, space: Space, priced: Priced) -> tuple[Integers, ...]:
    """Compute footprint, traffic, MACs and packets of every plan, [N] each."""
    axes = NestAxes(chain, space)
    figures = (footprint_bytes(axes), _traffic_bytes(axes), _macs(axes), _packets(axes, priced))
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
