"""Every plan of a chain with its figures."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.hvx_packets import hvx_parts
from hexconv.analyze.needed import Work, needed_macs
from hexconv.analyze.predicted import planned_work, shared_allocations
from hexconv.kernel import is_nested
from hexconv.kernel.forms import tile_blocks
from hexconv.lower.vtcm import granules_bytes
from hexconv.search.exact import Integers, integer_type
from hexconv.search.machine import Rates
from hexconv.search.program import programs
from hexconv.search.sharing import allocated_bytes
from hexconv.search.sizes import cache_grids
from hexconv.search.space import Space
from hexconv.search.stripes import stripes
from hexconv.search.work import work_grid
from hexconv.spec import Chain, Plan, kernel_of, tensor_extents

NEST_MACS_PER_PACKET = {1: 224, 2: 245, 3: 247, 4: 250}
"""By blocks of output channels in a tile, measured as what is below; that of 3 is a guess between its neighbours."""
NEST_COPIED_BYTES_PER_PACKET = 94
"""Measured on the simulator: 3x3 -> 3x3 and 1x1 -> 1x1 over 64x64x128, single against double buffering."""


@dataclass(frozen=True)
class Figures:
    """What one plan takes, moves and computes.

    Attributes:
        plan: the plan.
        footprint_bytes: VTCM, every allocation in whole granules of 2 KiB.
        traffic_bytes: copied between memory and caches.
        macs: multiply-accumulates done, repetitions included.
        latency_packets: by the model of `hexconv.search.machine`, no cycles; 0 where it has none (host).
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    macs: int
    latency_packets: float


@dataclass(frozen=True)
class Grid:
    """The figures of all plans of a space, [N] each, numbered as the space numbers them.

    Attributes:
        space: the plans.
        footprint_bytes: as in `Figures`; so are the others.
        traffic_bytes: copied.
        macs: multiply-accumulates.
        latency_packets: by the model.
    """

    space: Space
    footprint_bytes: Integers
    traffic_bytes: Integers
    macs: Integers
    latency_packets: Integers

    def figures(self, number: int) -> Figures:
        """One plan."""
        return Figures(
            plan=self.space.plan(number),
            footprint_bytes=int(self.footprint_bytes[number]),
            traffic_bytes=int(self.traffic_bytes[number]),
            macs=int(self.macs[number]),
            latency_packets=float(self.latency_packets[number]),
        )


def evaluate(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Figures of every plan by the closed forms, part after part of a large space.

    Args:
        chain: what is planned.
        space: its plans, all of one kernel.
        rates: of the machine, for the latency.
    """
    return _joined(space, [_part(chain, part, rates) for part in space.parts(tensor_extents(chain)[-1].row_blocks)])


def _joined(space: Space, parts: list[Grid]) -> Grid:
    """The grid of a space from those of its ranges of h_split."""
    if len(parts) == 1:
        return parts[0]
    columns = (
        np.concatenate([getattr(part, name).reshape(part.space.shape) for part in parts], axis=1).ravel()
        for name in ("footprint_bytes", "traffic_bytes", "macs", "latency_packets")
    )
    return Grid(space, *columns)


def _part(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Figures of plans that are held in memory together."""
    if kernel_of(chain, space.words[0]) != "plain":
        return _kernel_grid(chain, space, rates)
    rows = stripes(chain, space)
    work = work_grid(chain, space, rows)
    footprint = allocated_bytes(space, cache_grids(chain, space, rows), programs(chain, space, rows))
    traffic, macs = work.traffic_bytes.ravel(), work.macs.ravel()
    overlaps = np.broadcast_to(space.flags("buffering", "double"), space.shape).ravel()
    return Grid(space, footprint, traffic, macs, rates.plain(chain.dtype).packets(macs, traffic, overlaps))


def _kernel_grid(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Other kernels, plan by plan."""
    plans = [space.plan(number) for number in range(space.size)]
    sizes = [[granules_bytes(memory.bytes) for memory in shared_allocations(chain, plan)] for plan in plans]
    works = [planned_work(chain, plan) for plan in plans]
    return Grid(
        space,
        _sums(sizes),
        _sums([work.traffic_bytes.values() for work in works]),
        _sums([work.macs.values() for work in works]),
        np.array([_packets(chain, plan, work, rates) for plan, work in zip(plans, works, strict=True)]),
    )


def _packets(chain: Chain, plan: Plan, work: Work, rates: Rates) -> float:
    """The latency of other kernels: of hvx what its parts take (`hvx_packets`); none of host.

    In the nest a rate of MACs, repeated ones included, and of the copies that the kernel makes itself.
    """
    if plan.kernel != "hvx":
        return 0.0
    if not is_nested(chain, plan):
        return rates.hvx.packets(hvx_parts(chain, plan))
    copied = sum(work.traffic_bytes.values()) if plan.buffering == "single" else 0
    macs = max(sum(work.macs.values()), needed_macs(chain))
    rate = NEST_MACS_PER_PACKET[tile_blocks(min(plan.k_split, most_blocks(chain)))]
    return macs / rate + copied / NEST_COPIED_BYTES_PER_PACKET


def most_blocks(chain: Chain) -> int:
    """Blocks of 32 output channels of the conv that has most."""
    return max(tensor.channel_blocks for tensor in tensor_extents(chain)[1:])


def _sums(terms: Iterable[Iterable[int]]) -> Integers:
    """[N] of N lists of terms."""
    sums = [sum(each) for each in terms]
    return np.array(sums, integer_type(max(sums)))
