"""Which knobs of a plan act on which kernel: the one table that says so.

A knob that doesn't act on a kernel is refused where that kernel is asked for (`Plan`), keeps a kernel from being chosen
where none is asked for (`hexconv.spec.kernel`), and is dropped where another kernel takes over.
"""

from typing import Literal, get_args

Kernel = Literal["plain", "hvx", "host"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

_ACTING: dict[Kernel, tuple[str, ...]] = {
    "plain": ("k_split", "h_split", "order", "halo", "filters", "buffering", "storage", "arch", "vtcm_bytes"),
    "hvx": ("k_split", "h_split", "order", "halo", "filters", "buffering", "storage", "arch", "vtcm_bytes"),
    "host": ("h_split", "threads", "simd"),
}

_INSTEAD: dict[Kernel, str] = {
    "plain": "it has one thread and no vectors",
    "hvx": "it has one thread, and vectors of one width",
    "host": "it rolls stripes, stages whole filters and has no VTCM",
}


def acts(knob: str, kernel: Kernel) -> bool:
    """Whether a knob changes anything about what a kernel does.

    >>> acts("h_split", "host"), acts("k_split", "hvx"), acts("k_split", "host"), acts("threads", "plain")
    (True, True, False, False)
    """
    return knob in _ACTING[kernel]


def why_without_effect(knob: str, kernel: Kernel) -> str:
    """What a kernel does instead of obeying a knob, and which kernels obey it.

    >>> why_without_effect("halo", "host")
    'host does not obey halo: it rolls stripes, stages whole filters and has no VTCM; plain and hvx obey it'
    """
    obeying = " and ".join(other for other in KERNELS if acts(knob, other))
    verb = "obey" if " and " in obeying else "obeys"
    return f"{kernel} does not obey {knob}: {_INSTEAD[kernel]}; {obeying} {verb} it"
