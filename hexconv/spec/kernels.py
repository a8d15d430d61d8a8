"""The kernels and their rules: where each runs, which knobs it obeys, which convs it serves; new ones go here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hexconv.spec.chain import Chain, Conv2d
from hexconv.spec.choices import Kernel, Nest, Target
from hexconv.spec.extents import tensor_extents
from hexconv.spec.ranges import sums_refusals

Knobs = dict[str, int | str]


@dataclass(frozen=True)
class KernelRules:
    """The rules of one kernel.

    Attributes:
        name: its name in plans.
        home: the target that it runs on; None where it runs on every target.
        nest: the loops that it stands in; layouts, caches and closed forms belong to the nest.
        knobs: the knobs of a plan that act on it.
        unobeyed: for other knobs, the fact of the hardware or of the kernel that leaves them without effect. It leaves
            out what a knob says of all kernels that don't obey it (`hexconv.spec.knobs.Knob.elsewhere`).
        refusals: why it can't serve each conv of a chain on any target; empty where it can.
        unstated: the knobs that it has where a plan states none.
        most_plans: the most plans that a search looks at, a minute's worth. Networks have fewer than 10^5.
    """

    name: Kernel
    home: Target | None
    nest: Nest
    knobs: tuple[str, ...]
    refusals: Callable[[Chain], tuple[str, ...]]
    unstated: Callable[[Chain], Knobs]
    unobeyed: Mapping[str, str] = field(default_factory=dict)
    most_plans: int = 1 << 17


IN_A_NEST = ("k_split", "h_split", "order", "halo", "filters", "buffering", "storage", "arch", "vtcm_bytes")
"""The knobs of the planned nest, which act on all kernels in it."""


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


KERNELS: dict[Kernel, KernelRules] = {rules.name: rules for rules in (PLAIN, HVX)}


def fastest_first(target: Target) -> tuple[Kernel, ...]:
    """Return the kernels that run on a target: first those made for it, then those that run everywhere.

    >>> fastest_first("hexagon"), fastest_first("llvm")
    (('hvx', 'plain'), ('plain',))
    """
    return tuple(kernel for home in (target, None) for kernel, rules in KERNELS.items() if rules.home == home)


__all__ = ["KERNELS", "Kernel", "KernelRules", "Nest", "Target", "fastest_first"]
