"""The whole way of one case, from its chain to its lowered module."""

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.lower.function import lower_function
from hexconv.lower.lowered import Lowered, lower
from hexconv.schedule import hvx, stripe
from hexconv.spec import Case


def lower_case(case: Case) -> Lowered:
    """Compute -> schedule -> lower.

    A plan with `kernel = "hvx"` gets the plain kernel where HVX's doesn't serve the chain (`kernel_of`).

    Raises:
        Unsupported: what TVM or the scheme can't do, by name.
    """
    check_supported(case.chain)
    stages = hvx.stages_of(case.chain)
    if case.plan.kernel == "hvx" and stages:
        return lower_function(hvx.chain_function(case.chain, case.plan, stages))
    module = chain_module(case.chain)
    schedule = stripe(module, case.chain, case.plan)
    return lower(schedule)


def kernel_of(case: Case) -> str:
    """The kernel that a case gets, and why it isn't the one that its plan asks for.

    A float chain with a plan for HVX gets the plain kernel:

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> kernel_of(Case("small", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan(kernel="hvx")))
    'plain: hvx serves uint8 and int8 chains, this one is float32'
    """
    if case.plan.kernel == "plain":
        return "plain"
    if not case.chain.is_integer:
        return f"plain: hvx serves uint8 and int8 chains, this one is {case.chain.dtype}"
    shifts_left = [index for index, conv in enumerate(case.chain.conv) if conv.requantize and conv.requantize.shift > 0]
    if shifts_left:
        return f"plain: hvx serves requantisation with a shift of 0 or less, not that of chain.conv[{shifts_left[0]}]"
    return "hvx"
