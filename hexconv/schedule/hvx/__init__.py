"""The `hvx` strategy: uint8 and int8 chains by vrmpy, sums in registers, rows rolling through caches."""

from hexconv.schedule.hvx.chain import chain_function

__all__ = ["chain_function"]
