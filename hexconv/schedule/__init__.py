"""Schedule a chain by named steps: split and reorder loops, place stages, read and write caches."""

from hexconv.schedule.stripe import stripe

__all__ = ["stripe"]
