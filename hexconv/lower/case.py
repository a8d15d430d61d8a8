"""The whole way of one case, from its chain to its lowered module."""

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.kernel import forms_of, is_nested
from hexconv.lower.function import lower_function
from hexconv.lower.lowered import Lowered, lower
from hexconv.lower.nest import lower_nest
from hexconv.schedule import host, hvx, stripe
from hexconv.spec import Case


def lower_case(case: Case) -> Lowered:
    """Compute -> schedule -> lower.

    The kernel is the one that the case gets (`hexconv.spec.kernel`).

    Raises:
        Unsupported: what TVM or the scheme can't do, by name.
    """
    check_supported(case.chain)
    chain, plan = case.chain, case.settled
    if is_nested(chain, plan):
        return lower_nest(stripe(chain_module(chain, forms_of(chain, plan)), chain, plan), case)
    if plan.kernel == "hvx":
        return lower_function(hvx.chain_function(chain, plan))
    if plan.kernel == "host":
        return lower_function(host.chain_function(chain, plan))
    return lower(stripe(chain_module(chain), chain, plan))
