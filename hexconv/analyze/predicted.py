"""The closed forms of the kernel that a chain gets: its caches, and who shares memory with whom."""

from hexconv.analyze.footprint import PredictedCache, cache_footprints
from hexconv.analyze.hvx import hvx_footprints
from hexconv.analyze.sharing import PredictedAllocation, shared_allocations
from hexconv.spec import Chain, Plan, kernel_of


def predicted_caches(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache."""
    return hvx_footprints(chain, plan) if kernel_of(chain, plan) == "hvx" else cache_footprints(chain, plan)


def predicted_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """Every physical allocation; the caches of HVX kernels share none."""
    if kernel_of(chain, plan) != "hvx":
        return shared_allocations(chain, plan)
    return tuple(PredictedAllocation((c.name,), c.dtype, c.bytes) for c in hvx_footprints(chain, plan))
