"""The whole way of one case, from its chain to its lowered module."""

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.kernel import forms_of, is_nested
from hexconv.lower.function import lower_function
from hexconv.lower.lowered import Lowered, lower
from hexconv.lower.nest import lower_nest
from hexconv.schedule import host, hvx, stripe
from hexconv.spec import Case, kernel_of


def lower_case(case: Case) -> Lowered:
    """Compute -> schedule -> lower.

    A plan that asks for another kernel than the plain one gets it where it serves the chain (`kernel_of`).

    Raises:
        Unsupported: what TVM or the scheme can't do, by name.
    """
    check_supported(case.chain)
    if is_nested(case.chain, case.plan):
        module = chain_module(case.chain, forms_of(case.chain, case.plan))
        return lower_nest(stripe(module, case.chain, case.plan), case)
    if (kernel := kernel_of(case.chain, case.plan)) != "plain":
        strategies = {"hvx": hvx.chain_function, "host": host.chain_function}
        return lower_function(strategies[kernel](case.chain, case.plan))
    module = chain_module(case.chain)
    schedule = stripe(module, case.chain, case.plan)
    return lower(schedule)
