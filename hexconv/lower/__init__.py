"""Lower a scheduled chain to loops that can be printed, counted, compiled and run."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.lower.lowered import Allocation, Cache, Lowered
    from hexconv.lower.pipeline import lower, lower_case
    from hexconv.lower.printer import annotated_tir

_HOMES = {
    "hexconv.lower.lowered": ("Allocation", "Cache", "Lowered"),
    "hexconv.lower.pipeline": ("lower", "lower_case"),
    "hexconv.lower.printer": ("annotated_tir",),
}

__all__ = ["Allocation", "Cache", "Lowered", "annotated_tir", "lower", "lower_case"]

__getattr__ = deferred(__name__, _HOMES)
