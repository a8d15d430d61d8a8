"""What is asked of a search, and the memory that a plan is given."""

from dataclasses import asdict, dataclass, field, replace

from hexconv.errors import InputError
from hexconv.lower.vtcm import capacities_bytes
from hexconv.search.objective import Objective
from hexconv.spec import Chain, KernelChoice, Plan, Target, choose_kernels, kernel_of, settled


@dataclass(frozen=True)
class Question:
    """The best plan for a chain, under a limit.

    Attributes:
        vtcm_bytes: what the caches of a plan may take together.
        objective: what is to be least.
        plan: what is no knob of the search: kernel, arch.
        target: where the plan is to run, which says what kernel it gets (`hexconv.spec.kernel`).
        threads: hardware threads of the machine that it is to run on.
    """

    vtcm_bytes: int
    objective: Objective = "traffic"
    plan: Plan = field(default_factory=Plan)
    target: Target | None = None

    threads: int = 1

    def kernels(self, chain: Chain) -> tuple[KernelChoice, ...]:
        """What every conv of a chain gets."""
        return choose_kernels(chain, self._anywhere, self.target)

    def settled(self, chain: Chain) -> "Question":
        """The question about one chain: its plan names the kernel that this chain gets."""
        plan = settled(chain, self._anywhere, self.target, self.threads)
        return replace(self, plan=plan if plan.kernel == "host" else replace(plan, storage=self.plan.storage))

    @property
    def _anywhere(self) -> Plan | None:
        """The plan without a place for its caches, which a search decides; None where it then states nothing."""
        plan = replace(self.plan, storage="global")
        return None if plan == Plan() else plan

    def check(self, chain: Chain) -> None:
        """Refuse an objective that the kernel has no figures for.

        Raises:
            InputError: the latency of the host kernel: the model counts packets of Hexagon.
        """
        if self.objective == "latency" and kernel_of(chain, self.plan) == "host":
            raise InputError("--objective", "latency of the host kernel, which has no model", "traffic | footprint")


def placed(plan: Plan, footprint_bytes: int) -> Plan:
    """A plan with its caches in VTCM: of its own architecture, else of the first that has room.

    Where none has as much, the caches are left in ordinary memory, and so are those of the host kernel.

    >>> placed(Plan(), 1 << 20).slug, placed(Plan(arch="v66"), 1 << 20).arch, placed(Plan(), 1 << 30).storage
    ('ks1-hs1-vtcm-v68', 'v68', 'global')
    """
    if plan.kernel == "host":
        return plan
    capacities = capacities_bytes()
    if footprint_bytes <= (plan.vtcm_bytes or capacities.get(plan.arch, 0)):
        return replace(plan, storage="vtcm")
    roomy = [arch for arch, capacity in capacities.items() if footprint_bytes <= capacity]
    if not roomy:
        return replace(plan, storage="global")
    return Plan(**{**asdict(plan), "storage": "vtcm", "arch": roomy[0], "vtcm_bytes": None})
