"""What is asked of a search, and the memory that a plan is given."""

from dataclasses import asdict, dataclass, field, replace

from hexconv.errors import InputError, Unsupported
from hexconv.lower.vtcm import capacities_bytes
from hexconv.search.objective import Objective
from hexconv.spec import Chain, KernelChoice, Plan, Target, choose_kernels, kernel_of, settled
from hexconv.spec.knobs import acts
from hexconv.spec.places import MIXED, SEARCHED, Caches, Storage


@dataclass(frozen=True)
class Question:
    """The best plan for a chain, under a limit.

    Attributes:
        vtcm_bytes: what the caches of a plan may take together.
        objective: what is to be least.
        plan: what is no knob of the search: kernel, arch.
        target: where the plan is to run, which says what kernel it gets (`hexconv.spec.kernel`).
        threads: hardware threads of the machine that it is to run on.
        caches: which of them may lie outside of VTCM.
    """

    vtcm_bytes: int
    objective: Objective = "traffic"
    plan: Plan = field(default_factory=Plan)
    target: Target | None = None
    threads: int = 1
    caches: Caches = "all-in-vtcm"

    def kernels(self, chain: Chain) -> tuple[KernelChoice, ...]:
        """What every conv of a chain gets."""
        return choose_kernels(chain, self._anywhere, self.target)

    def settled(self, chain: Chain) -> "Question":
        """The question about one chain: its plan names the kernel that this chain gets."""
        plan = settled(chain, self._anywhere, self.target, self.threads)
        return replace(self, plan=replace(plan, storage=self.plan.storage) if has_places(plan) else plan)

    @property
    def storages(self) -> tuple[Storage, ...]:
        """The ways to place caches that are looked at, of a settled question."""
        if self.caches == "all-in-vtcm" or not has_places(self.plan):
            return (self.plan.storage,)
        return SEARCHED[self.caches]

    @property
    def _anywhere(self) -> Plan | None:
        """The plan without a place for its caches, which a search decides; None where it then states nothing."""
        plan = replace(self.plan, storage="global")
        return None if plan == Plan() else plan

    def check(self, chain: Chain) -> None:
        """Refuse an objective that the kernel has no figures for, and what it can't keep from doing.

        Raises:
            InputError: the latency of the host kernel: the model counts packets of Hexagon.
            Unsupported: no scalar loads from VTCM by the plain kernel.
        """
        plain = [number for number, choice in enumerate(choose_kernels(chain, self.plan), 1) if choice.used == "plain"]
        if self.caches == "no-vtcm-scalar-loads" and plain:
            which = "plain kernel" if len(plain) == len(chain.conv) else f"plain kernel, which conv{plain[0]} gets,"
            raise Unsupported(
                f"the {which} reads every cache by scalar loads; take --caches all-in-vtcm, or --kernel hvx"
            )
        if self.objective == "latency" and kernel_of(chain, self.plan) == "host":
            raise InputError.because(
                "no model knows the latency of the host kernel", "take --objective traffic or footprint"
            )


def has_places(plan: Plan) -> bool:
    """Whether the kernel that a plan asks for has caches that may lie in VTCM or outside of it."""
    return acts("storage", plan.kernel or "plain")


def placed(plan: Plan, footprint_bytes: int) -> Plan:
    """A plan with its caches in VTCM, or those that it puts there: of its own architecture, else the first with room.

    Where none has as much, the caches are left in ordinary memory, and so are those of the host kernel.

    >>> placed(Plan(), 1 << 20).slug, placed(Plan(arch="v66"), 1 << 20).arch, placed(Plan(), 1 << 30).storage
    ('ks1-hs1-vtcm-v68', 'v68', 'global')
    """
    if not has_places(plan):
        return plan
    capacities, storage = capacities_bytes(), plan.storage if plan.storage in MIXED else "vtcm"
    if footprint_bytes <= (plan.vtcm_bytes or capacities.get(plan.arch, 0)):
        return replace(plan, storage=storage)
    roomy = [arch for arch, capacity in capacities.items() if footprint_bytes <= capacity]
    if not roomy:
        return replace(plan, storage="global")
    return Plan(**{**asdict(plan), "storage": storage, "arch": roomy[0], "vtcm_bytes": None})
