"""The kernels and their rules: where each runs, which knobs it obeys, which convs it serves; new ones go here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hexconv.spec.chain import Chain, Conv2d
from hexconv.spec.choices import Kernel, Nest, Target
from hexconv.spec.extents import tensor_extents
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.phases import in_phases, stride_phases
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
        is_offered: whether a conv may get it where no plan names it.
        caveat: what every command says of it beside why a conv got it.
    """

    name: Kernel
    home: Target | None
    nest: Nest
    knobs: tuple[str, ...]
    refusals: Callable[[Chain], tuple[str, ...]]
    unstated: Callable[[Chain], Knobs]
    unobeyed: Mapping[str, str] = field(default_factory=dict[str, str])
    most_plans: int = 1 << 17
    is_offered: bool = True
    caveat: str = ""


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
    fast = [bool(conv.requantize and conv.requantize.engine == "fast") for conv in chain.conv]
    why = 'hvx requantises exactly; chain.conv[{}] asks for the convert of the matrix engine, engine = "fast"'
    narrowed = enumerate(zip(fast, _exact_refusals(chain), strict=True))
    return tuple(why.format(index) if is_fast else refusal for index, (is_fast, refusal) in narrowed)


def _exact_refusals(chain: Chain) -> tuple[str, ...]:
    """Say why HVX can't narrow the sums of each conv; of those that the matrix engine converts, why they overflow."""
    if not chain.is_integer:
        return (f"hvx serves uint8, int8 and int16 chains, this one is {chain.dtype}",) * len(chain.conv)
    sums = sums_refusals(chain, "hvx")
    own = tuple(
        _shift_refusal(conv, index) or _filter_refusal(chain, index) or sums[index]
        for index, conv in enumerate(chain.conv)
    )
    added = next((refusal for refusal, conv in zip(own, chain.conv, strict=True) if refusal and conv.add), "")
    if added:
        return (f"hvx adds tensors to what hvx computes alone: {added}",) * len(own)
    pool = next((index for index, conv in enumerate(chain.conv) if conv.pool), None)
    if pool is not None:
        return (f"hvx serves chains without pools; chain.conv[{pool}] is one",) * len(own)
    return own


def _shift_refusal(conv: Conv2d, index: int) -> str:
    """Refuse a shift to the left: sums would have to saturate meanwhile, and HVX has no instruction for that."""
    if not (conv.requantize and conv.requantize.shifts_left) or conv.requantize.engine == "fast":
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


MOST_ENGINE_TAPS = 8
"""Rows and columns of the largest filter that the matrix engine takes in one packet: a crouton has 8 of each."""
MOST_ENGINE_PHASES = 8
"""The most phase images of a tensor that the matrix engine reads, along an axis."""
LARGEST_BYTE, LARGEST_WEIGHT = 255, 128
"""The largest magnitudes of an activation and of a weight that the matrix engine multiplies."""


def signed_zero_point(chain: Chain, index: int) -> int:
    """Return the zero point of the filter of conv `index` as signed bytes have it.

    >>> chain = Chain(input=(1, 8, 8, 1), dtype="uint8", conv=(Conv2d(out_channels=1, filter_zero_point=130),))
    >>> signed_zero_point(chain, 0)
    2
    """
    return chain.conv[index].filter_zero_point - (MADE_UNSIGNED if chain.dtype_of_filters == "uint8" else 0)


def _engine_refusals(chain: Chain) -> tuple[str, ...]:
    """Refuse all convs where the matrix engine can't compute one: it has no nest of its own with other kernels."""
    convs = range(len(chain.conv))
    own = [_engine_refusal(chain, index) or hvx for index, hvx in zip(convs, _exact_refusals(chain), strict=True)]
    first = next(filter(None, own), "")
    return tuple(each or (first and f"hmx serves whole chains: {first}") for each in own)


def _engine_refusal(chain: Chain, index: int) -> str:
    """Say why the matrix engine can't compute conv `index`."""
    conv, (_, inputs, rows, columns), name = chain.conv[index], chain.filter_shapes[index], f"chain.conv[{index}]"
    images = stride_phases(chain)
    reached = [
        (own - stride + reach - 1) // own + 1
        for own, stride, reach in zip(images[index], conv.stride, conv.reach, strict=True)
    ]
    if chain.dtype not in ("uint8", "int8"):
        return f"hmx serves uint8 and int8 chains, this one is {chain.dtype}"
    largest = LARGEST_BYTE * (LARGEST_WEIGHT + abs(signed_zero_point(chain, index)))
    source, result = tensor_extents(in_phases(chain, "hmx"))[index : index + 2]
    read = [
        (count - 1) * stride + reach
        for count, stride, reach in zip((result.rows, result.columns), conv.stride, conv.reach, strict=True)
    ]
    has_elements = all(
        padding < end and any(end > first for first, end in places)
        for padding, end, places in zip(
            (source.top, source.left), read, (source.rows_of_images, source.columns_of_images), strict=True
        )
    )
    wrong = {
        f"strides whose product is {MOST_ENGINE_PHASES} at most; from {name} on it is {max(images[index])}": (
            max(images[index]) > MOST_ENGINE_PHASES
        ),
        f"kernels that reach 8 by 8 pixels at most; that of {name} reaches {reached[0]} by {reached[1]}": (
            max(reached) > MOST_ENGINE_TAPS
        ),
        f"convs that read an element; {name} reads padding alone": not has_elements,
        f"convs alone; {name} is a pool": conv.pool is not None,
        f"convs that are requantised; {name} is not": conv.requantize is None,
        f"convs that add no tensor; {name} adds {conv.add and conv.add.from_}": conv.add is not None,
        f"sums that wrap; those of {name} saturate": chain.saturates(index),
        f"sums of 32 bits; {inputs * rows * columns} products of {name} may take more": (
            inputs * rows * columns * largest >= 1 << 31
        ),
    }
    return next((f"hmx serves {what}" for what, is_wrong in wrong.items() if is_wrong), "")


def _engine_unstated(chain: Chain) -> Knobs:
    """Return the default plan: that of hvx with all caches in VTCM, which is all that the engine reads and writes."""
    return {**_unstated(chain), "storage": "vtcm"}


HMX = KernelRules(
    name="hmx",
    home="hexagon",
    nest="blocks",
    knobs=(*IN_A_NEST, "padding_rows", "threads"),
    unobeyed={
        "w_split": "its tensors lie in blocks of 8 by 8 pixels, and a stripe has all blocks of its rows",
        "activations": "the engine reads whole blocks of activations",
    },
    refusals=_engine_refusals,
    unstated=_engine_unstated,
    is_offered=False,
    caveat=", by a model of the engine: nothing of it ran on hardware",
)


KERNELS: dict[Kernel, KernelRules] = {rules.name: rules for rules in (PLAIN, HVX, HMX)}


def fastest_first(target: Target) -> tuple[Kernel, ...]:
    """Return the kernels that run on a target: first those made for it, then those that run everywhere.

    >>> fastest_first("hexagon"), fastest_first("llvm")
    (('hvx', 'plain'), ('plain',))
    """
    offered = [rules for rules in KERNELS.values() if rules.is_offered]
    return tuple(rules.name for home in (target, None) for rules in offered if rules.home == home)


__all__ = ["KERNELS", "Kernel", "KernelRules", "Nest", "Target", "fastest_first"]
