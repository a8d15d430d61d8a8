"""The question that a search answers: chain, memory, objective; and which plan is the better answer.

| objective | first | among equals | then |
|---|---|---|---|
| time | packets of a thread and its copies (`hexconv.analyze.step_times`) | bytes copied | footprint |
| traffic | bytes copied | packets of the model | footprint |
| latency | packets of the model | bytes copied | footprint |
| footprint | bytes of VTCM | bytes copied | packets of the model |

Times, and packets for the latency, that are at most `slack` above the least count as equal.

Plans that are equal in all three stand in the order of the space: words nearest to the documented schedule first, then
small splits.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.planned import Planned
from hexconv.errors import InputError, Unsupported
from hexconv.search.grid import Figures, Grid
from hexconv.search.machine import Machine, Rates, memory_of, rates
from hexconv.spec import Chain, KernelChoice, Plan, Target, choose_kernels, settled
from hexconv.spec.capacities import CAPACITIES_BYTES
from hexconv.spec.choices import Engine, Kernel, Objective
from hexconv.spec.kernels import KERNELS, fastest_first
from hexconv.spec.knobs import acts
from hexconv.spec.places import MIXED, SEARCHED, Caches, Storage

COSTS: dict[Objective, tuple[str, str, str]] = {
    "time": ("time_packets", "traffic_bytes", "footprint_bytes"),
    "traffic": ("traffic_bytes", "latency_packets", "footprint_bytes"),
    "latency": ("latency_packets", "traffic_bytes", "footprint_bytes"),
    "footprint": ("footprint_bytes", "traffic_bytes", "latency_packets"),
}
"""The figures that are compared, the first one first; `time_packets` depends on the question's `bytes_per_packet`."""

IN_VTCM: tuple[Caches, ...] = ("all-in-vtcm", "as-needed")
"""How caches are placed where a single search keeps them all in VTCM."""

SLACK = 0.005
"""Plans whose times or packets are at most this share above the least are equally quick."""


def value(plans: Any, name: str, question: "Question") -> Any:
    """Return a figure of a plan, of a cut, or of all plans of a grid, by its name in `COSTS`."""
    return plans.time_packets(question.beta) if name == "time_packets" else getattr(plans, name)


def cost(figures: Figures, question: "Question") -> tuple[float, ...]:
    """Return the costs of a plan, in the order in which they are compared."""
    return tuple(value(figures, name, question) for name in COSTS[question.objective])


def ranked(grid: Grid, numbers: Integers, question: "Question") -> Integers:
    """Sort some plans of a grid, the best first."""
    keys = [value(grid, name, question)[numbers] for name in COSTS[question.objective]]
    if any(values.dtype == object for values in keys):
        order = sorted(range(len(numbers)), key=lambda at: (*(values[at] for values in keys), numbers[at]))
        return numbers[np.array(order, dtype=np.int64)]
    order = numbers[np.lexsort(keys[::-1])]
    return _as_quick_first(grid, order, question) if question.slack else order


def first_ranked(grid: Grid, numbers: Integers, question: "Question") -> int:
    """Return the best of some plans of a grid, as `ranked` sorts them."""
    keys = [*COSTS[question.objective]]
    if question.slack:
        times = value(grid, question.quickness, question)[numbers]
        numbers = numbers[times <= times.min() * (1 + question.slack)]
        keys = ["traffic_bytes", "latency_packets", "footprint_bytes", question.quickness]
    for name in keys:
        values = value(grid, name, question)[numbers]
        numbers = numbers[(values == values.min()).astype(bool)]
    return int(numbers[0])


def _as_quick_first(grid: Grid, order: Integers, question: "Question") -> Integers:
    """Put plans that are about as quick as the quickest first: by their bytes, then by packets and footprint."""
    times = value(grid, question.quickness, question)[order]
    as_quick = int(np.searchsorted(times, float(times[:1].sum()) * (1 + question.slack), side="right"))
    quick = order[:as_quick]
    fewest = np.lexsort((grid.footprint_bytes[quick], grid.latency_packets[quick], grid.traffic_bytes[quick]))
    return np.concatenate([quick[fewest], order[as_quick:]])


@dataclass(frozen=True)
class Question:
    """The best plan for a chain, under a limit.

    Attributes:
        vtcm_bytes: the most bytes that the caches of a plan may take together.
        objective: the figure that is to be least.
        plan: the knobs that the search holds fixed: kernel, arch, threads.
        target: where the plan is to run, which says what kernel it gets (`hexconv.spec.kernel_choice`).
        caches: which caches may lie outside of VTCM.
        bytes_per_packet: the bytes that copies move in the time of a packet, for the objective time; the
            architecture's where this is left out (`hexconv.search.machine.memory_of`).
        equally_quick: for the objective latency, the share by which packets may be above the fewest and count as equal;
            the error of the model where this is left out, since runs alone can part such plans. `about` takes it
            from the kind of the chain, at most that over all kinds.
        machine: the device whose pace and memory times are told by; the architecture's where this is left out.
        weighs: further kernels, which a chain gets instead of the plan's where it costs less on them by the objective
            (`hexconv.search.weighed_kernels`).
        engine: how the matrix engine requantises what it computes: exactly, or by its own convert (fast).
    """

    vtcm_bytes: int
    objective: Objective = "traffic"
    plan: Plan = field(default_factory=Plan)
    target: Target | None = None
    caches: Caches = "all-in-vtcm"
    bytes_per_packet: float | None = None
    equally_quick: float | None = None
    machine: Machine | None = None
    weighs: tuple[Kernel, ...] = ()
    engine: Engine = "exact"

    @property
    def by_kernel(self) -> tuple["Question", ...]:
        """The question for each kernel by itself: that of its plan, then those that are weighed beside it."""
        own = replace(self, weighs=())
        plans = (replace(self.plan, kernel=kernel, **_without_threads(kernel)) for kernel in self.weighs)
        return (own, *(replace(own, plan=plan) for plan in plans))

    @property
    def rates(self) -> Rates:
        """The rates of the machine: of the device that was measured, or else of the architecture."""
        return self.machine.rates if self.machine else rates(self.plan.arch)

    @property
    def slack(self) -> float:
        """The share by which the first figure that is compared may be above the least."""
        if self.objective == "latency":
            return self.rates.nest.error if self.equally_quick is None else self.equally_quick
        return SLACK if self.objective == "time" else 0.0

    @property
    def quickness(self) -> str:
        """The figure that is held against bytes: packets, or times where these are asked for."""
        return "time_packets" if self.objective == "time" else "latency_packets"

    @property
    def beta(self) -> float:
        """The bytes that copies move in the time of a packet."""
        if self.bytes_per_packet is not None:
            return self.bytes_per_packet
        if self.machine:
            return self.machine.bytes_per_packet(self.plan.threads)
        return memory_of(self.plan.arch).bytes_per_packet

    def kernels(self, chain: Chain) -> tuple[KernelChoice, ...]:
        """Choose the kernel of every conv of a chain."""
        return choose_kernels(chain, self._anywhere, self.target)

    def about(self, chain: Chain) -> "Question":
        """Return the question with the share of packets by which the model can't part two plans of this chain."""
        if self.objective != "latency" or self.equally_quick is not None:
            return self
        error = self.rates.error(Planned(chain, self.settled(chain).plan))
        return replace(self, equally_quick=min(self.slack, error or self.slack))

    def settled(self, chain: Chain) -> "Question":
        """Return the question for one chain: its plan names the kernel that this chain gets, and caches lie in VTCM.

        What is to fit is VTCM, so caches that the plan doesn't place are counted as `placed` places them.

        Raises:
            InputError: times of the matrix engine are asked for by a machine, which has none.
        """
        plan = settled(chain, self._anywhere, self.target)
        if self.machine and plan.kernel == "hmx":
            allowed = "hvx | plain: a first run has no plan of the matrix engine, and no machine tells its times"
            raise InputError("plan.kernel", "hmx", allowed)
        storage: Storage = self.plan.storage if self.plan.storage in MIXED else "vtcm"
        return replace(self, plan=replace(plan, storage=storage))

    @property
    def storages(self) -> tuple[Storage, ...]:
        """The ways to place caches that the search of a settled question tries."""
        if self.caches in IN_VTCM:
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


def _without_threads(kernel: Kernel) -> dict[str, int]:
    """Return the number of threads of a kernel that doesn't obey them; nothing of the others."""
    return {} if acts("threads", kernel) else {"threads": 1}


def of_pieces(threads: int, kernel: Kernel | None = None, engine: Engine = "exact") -> dict[str, Any]:
    """Return the plan, the weighed kernels and the engine of the question that is asked for the pieces of a model.

    A kernel that convs get only where it is asked for is weighed beside the fastest of the others.

    Raises:
        InputError: the convert of the matrix engine is asked for, and the engine is not.

    >>> of_pieces(4, "hmx")["plan"].slug, of_pieces(4, "hmx")["weighs"], of_pieces(1, "hvx")["weighs"]
    ('ks1-hs1-hvx-t4', ('hmx',), ())
    """
    if engine == "fast" and kernel != "hmx":
        what = f"--engine fast with --kernel {kernel}" if kernel else "--engine fast without --kernel hmx"
        raise InputError.because(f"{what}: it is the convert of the matrix engine", "add --kernel hmx, or leave it out")
    if kernel is None or KERNELS[kernel].is_offered:
        return {"plan": in_bands(threads, kernel), "weighs": ()}
    return {"plan": in_bands(threads, fastest_first("hexagon")[0]), "weighs": (kernel,), "engine": engine}


def in_bands(threads: int, kernel: Kernel | None = None) -> Plan:
    """Return the plan of a question for so many threads, which the hvx kernel alone obeys.

    >>> in_bands(1) == Plan(), in_bands(4).kernel
    (True, 'hvx')
    """
    return Plan(kernel=kernel or "hvx", threads=threads) if threads > 1 else Plan(kernel=kernel)


def placed(plan: Plan, footprint_bytes: int) -> Plan:
    """Return a plan with its caches, or the roles that it names, in VTCM: of its own arch, else of the first with room.

    Where no architecture has enough VTCM, the caches stay in ordinary memory.

    >>> placed(Plan(), 1 << 20).slug, placed(Plan(arch="v66"), 1 << 20).arch, placed(Plan(), 1 << 30).storage
    ('ks1-hs1-vtcm-v68', 'v68', 'global')
    """
    capacities, storage = CAPACITIES_BYTES, plan.storage if plan.storage in MIXED else "vtcm"
    if footprint_bytes <= (plan.vtcm_bytes or capacities.get(plan.arch, 0)):
        return replace(plan, storage=storage)
    roomy = [arch for arch, capacity in capacities.items() if footprint_bytes <= capacity]
    if not roomy:
        return replace(plan, storage="global")
    known: dict[str, Any] = {**asdict(plan), "storage": storage, "arch": roomy[0], "vtcm_bytes": None}
    return Plan(**known)
