"""The whole way of one case, from its chain to its lowered module."""

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.lower.lowered import Lowered, lower
from hexconv.schedule import stripe
from hexconv.spec import Case


def lower_case(case: Case) -> Lowered:
    """Compute -> schedule -> lower.

    Raises:
        Unsupported: what TVM or the scheme can't do, by name.
    """
    check_supported(case.chain)
    module = chain_module(case.chain)
    schedule = stripe(module, case.chain, case.plan)
    return lower(schedule)
