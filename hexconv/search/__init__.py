"""The best plan, with proof: the searched plans of a chain, where to cut it, and what a network of chains saves."""

from hexconv.search.answer import Answer, Winner, plan_chain
from hexconv.search.best import best_plan
from hexconv.search.cuts import Cuts, best_cuts
from hexconv.search.found import Found
from hexconv.search.grid import Figures, Grid, evaluate
from hexconv.search.laps import Contender, Lap, Race, lap_of
from hexconv.search.network import PlannedNetwork, folder_cases, plan_all, planned_manifest
from hexconv.search.objective import Objective
from hexconv.search.question import Question, placed
from hexconv.search.race import contenders, decided
from hexconv.search.space import Space
from hexconv.search.verify import Verified, verify

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
    "Lap",
    "Race",
    "lap_of",
    "contenders",
    "decided",
    "PlannedNetwork",
    "folder_cases",
    "plan_all",
    "planned_manifest",
    "Verified",
    "verify",
]
