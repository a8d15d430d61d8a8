"""The best plan, with proof: the searched plans of a chain, where to cut it, and what a network of chains saves."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred
from hexconv.search.best_plan import best_plan
from hexconv.search.cuts import Cuts, best_cuts
from hexconv.search.found import Found
from hexconv.search.grid import Figures, Grid, evaluate
from hexconv.search.planned_chains import (
    Answer,
    Contender,
    ContenderRun,
    PlannedNetwork,
    Race,
    Winner,
    folder_cases,
    plan_all,
    plan_chain,
    planned_manifest,
)
from hexconv.search.question import Objective, Question, placed
from hexconv.search.space import Space

if TYPE_CHECKING:
    from hexconv.search.plan_runs import contenders, decided
    from hexconv.search.proof import Verified, verify

_HOMES = {
    "hexconv.search.plan_runs": ("contenders", "decided"),
    "hexconv.search.proof": ("Verified", "verify"),
}

__all__ = [
    "Question",
    "Objective",
    "Space",
    "Grid",
    "Figures",
    "evaluate",
    "Found",
    "best_plan",
    "placed",
    "Cuts",
    "best_cuts",
    "Answer",
    "Winner",
    "plan_chain",
    "Contender",
    "ContenderRun",
    "Race",
    "contenders",
    "decided",
    "PlannedNetwork",
    "folder_cases",
    "plan_all",
    "planned_manifest",
    "Verified",
    "verify",
]

__getattr__ = deferred(__name__, _HOMES)
