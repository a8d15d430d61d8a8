"""What is asked: a chain of convs, a plan to schedule it, and the case file that holds both. No TVM."""

from hexconv.spec.case import Case
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d, Padding
from hexconv.spec.extents import Extents, tensor_extents
from hexconv.spec.kernel import Target, fastest_plan, kernel_of, refusal
from hexconv.spec.plan import Plan
from hexconv.spec.requantize import Requantize

__all__ = [
    "Case",
    "Chain",
    "Conv2d",
    "Extents",
    "Padding",
    "Plan",
    "Requantize",
    "Target",
    "fastest_plan",
    "kernel_of",
    "refusal",
    "tensor_extents",
]
