"""The rules of a kernel, which hold before anything is planned: where it runs, what it obeys, which convs it serves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hexconv.spec.chain import Chain
from hexconv.spec.choices import Kernel, Nest, Target

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
