"""What a chain computes: in TE over packed tensors, and in numpy straight from the definition as the reference."""

from hexconv.compute.reference import magnitude, reference
from hexconv.compute.te import chain_module

__all__ = ["chain_module", "magnitude", "reference"]
