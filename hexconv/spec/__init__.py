"""The input of hexconv: a chain of convs, a plan to schedule it, and the case file that holds both. It needs no TVM.

A name is imported when it is first used, so that the command line's help does not wait for the rules of cases.
"""

from typing import TYPE_CHECKING

from hexconv.homes import deferred
from hexconv.spec.choices import Target

if TYPE_CHECKING:
    from hexconv.spec.case import Case
    from hexconv.spec.chain import Chain, Conv2d, Padding
    from hexconv.spec.extents import Extents, tensor_extents
    from hexconv.spec.kernel_choice import KernelChoice, choose_kernels, kernel_of, nest_of, refusals, settled
    from hexconv.spec.plan import Plan
    from hexconv.spec.requantize import Requantize

_HOMES = {
    "hexconv.spec.case": ("Case",),
    "hexconv.spec.chain": ("Chain", "Conv2d", "Padding"),
    "hexconv.spec.extents": ("Extents", "tensor_extents"),
    "hexconv.spec.kernel_choice": ("KernelChoice", "choose_kernels", "kernel_of", "nest_of", "refusals", "settled"),
    "hexconv.spec.plan": ("Plan",),
    "hexconv.spec.requantize": ("Requantize",),
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


__getattr__ = deferred(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
