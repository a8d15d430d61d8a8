"""The input of hexconv: a chain of convs, a plan to schedule it, and the case file that holds both. It needs no TVM.

A name is imported when it is first used, so that the command line's help does not wait for the rules of cases.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hexconv.spec.choices import Target

if TYPE_CHECKING:
    from hexconv.spec.case import Case
    from hexconv.spec.chain import Chain, Conv2d, Padding
    from hexconv.spec.extents import Extents, tensor_extents
    from hexconv.spec.kernel_choice import KernelChoice, choose_kernels, kernel_of, nest_of, refusals, settled
    from hexconv.spec.plan import Plan
    from hexconv.spec.requantize import Requantize

_HOMES = {
    "case": ("Case",),
    "chain": ("Chain", "Conv2d", "Padding"),
    "extents": ("Extents", "tensor_extents"),
    "kernel_choice": ("KernelChoice", "choose_kernels", "kernel_of", "nest_of", "refusals", "settled"),
    "plan": ("Plan",),
    "requantize": ("Requantize",),
}

__all__ = [
    "Case",
    "Chain",
    "Conv2d",
    "Extents",
    "KernelChoice",
    "Padding",
    "Plan",
    "Requantize",
    "Target",
    "choose_kernels",
    "kernel_of",
    "nest_of",
    "refusals",
    "settled",
    "tensor_extents",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module; a name is looked up once."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'hexconv.spec' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"hexconv.spec.{home}"), name)
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
