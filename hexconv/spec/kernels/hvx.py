"""The rules of the HVX kernel: HVX instructions for integer chains."""

from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.extents import tensor_extents
from hexconv.spec.kernels.rules import IN_A_NEST, KernelRules, Knobs
from hexconv.spec.room import sums_refusals

CONTEXTS = {"v68": 4, "v69": 4, "v71": 4, "v73": 4, "v75": 4, "v79": 6, "v81": 8}
"""How many threads can run vector code at the same time, by architecture. For others nothing public says it."""


def most_threads(arch: str) -> int:
    """Return how many threads may run vector code on an architecture.

    >>> most_threads("v81"), most_threads("v65")
    (8, 1)
    """
    return CONTEXTS.get(arch, 1)


def why_fewer_threads(arch: str) -> str:
    """Say why an architecture can't run more threads.

    >>> why_fewer_threads("v79")
    'v79 has 6 HVX contexts'
    """
    if arch in CONTEXTS:
        return f"{arch} has {CONTEXTS[arch]} HVX contexts"
    return f"nothing public says how many HVX contexts {arch} has; it is known of {', '.join(CONTEXTS)}"


def _refusals(chain: Chain) -> tuple[str, ...]:
    if not chain.is_integer:
        return (f"hvx serves uint8, int8 and int16 chains, this one is {chain.dtype}",) * len(chain.conv)
    sums = sums_refusals(chain, "hvx")
    return tuple(
        _shift_refusal(conv, index) or _filter_refusal(chain, index) or sums[index]
        for index, conv in enumerate(chain.conv)
    )


def _shift_refusal(conv: Conv2d, index: int) -> str:
    """Refuse a shift to the left: sums would have to saturate meanwhile, and HVX has no instruction for that."""
    if not (conv.requantize and conv.requantize.shifts_left):
        return ""
    shift = conv.requantize.shift
    return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"


def _filter_refusal(chain: Chain, index: int) -> str:
    """Refuse int16 filters where sums saturate: their sums grow by a byte twice, and would have to be held twice."""
    if not chain.saturates(index) or chain.dtype_of_filters != "int16":
        return ""
    return f"hvx saturates sums of int16 by int8 alone; the filter of chain.conv[{index}] is int16"


def what_hvx_wants(chain: Chain, index: int) -> str:
    """Say what would let hvx serve conv `index`; empty where it does, and where the refusal of its sums says it.

    >>> what_hvx_wants(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), 0)
    'hvx serves it quantised to 8 or 16 bits'
    """
    how = chain.conv[index].requantize
    if not chain.is_integer:
        return "hvx serves it quantised to 8 or 16 bits"
    if how and isinstance(how.shift, int) and how.shifts_left:
        return f"hvx serves it with an output scale {2**how.shift} times as large, which has a shift of 0"
    return 'hvx serves it with filter_dtype = "int8"' if _filter_refusal(chain, index) else ""


def _unstated(chain: Chain) -> Knobs:
    """Return the default plan: no row recomputed, all channels in one step, filters resident, DMA overlapped."""
    most = max(tensor.channel_blocks for tensor in tensor_extents(chain)[1:])
    return {"k_split": most, "order": "h_outer", "halo": "roll", "filters": "resident", "buffering": "double"}


HVX = KernelRules(
    name="hvx",
    home="hexagon",
    nest="rows",
    knobs=(*IN_A_NEST, "rows", "w_split", "column_halo", "activations", "threads"),
    refusals=_refusals,
    unstated=_unstated,
)
