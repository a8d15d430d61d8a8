"""The algorithm: what a chain computes, in TE over packed tensors, and the same from the definition in numpy."""

from hexconv.compute.chain import chain_module
from hexconv.compute.magnitude import magnitude
from hexconv.compute.reference import reference

__all__ = ["chain_module", "magnitude", "reference"]
