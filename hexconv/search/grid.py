"""Every plan of a chain with its figures."""

from dataclasses import dataclass

import numpy as np

from hexconv.analyze.hvx import hvx_footprints
from hexconv.analyze.needed import needed_macs
from hexconv.lower.vtcm import granules_bytes
from hexconv.search.exact import Integers
from hexconv.search.machine import Rates
from hexconv.search.program import programs
from hexconv.search.sharing import allocated_bytes
from hexconv.search.sizes import cache_grids
from hexconv.search.space import Space
from hexconv.search.stripes import stripes
from hexconv.search.work import work_grid
from hexconv.spec import Chain, Plan, kernel_of


@dataclass(frozen=True)
class Figures:
    """What one plan takes, moves and computes.

    Attributes:
        plan: the plan.
        footprint_bytes: VTCM, every allocation in whole granules of 2 KiB.
        traffic_bytes: copied between memory and caches; None where the kernel's are not counted (hvx).
        macs: multiply-accumulates done, repetitions included.
        latency_packets: by the model of `hexconv.search.machine`; no cycles.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int | None
    macs: int
    latency_packets: float


@dataclass(frozen=True)
class Grid:
    """The figures of all plans of a space, [N] each, numbered as the space numbers them.

    Attributes:
        space: the plans.
        footprint_bytes: as in `Figures`; so are the others.
        traffic_bytes: None where the kernel's are not counted.
        macs: multiply-accumulates.
        latency_packets: by the model.
    """

    space: Space
    footprint_bytes: Integers
    traffic_bytes: Integers | None
    macs: Integers
    latency_packets: Integers

    def figures(self, number: int) -> Figures:
        """One plan."""
        traffic = None if self.traffic_bytes is None else int(self.traffic_bytes[number])
        footprint, macs = int(self.footprint_bytes[number]), int(self.macs[number])
        return Figures(self.space.plan(number), footprint, traffic, macs, float(self.latency_packets[number]))


def evaluate(chain: Chain, space: Space, rates: Rates) -> Grid:
    """Figures of every plan by the closed forms.

    Args:
        chain: what is planned.
        space: its plans, all of one kernel.
        rates: of the machine, for the latency.
    """
    if kernel_of(chain, space.words[0]) == "hvx":
        return _hvx_grid(chain, space, rates)
    rows = stripes(chain, space)
    work = work_grid(chain, space, rows)
    footprint = allocated_bytes(space, cache_grids(chain, space, rows), programs(chain, space, rows))
    traffic, macs = work.traffic_bytes.ravel(), work.macs.ravel()
    overlaps = np.broadcast_to(space.flags("buffering", "double"), space.shape).ravel()
    return Grid(space, footprint, traffic, macs, rates.plain(chain.dtype).packets(macs, traffic, overlaps))


def _hvx_grid(chain: Chain, space: Space, rates: Rates) -> Grid:
    """HVX kernels: of the knobs only `h_split` has an effect, every conv is done once, and copies are not counted."""
    per_h = [
        sum(granules_bytes(cache.bytes) for cache in hvx_footprints(chain, space.plan(number)))
        for number in range(space.size)
    ]
    macs = np.full(space.size, needed_macs(chain), object)
    return Grid(space, np.array(per_h), None, macs, macs / rates.hvx_macs_per_packet)
