"""The order: loops split and reordered, stages placed, caches read and written, by named steps."""

from hexconv.schedule.stripe import stripe

__all__ = ["stripe"]
