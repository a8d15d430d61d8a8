"""Figures found without a run: what caches hold, which share memory, what TVM allocated, what is moved and computed."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.analyze.caches import PredictedAllocation, PredictedCache
    from hexconv.analyze.conv_form import ConvForm, conv_forms
    from hexconv.analyze.fit import Fit, misfit, vtcm_fit
    from hexconv.analyze.needed import Work, needed_macs, needed_work
    from hexconv.analyze.planned import Planned, cache_footprints, copies_in_flight, planned_work, shared_allocations
    from hexconv.analyze.usage import Usage, WorkUsage, cache_usage, work_usage

_HOMES = {
    "hexconv.analyze.caches": ("PredictedAllocation", "PredictedCache"),
    "hexconv.analyze.conv_form": ("ConvForm", "conv_forms"),
    "hexconv.analyze.fit": ("Fit", "misfit", "vtcm_fit"),
    "hexconv.analyze.needed": ("Work", "needed_macs", "needed_work"),
    "hexconv.analyze.planned": (
        "Planned",
        "cache_footprints",
        "copies_in_flight",
        "planned_work",
        "shared_allocations",
    ),
    "hexconv.analyze.usage": ("Usage", "WorkUsage", "cache_usage", "work_usage"),
}

__all__ = [
    "Planned",
    "Fit",
    "PredictedAllocation",
    "PredictedCache",
    "Usage",
    "Work",
    "ConvForm",
    "conv_forms",
    "WorkUsage",
    "cache_footprints",
    "cache_usage",
    "copies_in_flight",
    "misfit",
    "needed_macs",
    "needed_work",
    "planned_work",
    "shared_allocations",
    "vtcm_fit",
    "work_usage",
]

__getattr__ = deferred(__name__, _HOMES)
