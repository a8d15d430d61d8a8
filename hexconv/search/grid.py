"""The figures of every plan of a chain: footprint, traffic, MACs and packets."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np

from hexconv.analyze.block_grid import (
    BlockAxes,
    blocks_macs,
    blocks_traffic,
    crosses_lines,
    engine_packets,
    with_kind,
)
from hexconv.analyze.engine_parts import parts_beside_engine
from hexconv.analyze.exact import Integers
from hexconv.analyze.plan_axes import Plans
from hexconv.analyze.row_axes import NestAxes, Priced
from hexconv.analyze.row_grid import footprint_bytes, rows_macs, rows_packets, rows_traffic
from hexconv.analyze.shared_memory import blocks_footprint
from hexconv.analyze.step_times import StepTimes, step_times
from hexconv.search.machine import Rates, beside_engine, engine_of
from hexconv.search.space import Space
from hexconv.spec import Chain, Plan, nest_of, tensor_extents
from hexconv.spec.capacities import GRANULE_BYTES
from hexconv.spec.chain import IN_BLOCKS
from hexconv.spec.phases import in_phases
from hexconv.spec.vectors import vectors_bytes

FIGURES = ("footprint_bytes", "traffic_bytes", "macs", "latency_packets")
"""The columns of a grid."""

Timed = Callable[[float], Integers]
"""Takes the bytes that copies move in the time of a packet to the time of every plan, in packets of one thread."""


@dataclass(frozen=True)
class Figures:
    """The figures of one plan: what it holds in VTCM, moves and computes.

    Attributes:
        plan: the plan.
        footprint_bytes: the bytes of VTCM, every allocation in whole granules of 2 KiB.
        traffic_bytes: the bytes copied between memory and caches, those that kernels read and write in caches
            outside of VTCM, and biases, vectors and tables once.
        macs: the multiply-accumulates done, recomputed ones included.
        latency_packets: the packets of all threads by the model of `hexconv.search.machine`, which are not cycles.
        chain: the chain.
        times: the times of a call that are known, in packets of one thread, by the bytes that copies move in the time
            of one.
        rates: the machine's rates.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    macs: int
    latency_packets: float
    chain: InitVar[Chain]
    times: InitVar[Mapping[float, float]]
    rates: InitVar[Rates]

    def __post_init__(self, chain: Chain, times: Mapping[float, float], rates: Rates) -> None:
        """Keep what times follow from beside the figures."""
        vars(self).update(_chain=chain, _times=times, _rates=rates)

    def time_packets(self, bytes_per_packet: float) -> float:
        """Return the time of a call in packets of one thread: a model (`hexconv.analyze.step_times`)."""
        known: Mapping[float, float] = vars(self)["_times"]
        of = vars(self)["_chain"], self.plan, vars(self)["_rates"]
        return known.get(bytes_per_packet) or _time_of(*of, bytes_per_packet)


@lru_cache(1 << 12)
def _time_of(chain: Chain, plan: Plan, rates: Rates, bytes_per_packet: float) -> float:
    return float(_grid_of_one(chain, plan, rates).time_packets(bytes_per_packet)[0])


@dataclass(frozen=True)
class Grid:
    """The figures of all plans of a space, [N] each, numbered as the space numbers them.

    Attributes:
        chain: the chain.
        space: the plans.
        rates: the machine's rates.
        timed: computes the time of every plan.
        footprint_bytes: as in `Figures`.
        traffic_bytes: as in `Figures`.
        macs: as in `Figures`.
        latency_packets: as in `Figures`.
    """

    chain: Chain
    space: Space
    rates: Rates
    timed: Timed
    footprint_bytes: Integers
    traffic_bytes: Integers
    macs: Integers
    latency_packets: Integers

    def time_packets(self, bytes_per_packet: float) -> Integers:
        """Return the time of every plan in packets of one thread, [N] (`hexconv.analyze.step_times`)."""
        if bytes_per_packet not in self._times:
            self._times[bytes_per_packet] = self.timed(bytes_per_packet)
        return self._times[bytes_per_packet]

    @cached_property
    def _times(self) -> dict[float, Integers]:
        """The times that are known."""
        return {}

    def figures(self, number: int) -> Figures:
        """Return the figures of one plan."""
        return Figures(
            plan=self.space.plan(number),
            footprint_bytes=int(self.footprint_bytes[number]),
            traffic_bytes=int(self.traffic_bytes[number]),
            macs=int(self.macs[number]),
            latency_packets=float(self.latency_packets[number]),
            chain=self.chain,
            times={speed: float(times[number]) for speed, times in self._times.items()},
            rates=self.rates,
        )


MOST_GRIDS, MOST_KEPT = 1 << 10, 1 << 13
"""How many grids are kept, and the most plans of one: a chain serves several objectives, limits and speeds.
Plans take 40 bytes each, so that is 340 MB at most."""
_KEPT: OrderedDict[Hashable, Grid] = OrderedDict()


def evaluate(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of every plan by the closed forms; a large space is computed part after part.

    Args:
        chain: the chain that is planned.
        space: its plans, all of one kernel.
        rates: the machine's rates, for the latency.
    """
    key = chain, space.key, rates
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
    return replace(
        whole, traffic_bytes=whole.traffic_bytes + beside, timed=lambda speed: whole.timed(speed) + beside / speed
    )


def figures_of(chain: Chain, plan: Plan, rates: Rates) -> Figures:
    """Compute the figures of one plan."""
    return _grid_of_one(chain, plan, rates).figures(0)


def _grid_of_one(chain: Chain, plan: Plan, rates: Rates) -> Grid:
    words = replace(plan, k_split=1, h_split=1, rows=None)
    h_splits, rows = ([], (plan.rows,)) if plan.rows else ([plan.h_split], ())
    return evaluate(chain, Space((words,), np.array(h_splits, int), np.array([plan.k_split]), rows), rates)


def joined(grids: Sequence[Grid]) -> Grid:
    """Join the grids of spaces that differ in their strips alone."""
    if len(grids) == 1:
        return grids[0]
    strips = tuple(strip for grid in grids for strip in grid.space.strips)
    columns = (np.concatenate([getattr(grid, name) for grid in grids]) for name in FIGURES)

    def timed(speed: float) -> Integers:
        return np.concatenate([grid.time_packets(speed) for grid in grids])

    return Grid(grids[0].chain, replace(grids[0].space, strips=strips), grids[0].rates, timed, *columns)


def _of_strips(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of plans with strips of one kind, or with whole rows."""
    rows, mixes_heights = tensor_extents(chain)[-1].row_blocks, chain.output_layout != IN_BLOCKS
    return _joined(space, [_part(chain, part, rates) for part in space.parts(rows, mixes_heights)])


def _joined(space: Space, parts: list[Grid], words: Integers | None = None) -> Grid:
    """Join the grids of the ranges of h_split to the grid of the whole space.

    Args:
        space: the whole space.
        parts: the grids.
        words: where they are those of some words each: the place of each word of the space among those of all parts.
    """
    if len(parts) == 1:
        return parts[0]

    def together(columns: Sequence[Integers]) -> Integers:
        shaped = [column.reshape(part.space.shape) for column, part in zip(columns, parts, strict=True)]
        return (np.concatenate(shaped, axis=1) if words is None else np.concatenate(shaped)[words]).ravel()

    def timed(speed: float) -> Integers:
        return together([part.time_packets(speed) for part in parts])

    return Grid(
        parts[0].chain,
        space,
        parts[0].rates,
        timed,
        *(together([getattr(part, name) for part in parts]) for name in FIGURES),
    )


def _part(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute the figures of plans that are held in memory together."""
    nest = nest_of(chain, space.words[0])
    if nest == "rows":
        return _of_rows(chain, space, rates)
    return _of_blocks(chain, space, rates)


def _of_rows(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute figures of all plans of a nest of rows at once."""
    axes = NestAxes(chain, space.plans)
    steps, alike = axes.but_for_places
    macs = np.broadcast_to(sum(rows_macs(steps).values()), steps.plans.shape)[alike]
    packets, traffic = _packets(axes, rates.nest.packets), sum(rows_traffic(axes).values())
    figures = [np.broadcast_to(each, space.shape) for each in (footprint_bytes(axes, GRANULE_BYTES), traffic, macs)]
    figures.append(packets)
    timed = _by_steps(chain, space.plans, figures[3], figures[1], rates)
    return Grid(chain, space, rates, timed, *(each.ravel() for each in figures))


def _packets(axes: NestAxes, priced: Priced) -> Integers:
    """Return the packets of all plans, [words, H, K]: where caches lie doesn't change them."""
    steps, alike = axes.but_for_places
    return np.broadcast_to(rows_packets(steps, priced), steps.plans.shape)[alike]


def _by_steps(chain: Chain, plans: Plans, packets: Integers, traffic: Integers, rates: Rates) -> Timed:
    """Return what times all plans of a nest of rows; their steps are computed when they are first asked for."""

    @cache
    def steps() -> Sequence[tuple[Sequence[int], StepTimes]]:
        axes, priced = NestAxes(chain, plans), rates.paced.packets
        slow = packets if rates.paced is rates.nest else _packets(axes, priced)
        return [step_times(axes, slow, traffic, way, priced) for way in plans.ways]

    def timed(speed: float) -> Integers:
        found = np.empty(plans.shape)
        for which, times in steps():
            found[which] = times.time_packets(speed)
        return found.ravel()

    return timed


NOWHERE_BYTES = 1 << 30
"""What a plan takes more than its caches where an operand of the matrix engine would cross a line: it fits nowhere."""


def _of_engine(axes: BlockAxes, arch: str) -> tuple[Integers, Integers]:
    """Return the packets of all threads by the model of the matrix engine, and the time of a call in those of one.

    The engine serves one thread at a time, and each waits for it as long as it multiplies in all. The packets of a
    thread that waits for others where they join count as well.
    """
    multiplied = engine_packets(axes).macs / engine_of(arch).macs_per_packet
    slowest = beside_engine().packets(parts_beside_engine(axes, axes.threads))
    of_all, of_one = multiplied + slowest * axes.threads, multiplied + slowest
    packets, times = (np.broadcast_to(each, axes.plans.shape).ravel().astype(float) for each in (of_all, of_one))
    return packets, times


def _of_blocks(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Compute figures of all plans of a nest of blocks, at once those that store as many rows of padding."""
    stored = [words.padding_rows for words in space.words]
    if len(kinds := dict.fromkeys(stored)) == 1:
        return _of_blocks_stored_alike(chain, space, rates)
    places = np.argsort([place for kind in kinds for place, each in enumerate(stored) if each == kind])
    words = ([each for each in space.words if each.padding_rows == kind] for kind in kinds)
    return _joined(
        space, [_of_blocks_stored_alike(chain, replace(space, words=(*some,)), rates) for some in words], places
    )


def _of_blocks_stored_alike(chain: Chain, space: Space, rates: Rates) -> Grid:
    sample = space.words[0]
    axes = with_kind(BlockAxes(in_phases(chain, sample.kernel, sample.padding_rows), space.plans))
    footprint, overlaps = (
        blocks_footprint(axes, GRANULE_BYTES),
        sum(axes.doubled.values(), np.zeros((1, 1, 1), int)) > 0,
    )
    traffic, macs = sum(blocks_traffic(axes).values()), sum(blocks_macs(axes).values())
    figures = (footprint, traffic, macs, overlaps)
    footprint, traffic, macs, overlaps = (np.broadcast_to(each, space.shape).ravel() for each in figures)
    packets = busy = rates.plain(chain.dtype).packets(macs, traffic, overlaps)
    if axes.is_of_engine:
        packets, busy = _of_engine(axes, space.words[0].arch)
        nowhere = np.broadcast_to(crosses_lines(axes), space.shape).ravel()
        footprint = np.where(nowhere, footprint + NOWHERE_BYTES, footprint)

    def timed(speed: float) -> Integers:
        """Add copies where they don't overlap; elsewhere the larger of both is in the packets already."""
        return np.where(overlaps, np.maximum(busy, traffic / speed), busy + traffic / speed).astype(float)

    return Grid(chain, space, rates, timed, footprint, traffic, macs, packets)
