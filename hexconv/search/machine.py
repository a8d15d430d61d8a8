"""The stated model of latency: packets of multiplying and packets of copying, side by side or one after the other.

    compute = MACs / macs_per_packet            copy = bytes / copied_bytes_per_packet
    latency = compute + copy                    buffering = "single": a step copies, then computes
    latency = the larger of both                buffering = "double": the next step's copies run while it computes

The rates are measurements of this project's own kernels on the simulator, by dtype; they stand in `machines/ARCH.toml`
with their source. A packet is what a thread issues at once. Packets are no cycles: no memory stalls, no bus, no second
thread are in them. The model serves to weigh recomputing against reloading, not to promise a time.
"""

import sys
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError

EXACT = ConfigDict(extra="forbid")

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, config=EXACT)
class PlainRates:
    """Of the plain kernels, for one dtype."""

    macs_per_packet: float
    copied_bytes_per_packet: float

    def packets(self, macs: Any, copied_bytes: Any, overlaps: Any) -> Any:
        """The model, for numbers or arrays.

        >>> rate = PlainRates(macs_per_packet=0.5, copied_bytes_per_packet=2.0)
        >>> float(rate.packets(100, 8, False)), float(rate.packets(100, 8, True))
        (204.0, 200.0)
        """
        compute, copy = macs / self.macs_per_packet, copied_bytes / self.copied_bytes_per_packet
        return np.where(overlaps, np.maximum(compute, copy), compute + copy)


@dataclass(frozen=True, config=EXACT)
class Rates:
    """What one architecture does per packet.

    Attributes:
        source: how the figures were measured, or whose they are.
        kernels: of the plain kernels, by dtype.
        hvx_macs_per_packet: needed MACs per packet of the HVX kernels, everything that they do included.
    """

    source: str
    kernels: dict[str, PlainRates]
    hvx_macs_per_packet: float

    def plain(self, dtype: str) -> PlainRates:
        """Rates of the plain kernels for one dtype."""
        return self.kernels[dtype]


def known_machines() -> tuple[str, ...]:
    """Architectures that have a file."""
    found = (file.name.removesuffix(".toml") for file in (files("hexconv.search") / "machines").iterdir())
    return tuple(sorted((name for name in found if name.startswith("v")), key=lambda name: int(name[1:])))


@cache
def rates(arch: str) -> Rates:
    """The rates of an architecture.

    Raises:
        InputError: it has no file.
    """
    if arch not in known_machines():
        raise InputError("plan.arch", arch, " | ".join(known_machines()))
    table = tomllib.loads((files("hexconv.search") / "machines" / f"{arch}.toml").read_text(encoding="utf-8"))
    if "like" in table:
        other = rates(table["like"])
        return Rates(f"{table['source']}; {other.source}", other.kernels, other.hvx_macs_per_packet)
    return TypeAdapter(Rates).validate_python(table)
