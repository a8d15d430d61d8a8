"""What is asked of a search, and the memory that a plan is given."""

from dataclasses import dataclass, field, replace

from hexconv.errors import InputError
from hexconv.lower.vtcm import capacities_bytes
from hexconv.search.objective import Objective
from hexconv.spec import Chain, Plan, kernel_of


@dataclass(frozen=True)
class Question:
    """The best plan for a chain, under a limit.

    Attributes:
        vtcm_bytes: what the caches of a plan may take together.
        objective: what is to be least.
        plan: what is no knob of the search: kernel, arch.
    """

    vtcm_bytes: int
    objective: Objective = "traffic"
    plan: Plan = field(default_factory=Plan)

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
    for arch in (plan.arch, *capacities):
        if footprint_bytes <= capacities.get(arch, 0):
            return replace(plan, storage="vtcm", arch=arch)
    return replace(plan, storage="global")
