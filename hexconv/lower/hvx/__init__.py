"""The HVX kernel of one step of a conv, on caches of the planned nest that lie in rows."""

from hexconv.lower.hvx.step import Scratch, emit_step, inner_convs, scratch_of

__all__ = ["Scratch", "emit_step", "inner_convs", "scratch_of"]
