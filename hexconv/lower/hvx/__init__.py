"""The HVX kernel of one step of a conv, on caches of the planned nest that lie in rows; HVX instructions in TIR."""

from hexconv.lower.hvx.conv import hvx_conv

__all__ = ["hvx_conv"]
