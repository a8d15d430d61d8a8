"""Numbers without running: what every cache must hold, who shares memory with whom, and what TVM allocated."""

from hexconv.analyze.fit import Fit, vtcm_fit
from hexconv.analyze.footprint import PredictedCache, cache_footprints
from hexconv.analyze.sharing import PredictedAllocation, shared_allocations
from hexconv.analyze.usage import Usage, cache_usage
from hexconv.analyze.work import needed_macs

__all__ = [
    "Fit",
    "PredictedAllocation",
    "PredictedCache",
    "Usage",
    "cache_footprints",
    "cache_usage",
    "needed_macs",
    "shared_allocations",
    "vtcm_fit",
]
