"""HVX instructions, for integers."""

from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.extents import tensor_extents
from hexconv.spec.kernels.rules import IN_A_NEST, KernelRules, Knobs
from hexconv.spec.room import sums_refusals

CONTEXTS = {"v68": 4, "v69": 4, "v71": 4, "v73": 4, "v75": 4, "v79": 6, "v81": 8}
"""How many threads of an architecture can run vector code at the same time; nothing public says it of the others."""


def most_threads(arch: str) -> int:
    """How many threads may run vector code on an architecture.

    >>> most_threads("v81"), most_threads("v65")
    (8, 1)
    """
    return CONTEXTS.get(arch, 1)


def why_fewer_threads(arch: str) -> str:
    """Why an architecture has no more threads.

    >>> why_fewer_threads("v79")
    'v79 has 6 HVX contexts'
    """
    if arch in CONTEXTS:
        return f"{arch} has {CONTEXTS[arch]} HVX contexts"
    return f"nothing public says how many HVX contexts {arch} has; it is known of {', '.join(CONTEXTS)}"


def _refusals(chain: Chain) -> tuple[str, ...]:
    if not chain.is_integer:
        return (f"hvx serves uint8, int8 and int16 chains, this one is {chain.dtype}",) * len(chain.conv)
    shifts = (_shift_refusal(conv, index) for index, conv in enumerate(chain.conv))
    return tuple(shift or sums for shift, sums in zip(shifts, sums_refusals(chain, "hvx"), strict=True))


def _shift_refusal(conv: Conv2d, index: int) -> str:
    """Sums would have to saturate while they are shifted left, which HVX has no instruction for."""
    if not (conv.requantize and conv.requantize.shifts_left):
        return ""
    shift = conv.requantize.shift
    return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"


def _unstated(chain: Chain, _threads: int) -> Knobs:
    """Every row made once, all channels of a stripe in one step, filters staged once, copies under way meanwhile."""
    most = max(tensor.channel_blocks for tensor in tensor_extents(chain)[1:])
    return {"k_split": most, "order": "h_outer", "halo": "roll", "filters": "resident", "buffering": "double"}


HVX = KernelRules(
    name="hvx",
    home="hexagon",
    nest="rows",
    knobs=(*IN_A_NEST, "rows", "activations", "threads"),
    instead="its vectors have one width",
    refusals=_refusals,
    unstated=_unstated,
)
