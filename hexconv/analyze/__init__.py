"""Numbers without running: what every cache must hold, who shares memory with whom, and what TVM allocated."""

from hexconv.analyze.footprint import PredictedCache, cache_footprints
from hexconv.analyze.sharing import PredictedAllocation, shared_allocations
from hexconv.analyze.usage import Usage, cache_usage

__all__ = ["PredictedAllocation", "PredictedCache", "Usage", "cache_footprints", "cache_usage", "shared_allocations"]
