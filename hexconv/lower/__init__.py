"""Lower a scheduled chain to loops that can be printed, counted, compiled and run."""

from hexconv.lower.lowered import Allocation, Cache, Lowered
from hexconv.lower.pipeline import lower, lower_case
from hexconv.lower.printer import annotated_tir

__all__ = ["Allocation", "Cache", "Lowered", "annotated_tir", "lower", "lower_case"]
