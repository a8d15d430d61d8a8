"""TVM's loops, as the documents have them; in a nest of HVX kernels, scalar code."""

from hexconv.spec.chain import Chain
from hexconv.spec.kernels.rules import IN_A_NEST, KernelRules


def _none(chain: Chain) -> tuple[str, ...]:
    """It serves all."""
    return ("",) * len(chain.conv)


PLAIN = KernelRules(
    name="plain",
    home=None,
    nest="blocks",
    knobs=IN_A_NEST,
    instead="its tensors lie in blocks of 8 rows, it has one thread and no vectors",
    refusals=_none,
    unstated=lambda _chain, _threads: {},  # the documents' baseline
    most_plans=1 << 24,
)
