"""Numbers without running: what every cache must hold, who shares memory with whom, and what TVM allocated."""

from hexconv.analyze.footprint import PredictedCache, cache_footprints
from hexconv.analyze.sharing import PredictedAllocation, shared_allocations

__all__ = ["PredictedAllocation", "PredictedCache", "cache_footprints", "shared_allocations"]
