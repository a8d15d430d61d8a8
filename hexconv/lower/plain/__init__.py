"""Scalar code for one step of a conv, on caches of a nest of rows: for convs that no HVX kernel serves."""

from hexconv.lower.plain.step import scalar_conv

__all__ = ["scalar_conv"]
