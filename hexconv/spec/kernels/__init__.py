"""The registry of kernels, with one object for each. A new kernel is added here."""

from hexconv.spec.choices import Kernel, Nest, Target
from hexconv.spec.kernels.hvx import HVX
from hexconv.spec.kernels.plain import PLAIN
from hexconv.spec.kernels.rules import KernelRules

KERNELS: dict[Kernel, KernelRules] = {rules.name: rules for rules in (PLAIN, HVX)}


def fastest_first(target: Target) -> tuple[Kernel, ...]:
    """Return the kernels that run on a target: first those made for it, then those that run everywhere.

    >>> fastest_first("hexagon"), fastest_first("llvm")
    (('hvx', 'plain'), ('plain',))
    """
    return tuple(kernel for home in (target, None) for kernel, rules in KERNELS.items() if rules.home == home)


__all__ = ["KERNELS", "Kernel", "KernelRules", "Nest", "Target", "fastest_first"]
