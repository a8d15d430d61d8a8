"""The rules of the plain kernel: TVM's loops, as in the documents; beside HVX kernels, scalar code in their nest."""

from hexconv.spec.chain import Chain
from hexconv.spec.kernels.rules import IN_A_NEST, KernelRules


def _none(chain: Chain) -> tuple[str, ...]:
    """Refuse no conv: the plain kernel serves all."""
    return ("",) * len(chain.conv)


PLAIN = KernelRules(
    name="plain",
    home=None,
    nest="blocks",
    knobs=IN_A_NEST,
    instead="its tensors lie in blocks of 8 rows, it has one thread and no vectors",
    refusals=_none,
    unstated=lambda _chain, _threads: {},  # The documents' baseline schedule is the default plan.
    most_plans=1 << 24,
)
