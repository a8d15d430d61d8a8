"""Which kernel each conv of a chain gets: one rule for every command and for the Python API.

Without a kernel in its plan a conv gets the fastest that serves it on the target and obeys the plan:

    hexagon     hvx for integers, else plain
    llvm        plain

A kernel in a plan is a preference. What it can't serve gets the next best by the same rule. Convs of hvx and of plain
stand in one nest, that of hvx. The knobs that act on the preferred kernel alone are dropped where no conv gets it; the
reason of each choice then names them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from hexconv.spec.chain import Chain
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.kernels import KERNELS, Kernel, Nest, Target, fastest_first, what_hvx_wants
from hexconv.spec.knobs import acts, why_without_effect
from hexconv.spec.plan import Plan

SCALAR_MACS_PER_PACKET, OF_FLOAT16 = 0.6, 0.07
HVX_MACS_PER_PACKET = (40, 255)
"""What convs reach on the simulator (`reports/simulator.csv`, `reports/hvx.csv`)."""


@dataclass(frozen=True)
class KernelChoice:
    """The kernel of one conv, and why it was chosen.

    Attributes:
        asked: the kernel that the plan names; None where it names none.
        used: the kernel that the conv gets.
        why: `as asked`, or why the kernel asked for and the faster kernels can't serve the conv.
        cost: what it costs on Hexagon that scalar code computes a conv, and what would spare it if `why` doesn't say;
            empty where that was asked for, and where hvx does.
        scalar_packets: the packets that this scalar code takes, estimated; 0 where `cost` is empty.
    """

    asked: Kernel | None
    used: Kernel
    why: str
    cost: str = ""
    scalar_packets: float = 0

    @property
    def is_fallback(self) -> bool:
        """Whether another kernel was asked for."""
        return self.asked not in (None, self.used)


def choose_kernels(chain: Chain, plan: Plan | None, target: Target | None = None) -> tuple[KernelChoice, ...]:
    """Choose a kernel for every conv of a chain.

    Args:
        chain: what is computed.
        plan: as it is stated; None where none is.
        target: where the chain is to run. Without one, a kernel that the plan names is taken wherever it runs, and a
            plan that names none gets the choice for hexagon.

    >>> from hexconv.spec.chain import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> choose_kernels(chain, Plan(kernel="hvx"))[0].why
    'hvx serves uint8, int8 and int16 chains, this one is float32'
    >>> [choose_kernels(chain, None, target)[0].used for target in ("llvm", "hexagon")]
    ['plain', 'plain']
    """
    choices = tuple(_choice(chain, index, plan, target) for index in range(len(chain.conv)))
    dropped = without_effect(plan, _nest_kernel(choices)) if plan else ()
    if not dropped:
        return choices
    left_out = f"; without effect then: {', '.join(dropped)}"
    return tuple(replace(choice, why=choice.why + left_out) for choice in choices)


def weighed_choice(choice: KernelChoice, why: str) -> KernelChoice:
    """Return a choice that a search made by the figures of several kernels, which say why.

    >>> weighed_choice(KernelChoice("hvx", "hvx", "as asked"), "T 2 against 3 on HMX").why
    'T 2 against 3 on HMX'
    """
    return choice if choice.is_fallback else replace(choice, why=why + KERNELS[choice.used].caveat)


def without_effect(plan: Plan, kernel: Kernel) -> tuple[str, ...]:
    """Name the knobs that a plan states and that don't act in the nest of the kernel that its chain gets.

    >>> without_effect(Plan(kernel="hvx", k_split=2, rows=2, threads=4), "plain")
    ('rows', 'threads')
    """
    machine = ("threads",) if plan.kernel != kernel else ()  # of the machine that the wished kernel runs on
    return tuple(knob for knob in plan.stated if knob in machine or not acts(knob, kernel))


def _choice(chain: Chain, index: int, plan: Plan | None, target: Target | None) -> KernelChoice:
    """Choose the kernel of conv `index`."""
    asked = plan.kernel if plan else None
    passed_over: list[str] = []
    for kernel in _candidates(asked, target):
        why_not = _why_not(chain, index, plan, kernel, target)
        if not why_not:
            falls = kernel == "plain" != asked and target != "llvm"
            cost = _cost(chain, index) if falls else ("", 0)
            return KernelChoice(asked, kernel, _why(asked, kernel, passed_over, target), *cost)
        passed_over.append(why_not)
    raise AssertionError("the plain kernel serves all")


def _candidates(asked: Kernel | None, target: Target | None) -> Iterator[Kernel]:
    """Return the kernels to try, in order: the one that is asked for, then the others by speed."""
    if asked:
        yield asked
    for kernel in fastest_first(target or "hexagon"):
        if kernel != asked:
            yield kernel


def _why_not(chain: Chain, index: int, plan: Plan | None, kernel: Kernel, target: Target | None) -> str:
    """Say why a kernel can't serve conv `index` on the target under the plan; empty if it can."""
    home = KERNELS[kernel].home
    if target and home and home != target:
        return f"{kernel} runs on --target {home} alone, this is {target}"
    if why_not := refusals(chain, kernel)[index]:
        return why_not
    return _disobeys(plan, kernel) if plan and plan.kernel != kernel else ""


def _disobeys(plan: Plan, kernel: Kernel) -> str:
    """Say why a kernel that isn't asked for doesn't obey a plan; empty if it does."""
    meant = (knob for knob in plan.stated if not plan.kernel or acts(knob, "plain"))
    return next((why_without_effect(knob, kernel) for knob in meant if not acts(knob, kernel)), "")


def _why(asked: Kernel | None, kernel: Kernel, passed_over: list[str], target: Target | None) -> str:
    if kernel == asked:
        return f"as asked{KERNELS[kernel].caveat}"
    return "; ".join(passed_over) or f"the fastest that serves it on {target or 'hexagon'}"


def _cost(chain: Chain, index: int) -> tuple[str, float]:
    """Compare scalar code for conv `index` with HVX, say what would let HVX serve it, and estimate its packets."""
    macs = prod(chain.shapes[index + 1]) * chain.elements_per_output(index)
    rate = OF_FLOAT16 if chain.dtype == "float16" else SCALAR_MACS_PER_PACKET
    least, most = HVX_MACS_PER_PACKET
    cure = what_hvx_wants(chain, index)
    return f"{rate} MACs a packet, where hvx has {least} to {most}{cure and '; '}{cure}", macs / rate


def kernel_columns(kernels: Sequence[KernelChoice]) -> dict[str, str]:
    """Return the choices of a case as columns of a table: one word where all convs agree, else one for each conv.

    >>> choice = KernelChoice("hvx", "plain", "hvx serves integers")
    >>> kernel_columns((choice, choice))
    {'kernel_asked': 'hvx', 'kernel_used': 'plain', 'kernel_why': 'hvx serves integers'}
    >>> kernel_columns((choice, KernelChoice("hvx", "hvx", "as asked")))["kernel_used"]
    'conv1 plain, conv2 hvx'
    """
    columns = {"kernel_asked": [k.asked or "none" for k in kernels], "kernel_used": [k.used for k in kernels]}
    return {name: _together(values) for name, values in {**columns, "kernel_why": [k.why for k in kernels]}.items()}


def kernel_words(kernels: Sequence[KernelChoice], costs: bool = False) -> str:
    """Write the choices of a case in a line; with `costs`, also what convs cost that fall to scalar code.

    >>> refused = KernelChoice("hvx", "plain", "its shift", "0.6 MACs each", 9)
    >>> kernel_words((refused,))
    'plain, hvx asked: its shift'
    >>> served = KernelChoice("hvx", "hvx", "as asked")
    >>> kernel_words((served,))
    'hvx, as asked'
    >>> kernel_words((served, refused, refused), costs=True)
    'conv1 hvx, as asked; conv2 and conv3 plain, hvx asked: its shift (scalar code: about 18 packets, 0.6 MACs each)'
    """
    alike: dict[KernelChoice, list[int]] = {}
    for number, choice in enumerate(kernels, 1):
        alike.setdefault(replace(choice, scalar_packets=0), []).append(number)
    said: list[str] = []
    for choice, numbers in alike.items():
        together = sum(kernels[number - 1].scalar_packets for number in numbers)
        convs = f"{' and '.join(f'conv{number}' for number in numbers)} " if len(alike) > 1 else ""
        said.append(convs + _choice_words(replace(choice, scalar_packets=together), costs))
    return "; ".join(said)


def _choice_words(choice: KernelChoice, costs: bool) -> str:
    asked = "" if choice.asked == choice.used else f" {choice.asked or 'none'} asked:"
    cost = f" (scalar code: about {choice.scalar_packets:.2g} packets, {choice.cost})" if choice.cost and costs else ""
    return f"{choice.used},{asked} {choice.why}{cost}"


def _together(values: Sequence[str]) -> str:
    """Return one word if all are alike, else one for each conv."""
    if len(set(values)) == 1:
        return values[0]
    return ", ".join(f"conv{number} {value}" for number, value in enumerate(values, 1))


def kernel_of(chain: Chain, plan: Plan | None, target: Target | None = None) -> Kernel:
    """Return the kernel in whose nest a chain is computed: hvx if any conv gets it. `target`: as in `choose_kernels`.

    >>> from hexconv.spec.chain import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> kernel_of(chain, Plan(kernel="hvx")), kernel_of(chain, Plan(kernel="plain"))
    ('plain', 'plain')
    """
    return _nest_kernel(choose_kernels(chain, plan, target))


def _nest_kernel(choices: Sequence[KernelChoice]) -> Kernel:
    return next((choice for choice in choices if choice.used != "plain"), choices[0]).used


def nest_of(chain: Chain, plan: Plan | None) -> Nest:
    """Return the name of the nest that a chain is computed in: the nest of the kernel that `kernel_of` returns.

    >>> from hexconv.spec.chain import Conv2d
    >>> nest_of(Chain(input=(1, 8, 8, 4), dtype="uint8", conv=(Conv2d(out_channels=2),)), Plan())
    'rows'
    """
    return KERNELS[kernel_of(chain, plan)].nest


def settled(chain: Chain, plan: Plan | None, target: Target | None = None) -> Plan:
    """Settle a plan: name the kernel in whose nest the chain is computed, and keep the knobs that act on that kernel.

    Args:
        chain: what is computed.
        plan: as it is stated; None where none is.
        target: as in `choose_kernels`.
    """
    kernel = kernel_of(chain, plan, target)
    if plan is None:
        return unstated(chain, kernel)
    dropped = without_effect(plan, kernel)
    kept = {knob: value for knob, value in plan.stated.items() if knob not in dropped}
    return Plan(kernel=kernel, **kept)  # pyright: ignore[reportArgumentType]


def unstated(chain: Chain, kernel: Kernel) -> Plan:
    """Return the plan that a kernel gets where no knob is stated.

    >>> from hexconv.spec.chain import Conv2d
    >>> unstated(Chain(input=(1, 8, 8, 4), dtype="uint8", conv=(Conv2d(out_channels=70),)), "hvx").slug
    'ks3-hs1-h_outer-roll-resident-double-hvx'
    """
    return Plan(kernel=kernel, **KERNELS[kernel].unstated(chain))  # pyright: ignore[reportArgumentType]


@lru_cache(REMEMBERED)
def refusals(chain: Chain, kernel: Kernel) -> tuple[str, ...]:
    """Say for each conv of a chain why a kernel can't serve it on any target; empty where it can. Plain serves all.

    >>> from hexconv.spec.chain import Conv2d
    >>> from hexconv.spec.requantize import Requantize
    >>> convs = [Conv2d(out_channels=8, requantize=Requantize(multiplier=1 << 30, shift=shift)) for shift in (-9, 2)]
    >>> refusals(Chain(input=(1, 8, 8, 4), dtype="uint8", conv=tuple(convs)), "hvx")
    ('', 'hvx serves requantisation with a shift of 0 or less; that of chain.conv[1] is 2')
    """
    return KERNELS[kernel].refusals(chain)
