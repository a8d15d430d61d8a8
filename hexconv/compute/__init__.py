"""What a chain computes: in TE over packed tensors, and in numpy straight from the definition as the reference."""

from hexconv.compute.chain import chain_module
from hexconv.compute.magnitude import magnitude
from hexconv.compute.reference import reference

__all__ = ["chain_module", "magnitude", "reference"]
