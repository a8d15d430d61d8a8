"""The figures of every plan of a chain: footprint, traffic, MACs and packets."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hexconv.analyze.block_grid import BlockAxes, blocks_macs, blocks_traffic, with_kind
from hexconv.analyze.exact import Integers
from hexconv.analyze.row_axes import NestAxes
from hexconv.analyze.row_grid import footprint_bytes, rows_exposed, rows_macs, rows_packets, rows_traffic
from hexconv.analyze.shared_memory import blocks_footprint
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.machine import Rates
from hexconv.search.space import Space
from hexconv.spec import Chain, Plan, nest_of, tensor_extents
from hexconv.spec.chain import IN_BLOCKS
from hexconv.spec.vectors import vectors_bytes

FIGURES = ("footprint_bytes", "traffic_bytes", "macs", "latency_packets", "exposed_bytes")
"""The columns of a grid."""


@dataclass(frozen=True)
class Figures:
    """The figures of one plan: what it holds in VTCM, moves and computes.

    Attributes:
        plan: the plan.
        footprint_bytes: the bytes of VTCM, every allocation in whole granules of 2 KiB.
        traffic_bytes: the bytes copied between memory and caches, those that kernels read and write in caches
            outside of VTCM, and biases, vectors and tables once.
        macs: the multiply-accumulates done, recomputed ones included.
        latency_packets: the packets of all threads by the model of `hexconv.search.machine`, which are not cycles;
        exposed_bytes: the part of `traffic_bytes` that is copied while nothing computes: all of it where copies don't
            overlap compute, else what comes before the first step, and what is left after the last.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    macs: int
    latency_packets: float
    exposed_bytes: int

    def time_packets(self, bytes_per_packet: float) -> float:
        """Return the time of a call in packets, where copies move so many bytes in the time of one (`time_packets`)."""
        columns = self.latency_packets / self.plan.threads, self.traffic_bytes, self.exposed_bytes
        return float(time_packets(*columns, bytes_per_packet))


def time_packets(packets: Any, traffic_bytes: Any, exposed_bytes: Any, bytes_per_packet: float) -> Any:
    """Return the time of a call in packets of one thread: a model that no run here can judge.

    Steps whose copies overlap compute take the longer of both; copies that are exposed add to it.

        time = max(packets, (traffic - exposed) / bytes_per_packet) + exposed / bytes_per_packet

    >>> [float(time_packets(1000, *moved, 8)) for moved in ((4000, 400), (40000, 400), (4000, 4000))]
    [1050.0, 5000.0, 1500.0]
    """
    overlapped, exposed = (traffic_bytes - exposed_bytes) / bytes_per_packet, exposed_bytes / bytes_per_packet
    return np.maximum(packets, overlapped) + exposed


@dataclass(frozen=True)
class Grid:
    """The figures of all plans of a space, [N] each, numbered as the space numbers them.

    Attributes:
        space: the plans.
        footprint_bytes: as in `Figures`.
        traffic_bytes: as in `Figures`.
        macs: as in `Figures`.
        latency_packets: as in `Figures`.
        exposed_bytes: as in `Figures`.
    """

    space: Space
    footprint_bytes: Integers
    traffic_bytes: Integers
    macs: Integers
    latency_packets: Integers
    exposed_bytes: Integers

    def time_packets(self, bytes_per_packet: float) -> Integers:
        """Return the time of every plan in packets, [N] (`time_packets`); all plans have one number of threads."""
        packets = self.latency_packets / self.space.words[0].threads
        return time_packets(packets, self.traffic_bytes, self.exposed_bytes, bytes_per_packet).astype(float)

    def figures(self, number: int) -> Figures:
        """Return the figures of one plan."""
        return Figures(
            plan=self.space.plan(number),
            footprint_bytes=int(self.footprint_bytes[number]),
            traffic_bytes=int(self.traffic_bytes[number]),
            macs=int(self.macs[number]),
            latency_packets=float(self.latency_packets[number]),
            exposed_bytes=int(self.exposed_bytes[number]),
        )


MOST_GRIDS, MOST_KEPT = 1 << 10, 1 << 13
"""How many grids are kept, and the most plans of one: a chain is asked for by several objectives, limits and speeds.
Plans take 40 bytes each, so that is 340 MB at most."""
_KEPT: OrderedDict[Hashable, Grid] = OrderedDict()


def evaluate(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of every plan by the closed forms; a large space is computed part after part.

    Args:
        chain: the chain that is planned.
        space: its plans, all of one kernel.
        rates: the machine's rates, for the latency.
    """
    key = chain, space.key, rates.nest, rates.source
    if key in _KEPT:
        _KEPT.move_to_end(key)
        return _KEPT[key]
    grid = _evaluate(chain, space, rates)
    if len(grid.macs) <= MOST_KEPT:
        _KEPT[key] = grid
    if len(_KEPT) > MOST_GRIDS:
        _KEPT.popitem(last=False)
    return grid


def forget() -> None:
    """Forget all figures that are kept."""
    _KEPT.clear()


def _evaluate(chain: Chain, space: Space, rates: Rates) -> Grid:
    grids = [
        replace(_of_strips(chain, space.in_strips(number), rates), space=replace(space, strips=(strip,)))
        for number, strip in enumerate(space.strips)
    ]
    whole, beside = joined(grids), sum(vectors_bytes(chain).values())
    return replace(whole, traffic_bytes=whole.traffic_bytes + beside, exposed_bytes=whole.exposed_bytes + beside)


def figures_of(chain: Chain, plan: Plan, rates: Rates) -> Figures:
    """Compute the figures of one plan."""
    words = replace(plan, k_split=1, h_split=1, rows=None)
    h_splits, rows = ([], (plan.rows,)) if plan.rows else ([plan.h_split], ())
    return evaluate(chain, Space((words,), np.array(h_splits, int), np.array([plan.k_split]), rows), rates).figures(0)


def joined(grids: Sequence[Grid]) -> Grid:
    """Join the grids of spaces that differ in their strips alone."""
    if len(grids) == 1:
        return grids[0]
    strips = tuple(strip for grid in grids for strip in grid.space.strips)
    columns = (np.concatenate([getattr(grid, name) for grid in grids]) for name in FIGURES)
    return Grid(replace(grids[0].space, strips=strips), *columns)


def _of_strips(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of plans with strips of one kind, or with whole rows."""
    rows, mixes_heights = tensor_extents(chain)[-1].row_blocks, chain.output_layout != IN_BLOCKS
    return _joined(space, [_part(chain, part, rates) for part in space.parts(rows, mixes_heights)])


def _joined(space: Space, parts: list[Grid]) -> Grid:
    """Join the grids of the ranges of h_split to the grid of the whole space."""
    if len(parts) == 1:
        return parts[0]
    columns = (
        np.concatenate([getattr(part, name).reshape(part.space.shape) for part in parts], axis=1).ravel()
        for name in FIGURES
    )
    return Grid(space, *columns)


def _part(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of plans that are held in memory together."""
    nest = nest_of(chain, space.words[0])
    if nest == "rows":
        return _of_rows(chain, space, rates)
    return _of_blocks(chain, space, rates)


def _of_rows(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute figures of all plans of a nest of rows at once."""
    axes = NestAxes(chain, space.plans)
    traffic, packets = rows_traffic(axes), rows_packets(axes, rates.nest.packets)
    work = sum(traffic.values()), sum(rows_macs(axes).values())
    figures = (footprint_bytes(axes, GRANULE_BYTES), *work, packets, rows_exposed(axes, traffic))
    return Grid(space, *(np.broadcast_to(each, space.shape).ravel() for each in figures))


def _of_blocks(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute figures of all plans of a nest of blocks at once."""
    axes = with_kind(BlockAxes(chain, space.plans))
    footprint, overlaps = (
        blocks_footprint(axes, GRANULE_BYTES),
        sum(axes.doubled.values(), np.zeros((1, 1, 1), int)) > 0,
    )
    traffic, macs = sum(blocks_traffic(axes).values()), sum(blocks_macs(axes).values())
    figures = (footprint, traffic, macs, overlaps)
    footprint, traffic, macs, overlaps = (np.broadcast_to(each, space.shape).ravel() for each in figures)
    packets = rates.plain(chain.dtype).packets(macs, traffic, overlaps)
    exposed = np.where(overlaps, 0, traffic)  # the larger of both is in the packets already
    return Grid(space, footprint, traffic, macs, packets, exposed)
