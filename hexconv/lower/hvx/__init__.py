"""The HVX kernel: it emits HVX instructions in TIR for one step of a conv in a nest of rows."""

from hexconv.lower.hvx.step_code import hvx_constants, hvx_conv

__all__ = ["hvx_constants", "hvx_conv"]
