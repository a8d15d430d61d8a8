"""The whole way of one case, from its chain to its lowered module."""

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.lower.function import lower_function
from hexconv.lower.lowered import Lowered, lower
from hexconv.schedule import hvx, stripe
from hexconv.spec import Case, kernel_of


def lower_case(case: Case) -> Lowered:
    """Compute -> schedule -> lower.

    A plan with `kernel = "hvx"` gets the plain kernel where HVX's doesn't serve the chain (`kernel_of`).

    Raises:
        Unsupported: what TVM or the scheme can't do, by name.
    """
    check_supported(case.chain)
    if kernel_of(case.chain, case.plan) == "hvx":
        return lower_function(hvx.chain_function(case.chain, case.plan))
    module = chain_module(case.chain)
    schedule = stripe(module, case.chain, case.plan)
    return lower(schedule)
