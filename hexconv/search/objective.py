"""Which plan is better: the objective first, then what else a plan costs, then the plan that is declared first.

| objective | first | among equals | then |
|---|---|---|---|
| traffic | bytes copied | MACs done | footprint |
| latency | packets of the model | bytes copied | footprint |
| footprint | bytes of VTCM | bytes copied | MACs done |

Plans that are equal in all three stand in the order of the space: words nearest to the documented schedule first, then
small splits.
"""

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.search.grid import Figures, Grid
from hexconv.spec.objective import Objective

COSTS: dict[Objective, tuple[str, str, str]] = {
    "traffic": ("traffic_bytes", "macs", "footprint_bytes"),
    "latency": ("latency_packets", "traffic_bytes", "footprint_bytes"),
    "footprint": ("footprint_bytes", "traffic_bytes", "macs"),
}
"""The fields of `Figures` and of `Grid` that are compared, the first one first."""


def cost(figures: Figures, objective: Objective) -> tuple[float, ...]:
    """Return the costs of a plan, in the order in which they are compared."""
    return tuple(getattr(figures, name) for name in COSTS[objective])


def ranked(grid: Grid, numbers: Integers, objective: Objective) -> Integers:
    """Sort some plans of a grid, the best first."""
    keys = [getattr(grid, name)[numbers] for name in reversed(COSTS[objective])]
    if any(values.dtype == object for values in keys):
        return np.array(sorted(numbers, key=lambda number: _key(grid, number, objective)), dtype=np.int64)
    return numbers[np.lexsort(keys)]


def _key(grid: Grid, number: int, objective: Objective) -> tuple:
    """Return the sort key of one plan, for integers too large for numpy to sort by."""
    return (*cost(grid.figures(number), objective), number)
