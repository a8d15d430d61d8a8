"""What is asked: a chain of convs, a plan to schedule it, and the case file that holds both. No TVM."""

from hexconv.spec.case import Case
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d, Padding
from hexconv.spec.extents import Extents, tensor_extents
from hexconv.spec.kernel import KernelChoice, Target, choose_kernels, kernel_of, nest_of, refusals, settled
from hexconv.spec.plan import Plan
from hexconv.spec.requantize import Requantize

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
