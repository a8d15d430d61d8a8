"""The kernels: one object each. A kernel is added to the registry here."""

from hexconv.spec.choices import Kernel, Nest, Target
from hexconv.spec.kernels.host import HOST, MOST_THREADS
from hexconv.spec.kernels.hvx import HVX
from hexconv.spec.kernels.plain import PLAIN
from hexconv.spec.kernels.rules import KernelRules

KERNELS: dict[Kernel, KernelRules] = {rules.name: rules for rules in (PLAIN, HVX, HOST)}


def fastest_first(target: Target) -> tuple[Kernel, ...]:
    """The kernels that run there: those at home, then those that run everywhere.

    >>> fastest_first("hexagon"), fastest_first("llvm")
    (('hvx', 'plain'), ('host', 'plain'))
    """
    return tuple(kernel for home in (target, None) for kernel, rules in KERNELS.items() if rules.home == home)


__all__ = ["KERNELS", "MOST_THREADS", "Kernel", "KernelRules", "Nest", "Target", "fastest_first"]
