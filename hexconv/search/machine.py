"""The stated model of latency, in packets: what runs on the simulator took, fitted; a model, and no bound.

Plain kernels: packets of multiplying and packets of copying, side by side or one after the other.

    compute = MACs / macs_per_packet            copy = bytes / copied_bytes_per_packet
    latency = compute + copy                    buffering = "single": a step copies, then computes
    latency = the larger of both                buffering = "double": the next step's copies run while it computes

HVX kernels: the parts that a run is made of (`hexconv.analyze.hvx_packets`), each at its price.

    latency = sum over parts of  how often it occurs x packets of one

Rates and prices are fitted to runs of this project's own kernels on the simulator (`hexconv.report.rates`); they stand
in `machines/ARCH.toml` with their source and with the error: nine of ten runs differ by no more than that share.
A packet is what a thread issues at once. Packets are no cycles: no memory stalls, no bus, no second thread are in them.
The model serves to weigh recomputing against reloading, not to promise a time.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.search.exact import Integers
from hexconv.spec.plan import Kernel

EXACT = ConfigDict(extra="forbid")

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, config=EXACT)
class PlainRates:
    """Of the plain kernels, for one dtype.

    Attributes:
        macs_per_packet: of multiplying.
        copied_bytes_per_packet: of copying.
        error: nine of ten runs differ from the model by no more than this share of what they take.
    """

    macs_per_packet: float
    copied_bytes_per_packet: float
    error: float

    def packets(self, macs: Any, copied_bytes: Any, overlaps: Any) -> Integers:
        """The model, for arrays.

        >>> rate = PlainRates(macs_per_packet=0.5, copied_bytes_per_packet=2.0, error=0.1)
        >>> rate.packets(100, 8, [False, True]).tolist()
        [204.0, 200.0]
        """
        compute, copy = macs / self.macs_per_packet, copied_bytes / self.copied_bytes_per_packet
        return np.where(overlaps, np.maximum(compute, copy), compute + copy)


@dataclass(frozen=True, config=EXACT)
class HvxPrices:
    """Of the HVX kernels.

    Attributes:
        error: as of the plain kernels, of runs that the prices were not fitted to.
        parts: packets of one, by part; parts without a price cost nothing.
    """

    error: float
    parts: dict[str, float]

    def packets(self, occurs: Mapping[str, float]) -> float:
        """The model.

        >>> HvxPrices(0.1, {"multiply": 1.0, "tile": 3.0}).packets({"multiply": 100.0, "tile": 4.0, "line": 1.0})
        112.0
        """
        return sum(self.parts.get(part, 0.0) * times for part, times in occurs.items())


@dataclass(frozen=True, config=EXACT)
class Rates:
    """What one architecture does per packet.

    Attributes:
        source: how the figures were measured, or whose they are.
        kernels: of the plain kernels, by dtype.
        hvx: of the HVX kernels.
    """

    source: str
    kernels: dict[str, PlainRates]
    hvx: HvxPrices

    def plain(self, dtype: str) -> PlainRates:
        """Rates of the plain kernels for one dtype."""
        return self.kernels[dtype]

    def error(self, kernel: Kernel, dtype: str) -> float | None:
        """By how much nine of ten runs differ from the model at most, as a share; None where there is no model."""
        if kernel == "host":
            return None
        return self.hvx.error if kernel == "hvx" else self.plain(dtype).error


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
        return Rates(f"{table['source']}; {other.source}", other.kernels, other.hvx)
    return TypeAdapter(Rates).validate_python(table)
