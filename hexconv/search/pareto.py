"""The front of footprint against traffic: plans to which no other is better in one and as good in the other."""

import numpy as np

from hexconv.search.exact import Integers
from hexconv.search.grid import Figures, Grid
from hexconv.search.objective import ranked


def front(grid: Grid) -> tuple[Figures, ...]:
    """The front of all plans, fitting or not, the smallest first; of equals the one with the fewest MACs."""
    return tuple(grid.figures(int(number)) for number in lowest(grid))


def lowest(grid: Grid) -> Integers:
    """The numbers of the plans on the front."""
    by_footprint = ranked(grid, np.arange(grid.space.size), "footprint")
    traffic = grid.traffic_bytes[by_footprint]
    least_before = np.minimum.accumulate(traffic)[:-1]
    return by_footprint[np.concatenate([[True], traffic[1:] < least_before]).astype(bool)]
