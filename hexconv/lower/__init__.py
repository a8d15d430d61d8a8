"""From a Schedule to something that can be read, measured or run."""

from hexconv.lower.lowered import Allocation, Cache, Lowered, lower

__all__ = ["Allocation", "Cache", "Lowered", "lower"]
