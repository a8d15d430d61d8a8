"""From the shapes of a conv2d chain to a proven schedule for Qualcomm Hexagon, on stock Apache TVM.

The whole tool in six steps; `hexconv/docs/reference/api.md` has them with shapes, units and errors:

    module   = chain_module(case.chain)                  # compute
    schedule = stripe(module, case.chain, case.settled)    # schedule
    lowered  = hexconv.lower.lower(schedule)             # lower; or all three: lower_case(case)
    sizes    = cache_usage(case, lowered)                # analyze
    measured = measure(case, lowered, "llvm")            # run
    row      = run_row(case, measured)                   # report

A name is imported when it is first used: shapes and closed forms need no TVM, and don't wait for it.
"""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.analyze import cache_footprints, cache_usage, needed_work, planned_work, shared_allocations, vtcm_fit
    from hexconv.compute import chain_module, reference
    from hexconv.lower import annotated_tir, lower_case
    from hexconv.network import load
    from hexconv.report import run_row
    from hexconv.run.measure import measure
    from hexconv.schedule import stripe
    from hexconv.search import Question, best_plan
    from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize

__version__ = "0.1.0"

_HOMES = {
    "hexconv.spec": ("Case", "Chain", "Conv2d", "Padding", "Plan", "Requantize"),
    "hexconv.compute": ("chain_module", "reference"),
    "hexconv.schedule": ("stripe",),
    "hexconv.lower": ("lower_case", "annotated_tir"),
    "hexconv.analyze": (
        "cache_footprints",
        "shared_allocations",
        "cache_usage",
        "needed_work",
        "planned_work",
        "vtcm_fit",
    ),
    "hexconv.run.measure": ("measure",),
    "hexconv.search": ("Question", "best_plan"),
    "hexconv.report": ("run_row",),
    "hexconv.network": ("load",),
}

__all__ = [
    "Case",
    "Chain",
    "Conv2d",
    "Padding",
    "Plan",
    "Requantize",
    "chain_module",
    "reference",
    "stripe",
    "lower_case",
    "annotated_tir",
    "cache_footprints",
    "shared_allocations",
    "cache_usage",
    "needed_work",
    "planned_work",
    "vtcm_fit",
    "measure",
    "Question",
    "best_plan",
    "run_row",
    "load",
]


__getattr__ = deferred(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
