"""List the kernels that can compute a conv of a nest of rows; a new kernel is added to these tables."""

from collections.abc import Callable, Mapping

from tvm import tirx

from hexconv.kernel import Forms
from hexconv.lower.conv_step import KernelConv
from hexconv.lower.hvx import hvx_constants, hvx_conv
from hexconv.lower.plain import scalar_conv
from hexconv.spec import Chain, Plan
from hexconv.spec.kernels import Kernel
from hexconv.spec.vectors import Array

Moved = Callable[[Chain, int, Forms, Plan, Mapping[str, tirx.Buffer]], KernelConv]
"""From a chain, the index of a conv, layouts, plan and arguments to the conv as its kernel sees it."""

IN_ROWS: dict[Kernel, Moved] = {"hvx": hvx_conv, "plain": scalar_conv}

LaysOut = Callable[[Chain, int, Forms, Plan, Mapping[str, Array]], dict[str, Array]]
"""From a chain, the index of a conv, layouts, plan and packed arguments to the constants that its kernel loads."""

LAID_OUT_BY: dict[Kernel, LaysOut] = {"hvx": hvx_constants}
"""The kernels that have constants of channels laid out once; the others read biases, multipliers and shifts."""
