"""What is to be known of a kernel before anything is planned: where it runs, what it obeys, which convs it serves."""

from collections.abc import Callable
from dataclasses import dataclass

from hexconv.spec.chain import Chain
from hexconv.spec.choices import Kernel, Nest, Target

Knobs = dict[str, int | str]


@dataclass(frozen=True)
class KernelRules:
    """One kernel.

    Attributes:
        name: in plans.
        home: where it runs; None where it runs everywhere, as what the others leave does.
        nest: the loops that it stands in, with the layouts, caches and closed forms of these.
        knobs: of a plan that act on it.
        instead: what it does instead of obeying the others, in words.
        refusals: why it doesn't serve each conv of a chain, wherever it runs; empty where it does.
        unstated: the knobs that it has where a plan states none, by the hardware threads of the machine.
        most_plans: that a search looks at, a minute's worth at most. Networks have fewer than 10^5.
        obeys_plans: whether it is chosen for plans that don't ask for it.
    """

    name: Kernel
    home: Target | None
    nest: Nest
    knobs: tuple[str, ...]
    instead: str
    refusals: Callable[[Chain], tuple[str, ...]]
    unstated: Callable[[Chain, int], Knobs]
    most_plans: int = 1 << 17
    obeys_plans: bool = True


IN_A_NEST = ("k_split", "h_split", "order", "halo", "filters", "buffering", "storage", "arch", "vtcm_bytes")
"""The knobs of the planned nest, which act on all kernels in it."""
