"""Emit scalar code for one step of a conv in a nest of rows, for convs that no HVX kernel serves."""

from hexconv.lower.plain.step import scalar_conv

__all__ = ["scalar_conv"]
