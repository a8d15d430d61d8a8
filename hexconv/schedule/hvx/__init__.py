"""The `hvx` strategy: integer chains by vrmpy, sums in registers, rows rolling through caches."""

from hexconv.schedule.hvx.chain import chain_function

__all__ = ["chain_function"]
