"""The question that a search answers: chain, memory, objective; and which plan is the better answer.

| objective | first | among equals | then |
|---|---|---|---|
| traffic | bytes copied | MACs done | footprint |
| latency | packets of the model | bytes copied | footprint |
| footprint | bytes of VTCM | bytes copied | MACs done |

Plans that are equal in all three stand in the order of the space: words nearest to the documented schedule first, then
small splits.
"""

from dataclasses import asdict, dataclass, field, replace

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.errors import Unsupported
from hexconv.lower.vtcm import capacities_bytes
from hexconv.search.grid import Figures, Grid
from hexconv.spec import Chain, KernelChoice, Plan, Target, choose_kernels, settled
from hexconv.spec.choices import Objective
from hexconv.spec.places import MIXED, SEARCHED, Caches, Storage

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


@dataclass(frozen=True)
class Question:
    """The best plan for a chain, under a limit.

    Attributes:
        vtcm_bytes: the most bytes that the caches of a plan may take together.
        objective: the figure that is to be least.
        plan: the knobs that the search holds fixed: kernel, arch.
        target: where the plan is to run, which says what kernel it gets (`hexconv.spec.kernel_choice`).
        caches: which caches may lie outside of VTCM.
    """

    vtcm_bytes: int
    objective: Objective = "traffic"
    plan: Plan = field(default_factory=Plan)
    target: Target | None = None
    caches: Caches = "all-in-vtcm"

    def kernels(self, chain: Chain) -> tuple[KernelChoice, ...]:
        """Choose the kernel of every conv of a chain."""
        return choose_kernels(chain, self._anywhere, self.target)

    def settled(self, chain: Chain) -> "Question":
        """Return the question for one chain: its plan names the kernel that this chain gets, and caches lie in VTCM.

        What is to fit is VTCM, so caches that the plan doesn't place are counted as `placed` places them.
        """
        plan = settled(chain, self._anywhere, self.target)
        storage: Storage = self.plan.storage if self.plan.storage in MIXED else "vtcm"
        return replace(self, plan=replace(plan, storage=storage))

    @property
    def storages(self) -> tuple[Storage, ...]:
        """The ways to place caches that the search of a settled question tries."""
        if self.caches == "all-in-vtcm":
            return (self.plan.storage,)
        return SEARCHED[self.caches]

    @property
    def _anywhere(self) -> Plan | None:
        """The plan without its `storage`, which a search decides; None where the rest states nothing."""
        plan = replace(self.plan, storage="global")
        return None if plan == Plan() else plan

    def check(self, chain: Chain) -> None:
        """Refuse places of caches that the kernel can't work with.

        Raises:
            Unsupported: scalar loads from VTCM are excluded, but the plain kernel reads every cache by scalar loads.
        """
        plain = [number for number, choice in enumerate(choose_kernels(chain, self.plan), 1) if choice.used == "plain"]
        if self.caches == "no-vtcm-scalar-loads" and plain:
            which = "plain kernel" if len(plain) == len(chain.conv) else f"plain kernel, which conv{plain[0]} gets,"
            raise Unsupported(
                f"the {which} reads every cache by scalar loads; take --caches all-in-vtcm, or --kernel hvx"
            )


def placed(plan: Plan, footprint_bytes: int) -> Plan:
    """Return a plan with its caches, or the roles that it names, in VTCM: of its own arch, else of the first with room.

    Where no architecture has enough VTCM, the caches stay in ordinary memory.

    >>> placed(Plan(), 1 << 20).slug, placed(Plan(arch="v66"), 1 << 20).arch, placed(Plan(), 1 << 30).storage
    ('ks1-hs1-vtcm-v68', 'v68', 'global')
    """
    capacities, storage = capacities_bytes(), plan.storage if plan.storage in MIXED else "vtcm"
    if footprint_bytes <= (plan.vtcm_bytes or capacities.get(plan.arch, 0)):
        return replace(plan, storage=storage)
    roomy = [arch for arch, capacity in capacities.items() if footprint_bytes <= capacity]
    if not roomy:
        return replace(plan, storage="global")
    return Plan(**{**asdict(plan), "storage": storage, "arch": roomy[0], "vtcm_bytes": None})
