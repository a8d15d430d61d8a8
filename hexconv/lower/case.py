"""Lower a case: from its chain by way of its schedule to its lowered module."""

from dataclasses import replace

from hexconv.compute import chain_module
from hexconv.compute.limits import check_supported
from hexconv.kernel import forms_of
from hexconv.lower.lowered import Lowered, lower
from hexconv.lower.nest import lower_nest
from hexconv.schedule import stripe
from hexconv.spec import Case, nest_of
from hexconv.spec.strips import Strips, in_strips, strips_of


def lower_case(case: Case) -> Lowered:
    """Build a case's chain, schedule it and lower it.

    The kernel is the one that the case gets (`hexconv.spec.kernel`).

    Raises:
        Unsupported: TVM or a kernel can't do what the case asks for; the text says what.
    """
    check_supported(case.chain)
    chain, plan = case.chain, case.settled
    if nest_of(chain, plan) == "rows":
        return _lower_rows(case, strips_of(chain, plan))
    return lower(stripe(chain_module(chain), chain, plan))


def _lower_rows(case: Case, strips: Strips | None) -> Lowered:
    """Lower a case in a nest of rows; strips of columns are a batch of images to the nest."""
    chain, plan = in_strips(case.chain, case.settled)
    module = chain_module(chain, forms_of(chain, plan), strips)
    return lower_nest(stripe(module, chain, plan), replace(case, chain=chain, plan=plan), strips)
