"""Which kernel each conv of a chain gets: one rule for every command and for the Python API.

Without a kernel in its plan a conv gets the fastest that serves it on the target and obeys the plan:

    hexagon     hvx for integers, else plain
    llvm        host for float32 where no plan is stated (with all processors of the machine), else plain

A kernel in a plan is a wish. What it can't serve gets the next best by the same rule, and the knobs that act on the
wished kernel alone are then dropped. Today a kernel serves a whole chain or none of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hexconv.spec.chain import Chain
from hexconv.spec.knobs import Kernel, acts, why_without_effect
from hexconv.spec.plan import MOST_THREADS, Plan
from hexconv.spec.room import sums_refusal

Target = Literal["llvm", "hexagon"]

FASTEST_FIRST: dict[Target, tuple[Kernel, ...]] = {"llvm": ("host", "plain"), "hexagon": ("hvx", "plain")}
NEST_KNOBS = ("k_split", "order", "halo", "filters", "buffering")
"""That hvx obeys where it fills the planned nest."""
HOMES: dict[Kernel, Target] = {"hvx": "hexagon", "host": "llvm"}
"""Where a kernel runs that doesn't run everywhere."""


@dataclass(frozen=True)
class KernelChoice:
    """What one conv gets.

    Attributes:
        asked: the kernel that its plan names; None where it names none.
        used: the kernel that it gets.
        why: `as asked`, or what kept the faster kernels and the one that was asked for from serving it.
    """

    asked: Kernel | None
    used: Kernel
    why: str

    @property
    def is_fallback(self) -> bool:
        """Whether another kernel was asked for."""
        return self.asked not in (None, self.used)


def choose_kernels(chain: Chain, plan: Plan | None, target: Target | None = None) -> tuple[KernelChoice, ...]:
    """The choice for every conv of a chain.

    Args:
        chain: what is computed.
        plan: as it is stated; None where none is.
        target: where it is to run. Where that isn't said, the kernel that a plan names is taken wherever it runs, and a
            plan that names none gets what it gets on hexagon.

    >>> from hexconv.spec.conv import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> choose_kernels(chain, Plan(kernel="hvx"))[0].why
    'hvx serves uint8, int8 and int16 chains, this one is float32'
    >>> [choose_kernels(chain, None, target)[0].used for target in ("llvm", "hexagon")]
    ['host', 'plain']
    >>> choose_kernels(chain, Plan(), "llvm")[0].why
    'host serves cases that state no plan, unless they ask for it'
    """
    asked = plan.kernel if plan else None
    passed_over: list[str] = []
    for kernel in _candidates(asked, target):
        why_not = _why_not(chain, plan, kernel, target)
        if not why_not:
            why = _why(asked, kernel, passed_over, target)
            return (KernelChoice(asked, kernel, why),) * len(chain.conv)
        passed_over.append(why_not)
    raise AssertionError("the plain kernel serves all")


def _candidates(asked: Kernel | None, target: Target | None) -> Iterator[Kernel]:
    """Kernels, the best first: the one that is asked for, then by speed."""
    if asked:
        yield asked
    for kernel in FASTEST_FIRST[target or "hexagon"]:
        if kernel != asked:
            yield kernel


def _why_not(chain: Chain, plan: Plan | None, kernel: Kernel, target: Target | None) -> str:
    """Why a kernel can't serve a chain there, under the plan; empty if it can."""
    if target and (home := HOMES.get(kernel, target)) != target:
        return f"{kernel} runs on --target {home} alone, this is {target}"
    if why_not := refusal(chain, kernel) or _outside_of_the_nest(chain, plan, kernel):
        return why_not
    return _disobeys(plan, kernel) if plan and plan.kernel != kernel else ""


def _outside_of_the_nest(chain: Chain, plan: Plan | None, kernel: Kernel) -> str:
    """Why hvx can't obey a plan for a chain of 16 bits: these have kernels of whole chains, and no planned nest."""
    if kernel != "hvx" or chain.dtype != "int16" or plan is None:
        return ""
    stated = [knob for knob in plan.stated if knob in NEST_KNOBS]
    return f"hvx obeys {stated[0]} for chains of uint8 and int8, this one is int16" if stated else ""


def _disobeys(plan: Plan, kernel: Kernel) -> str:
    """Why a kernel that isn't asked for doesn't obey a plan; empty if it does."""
    if kernel == "host":
        return "host serves cases that state no plan, unless they ask for it"
    meant = (knob for knob in plan.stated if not plan.kernel or acts(knob, "plain"))
    return next((why_without_effect(knob, kernel) for knob in meant if not acts(knob, kernel)), "")


def _why(asked: Kernel | None, kernel: Kernel, passed_over: list[str], target: Target | None) -> str:
    if kernel == asked:
        return "as asked"
    return "; ".join(passed_over) or f"the fastest that serves it on {target or 'hexagon'}"


def kernel_columns(kernels: Sequence[KernelChoice]) -> dict[str, str]:
    """The choices of a case as columns of a table: a word where all convs have the same, else one word each.

    >>> choice = KernelChoice("hvx", "plain", "hvx serves integers")
    >>> kernel_columns((choice, choice))
    {'kernel_asked': 'hvx', 'kernel_used': 'plain', 'kernel_why': 'hvx serves integers'}
    >>> kernel_columns((choice, KernelChoice("hvx", "hvx", "as asked")))["kernel_used"]
    'conv1 plain, conv2 hvx'
    """
    columns = {"kernel_asked": [k.asked or "none" for k in kernels], "kernel_used": [k.used for k in kernels]}
    return {name: _together(values) for name, values in {**columns, "kernel_why": [k.why for k in kernels]}.items()}


def kernel_words(kernels: Sequence[KernelChoice]) -> str:
    """The choices of a case in a line.

    >>> kernel_words((KernelChoice("hvx", "plain", "hvx serves integers"),))
    'plain, hvx asked: hvx serves integers'
    >>> kernel_words((KernelChoice("hvx", "hvx", "as asked"),))
    'hvx, as asked'
    """
    told = kernel_columns(kernels)
    if told["kernel_asked"] == told["kernel_used"]:
        return f"{told['kernel_used']}, {told['kernel_why']}"
    return f"{told['kernel_used']}, {told['kernel_asked']} asked: {told['kernel_why']}"


def _together(values: Sequence[str]) -> str:
    """One word if all are alike, else one for each conv."""
    if len(set(values)) == 1:
        return values[0]
    return ", ".join(f"conv{number} {value}" for number, value in enumerate(values, 1))


def kernel_of(chain: Chain, plan: Plan | None, target: Target | None = None) -> Kernel:
    """The kernel that computes a chain; `target` is as in `choose_kernels`.

    >>> from hexconv.spec.conv import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> kernel_of(chain, Plan(kernel="hvx")), kernel_of(chain, Plan(kernel="host"))
    ('plain', 'host')
    """
    return choose_kernels(chain, plan, target)[0].used


def settled(chain: Chain, plan: Plan | None, target: Target | None = None, threads: int = 1) -> Plan:
    """The plan with the kernel that computes the chain, and the knobs that act on it.

    Args:
        chain: what is computed.
        plan: as it is stated; None where none is.
        target: as in `choose_kernels`.
        threads: hardware threads of the machine, which a host kernel has to itself where no plan was stated.
    """
    kernel = kernel_of(chain, plan, target)
    if plan is None:
        return Plan(kernel=kernel, threads=min(threads, MOST_THREADS) if kernel == "host" else 1)
    kept = {knob: value for knob, value in plan.stated.items() if acts(knob, kernel)}
    return Plan(kernel=kernel, **kept)  # pyright: ignore[reportArgumentType]


def refusal(chain: Chain, kernel: Kernel) -> str:
    """Why a kernel doesn't serve a chain, wherever it runs; empty if it does. The plain kernel serves all."""
    grouped = [index for index, conv in enumerate(chain.conv) if conv.groups != 1]
    if kernel != "plain" and grouped:
        return f"{kernel} serves convs of one group; chain.conv[{grouped[0]}] has {chain.conv[grouped[0]].groups}"
    return {"plain": "", "hvx": _hvx_refusal(chain), "host": _host_refusal(chain)}[kernel]


def _hvx_refusal(chain: Chain) -> str:
    if not chain.is_integer:
        return f"hvx serves uint8, int8 and int16 chains, this one is {chain.dtype}"
    for index, conv in enumerate(chain.conv):
        if conv.requantize and conv.requantize.shift > 0:
            # sums would have to saturate while they are shifted left, which HVX has no instruction for
            shift = conv.requantize.shift
            return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"
    return sums_refusal(chain, "hvx")


def _host_refusal(chain: Chain) -> str:
    return "" if chain.dtype == "float32" else f"host serves float32 chains, this one is {chain.dtype}"
