"""What a chain computes: in TE over packed tensors, and in numpy straight from the definition as the reference."""

from typing import TYPE_CHECKING

from hexconv.compute.reference import magnitude, reference
from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.compute.te import chain_module

_HOMES = {
    "hexconv.compute.te": ("chain_module",),
}

__all__ = ["chain_module", "magnitude", "reference"]

__getattr__ = deferred(__name__, _HOMES)
