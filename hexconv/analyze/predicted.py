"""The closed forms of the kernel that a chain gets: its caches, and who shares memory with whom."""

from hexconv.analyze.footprint import PredictedCache, cache_footprints
from hexconv.analyze.host import host_footprints
from hexconv.analyze.hvx import hvx_footprints
from hexconv.analyze.sharing import PredictedAllocation, shared_allocations
from hexconv.spec import Chain, Plan, kernel_of

FOOTPRINTS = {"plain": cache_footprints, "hvx": hvx_footprints, "host": host_footprints}


def predicted_caches(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache."""
    return FOOTPRINTS[kernel_of(chain, plan)](chain, plan)


def predicted_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """Every physical allocation; only the caches of the plain kernel share any."""
    if kernel_of(chain, plan) == "plain":
        return shared_allocations(chain, plan)
    return tuple(PredictedAllocation((c.name,), c.dtype, c.bytes) for c in predicted_caches(chain, plan))
