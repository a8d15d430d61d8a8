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
    unobeyed={
        "w_split": "its tensors lie in blocks of 8 by 8 pixels, and a stripe has all blocks of its rows",
        "activations": "it multiplies one element at a time, and has no vector to spread a word over",
        "threads": "it is the documents' loop nest, which runs in one thread",
    },
    refusals=_none,
    unstated=lambda _chain: {},  # The documents' baseline schedule is the default plan.
    most_plans=1 << 24,
)
