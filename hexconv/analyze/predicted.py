"""The closed forms of the kernel that a chain gets: its caches, which share memory, what it moves and multiplies."""

from dataclasses import replace

from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.footprint import plain_footprints
from hexconv.analyze.host import host_footprints
from hexconv.analyze.host_work import host_work
from hexconv.analyze.needed import Work
from hexconv.analyze.outside import rows_touched
from hexconv.analyze.outside_plain import plain_touched
from hexconv.analyze.rows import rows_work
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.analyze.sharing import PredictedAllocation, plain_allocations
from hexconv.analyze.traffic import plain_work
from hexconv.spec import Chain, Plan, nest_of
from hexconv.spec.places import MIXED

FOOTPRINTS = {"blocks": plain_footprints, "rows": rows_footprints, "bands": host_footprints}
WORKS = {"blocks": plain_work, "rows": rows_work, "bands": host_work}
TOUCHED = {"blocks": plain_touched, "rows": rows_touched}


def cache_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of the kernel that a chain gets under a plan, in the order in which they are first written.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 16, 16, 32), conv=(Conv2d(out_channels=32),))
    >>> [[cache.name for cache in cache_footprints(chain, Plan(kernel=kernel))] for kernel in ("plain", "host")]
    [['input_cache', 'filter1_cache', 'output_cache'], ['filter1_cache']]
    """
    return FOOTPRINTS[nest_of(chain, plan)](chain, plan)


def shared_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """Every physical allocation of the kernel that a chain gets, in order; only the plain kernel's caches share any."""
    if nest_of(chain, plan) == "blocks":
        return plain_allocations(chain, plan)
    caches = cache_footprints(chain, plan)
    return tuple(PredictedAllocation((c.name,), c.dtype, c.bytes, c.is_in_vtcm(plan), c.copies) for c in caches)


def planned_work(chain: Chain, plan: Plan) -> Work:
    """All bytes moved and all multiply-accumulates done; if some caches lie in VTCM, also the traffic of those outside.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [planned_work(chain, Plan(kernel=kernel)).macs["conv1"] for kernel in ("plain", "host")]
    [4242014208, 566820864]
    """
    nest = nest_of(chain, plan)
    work = WORKS[nest](chain, plan)
    if plan.storage not in MIXED:
        return work
    outside = {each.name for each in cache_footprints(chain, plan) if not each.is_in_vtcm(plan)}
    touched = {name: count for name, count in TOUCHED[nest](chain, plan).items() if name in outside}
    return replace(work, traffic_bytes=work.traffic_bytes | touched)
