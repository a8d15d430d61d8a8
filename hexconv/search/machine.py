"""The model of latency, in packets, fitted to runs on the simulator. It is a model, not a bound.

Plain kernels: packets of multiplying and packets of copying, side by side or one after the other.

    compute = MACs / macs_per_packet            copy = bytes / copied_bytes_per_packet
    latency = compute + copy                    buffering = "single": a step copies, then computes
    latency = the larger of both                buffering = "double": the next step's copies run while it computes

HVX kernels: the parts that a run is made of (`hexconv.analyze.nest_packets`), each at its price.

    latency = sum over parts of  how often it occurs x packets of one

Rates and prices are fitted to runs of this project's own kernels on the simulator (`reports.rates`); they stand
in `machines/ARCH.toml` with their source and with the error: nine of ten runs differ by no more than that share.
A packet is what a thread issues at once. Packets are no cycles: no memory stalls, no bus, no second thread are in them.
The model serves to weigh recomputing against reloading, not to promise a time.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.analyze.exact import Integers
from hexconv.analyze.planned import Planned
from hexconv.analyze.row_grid import nest_parts
from hexconv.errors import InputError
from hexconv.spec.case import parse_table, read_text

EXACT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=EXACT)
class PlainRates:
    """The rates of the plain kernels, for one dtype.

    Attributes:
        macs_per_packet: the MACs of a packet that multiplies.
        copied_bytes_per_packet: the bytes of a packet that copies.
        error: nine of ten runs differ from the model by no more than this share of what they take.
    """

    macs_per_packet: float
    copied_bytes_per_packet: float
    error: float

    def packets(self, macs: Any, copied_bytes: Any, overlaps: Any) -> Integers:
        """Return the packets of the model, for arrays.

        >>> rate = PlainRates(macs_per_packet=0.5, copied_bytes_per_packet=2.0, error=0.1)
        >>> rate.packets(100, 8, [False, True]).tolist()
        [204.0, 200.0]
        """
        compute, copy = macs / self.macs_per_packet, copied_bytes / self.copied_bytes_per_packet
        return np.where(overlaps, np.maximum(compute, copy), compute + copy)


@dataclass(frozen=True, eq=False, config=EXACT)
class Prices:
    """The prices of the parts of HVX kernels; prices are compared by identity, so that they are keys of caches.

    Attributes:
        error: nine of ten runs that the prices were not fitted to differ from the model by no more than this share.
        scalar_error: the same for chains of which scalar code serves some convs.
        errors: the same by kind of chain, which is the first form of these that any of its convs has.
        parts: the packets of one occurrence, by part; a part without a price costs nothing.
    """

    error: float
    scalar_error: float
    parts: dict[str, float]
    errors: dict[str, float] = field(default_factory=dict)

    def packets(self, occurs: Mapping[str, float]) -> float:
        """Return the packets of the model, from how often each part occurs.

        >>> Prices(0.1, 0.4, {"multiply": 1.0, "tile": 3.0}).packets({"multiply": 100.0, "tile": 4.0, "line": 1.0})
        112.0
        """
        return sum(self.parts.get(part, 0.0) * times for part, times in occurs.items())


@dataclass(frozen=True, eq=False, config=EXACT)
class Rates:
    """The rates of one architecture; they are compared by identity, so that they are keys of caches.

    Attributes:
        source: how the figures were measured, or which architecture they are taken from.
        kernels: the rates of the plain kernels, by dtype.
        nest: the prices of the HVX kernels in the planned nest.
        pace: the prices by which times are told, where a machine was measured; else those of the nest.
    """

    source: str
    kernels: dict[str, PlainRates]
    nest: Prices
    pace: Prices | None = None

    def at_pace(self, stalls: "Stalls") -> "Rates":
        """Return these rates with a pace: packets of each kind take so many times as long."""
        longer = asdict(stalls)
        parts = {part: price * longer[kind_of_packets(part)] for part, price in self.nest.parts.items()}
        return replace(self, pace=replace(self.nest, parts=parts))

    @property
    def paced(self) -> Prices:
        """The prices by which times are told."""
        return self.pace or self.nest

    def plain(self, dtype: str) -> PlainRates:
        """Return the rates of the plain kernels for one dtype."""
        return self.kernels[dtype]

    def packets(self, planned: Planned) -> float:
        """Return the packets that the model predicts for an HVX kernel."""
        return self.nest.packets(nest_parts(planned.axes))

    def error(self, planned: Planned) -> float | None:
        """Return the model's error for a plan: nine of ten runs differ by no more than this share.

        None where there is no model, or none that was compared with runs.
        """
        nest, dtype = planned.nest, planned.chain.dtype
        if nest == "rows" and dtype == "int16":
            return None
        if planned.plan.kernel == "hmx":
            return None  # no device timed it
        if nest == "blocks":
            return self.plain(dtype).error
        if "plain" in planned.rows.kernels:
            return self.nest.scalar_error
        return self.nest.errors.get(kind_of(planned), self.nest.error)


KINDS = ("words of groups", "depthwise", "windows of dense rows", "pixels", "channels")
"""The kinds of chains by which the model's error is told, the hardest to predict first."""


def kind_of(planned: Planned) -> str:
    """Return the kind of a chain of HVX kernels: the first of `KINDS` that is the form of one of its convs."""
    forms = {conv.form.name for conv in planned.rows.convs}
    return next(kind for kind in KINDS if kind in forms)


def machine_file(arch: str) -> Path:
    """Return the file with the rates of an architecture."""
    return Path(str(files("hexconv.search") / "machines" / f"{arch}.toml"))


def known_machines() -> tuple[str, ...]:
    """Return the architectures that have a file of rates."""
    found = (file.name.removesuffix(".toml") for file in (files("hexconv.search") / "machines").iterdir())
    return tuple(sorted((name for name in found if name.startswith("v")), key=lambda name: int(name[1:])))


@cache
def rates(arch: str) -> Rates:
    """Read the rates of an architecture.

    Raises:
        InputError: the architecture has no file.
    """
    if arch not in known_machines():
        raise InputError("plan.arch", arch, " | ".join(known_machines()))
    file = machine_file(arch)
    table = parse_table(read_text(file), str(file))
    if "like" in table:
        other = rates(table["like"])
        return Rates(f"{table['source']}; {other.source}", other.kernels, other.nest)
    return TypeAdapter(Rates).validate_python(table)


@dataclass(frozen=True, config=EXACT)
class Memory:
    """How fast an architecture copies, beside how fast it computes.

    Attributes:
        bytes_per_packet: the bytes that its copy engine moves in the time of a packet of one thread.
        source: the published figures that it follows from.
    """

    bytes_per_packet: float
    source: str


@dataclass(frozen=True, config=EXACT)
class Engine:
    """How fast the matrix engine of an architecture multiplies.

    Attributes:
        macs_per_packet: the multiply-accumulates that it does in the time of a packet of one thread.
        source: the published figure that it follows from.
    """

    macs_per_packet: float
    source: str


@dataclass(frozen=True, eq=False, config=EXACT)
class BesideEngine:
    """What a thread does beside the matrix engine, in packets.

    Attributes:
        source: how the prices were found.
        error: nine of ten runs that the prices were not fitted to differ from the model by no more than this share.
        parts: the packets of one occurrence, by part (`hexconv.analyze.engine_parts`).
    """

    source: str
    error: float
    parts: dict[str, float]

    def packets(self, occurs: Mapping[str, Any]) -> Any:
        """Return the packets of the model, from how often each part occurs; of many plans, arrays."""
        return sum(price * occurs.get(part, 0) for part, price in self.parts.items())


def engine_of(arch: str) -> Engine:
    """Read how fast an architecture's matrix engine is, from published figures: none of them was measured here."""
    return TypeAdapter(dict[str, Engine]).validate_python(_engines()["arch"])[arch]


def beside_engine() -> BesideEngine:
    """Read what a thread does beside the matrix engine, from runs on the simulator."""
    return TypeAdapter(BesideEngine).validate_python(_engines()["beside"])


@cache
def _engines() -> dict[str, Any]:
    file = machine_file("engine")
    return parse_table(read_text(file), str(file))


def kind_of_packets(part: str) -> str:
    """Return which of the fields of `Stalls` the packets of a part of a run belong to.

    >>> kind_of_packets("multiply1"), kind_of_packets("multiply4"), kind_of_packets("tile")
    ('single', 'several', 'others')
    """
    if not part.startswith("multiply"):
        return "others"
    return "single" if part == "multiply1" else "several"


Positive = Annotated[float, Field(ge=1e-9, le=1e6, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


@dataclass(frozen=True, config=EXACT)
class Stalls:
    """How long packets take, as shares of the average packet of a first run.

    Attributes:
        single: packets that multiply for one tile of 32 channels.
        several: packets that multiply for two to four tiles at once.
        others: all other packets.
    """

    single: Share
    several: Share
    others: Share


@dataclass(frozen=True, eq=False, config=EXACT)
class Machine:
    """A device, as a first run measured it (`hexconv.search.calibration`).

    Attributes:
        source: where the lines came from.
        arch: the architecture that they were of.
        megahertz: the clock.
        bytes_per_cycle: the bytes that copies of one row move in a cycle.
        cycles_per_packet: the cycles of a packet, on average over the plans of a first run.
        stalls: how long each kind of packets takes.
        error: the plans of a first run differ by no more than this share.
        threads: how many times longer a packet takes on several threads; the keys are numbers of threads.
        told: figures that no plan uses, by their keys: the bytes that copies of many rows move in a cycle, and how many
            times longer a plan takes whose caches lie outside of VTCM.
    """

    source: str
    arch: str
    megahertz: Positive
    bytes_per_cycle: Positive
    cycles_per_packet: Positive
    error: Share
    stalls: Stalls
    threads: dict[str, Positive] = field(default_factory=dict)
    told: dict[str, Positive] = field(default_factory=dict)

    @cached_property
    def rates(self) -> Rates:
        """The rates of its architecture, with the pace of each part."""
        return replace(rates(self.arch).at_pace(self.stalls), source=self.source)

    def bytes_per_packet(self, threads: int) -> float:
        """Return the bytes that copies move in the time of a packet, on so many threads."""
        several = max((int(number) for number in self.threads if int(number) <= threads), default=1)
        return self.bytes_per_cycle * self.cycles_per_packet * self.threads.get(str(several), 1.0)

    def cycles(self, packets: float, threads: int) -> float:
        """Return the cycles of a time in packets of one thread."""
        return packets * self.bytes_per_packet(threads) / self.bytes_per_cycle

    def to_toml(self) -> str:
        """Return it as a file that `read_machine` reads."""
        lines = ["# Written by `hexconv calibrate`; `hexconv best --machine` takes it."]
        for name, value in vars(self).items():
            if isinstance(value, (str, float)):
                lines.append(f"{name} = {json.dumps(value)}")
        for name, table in (("stalls", asdict(self.stalls)), ("threads", self.threads), ("told", self.told)):
            lines += [f"[{name}]", *(f"{json.dumps(key)} = {value}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


@cache
def read_machine(path: Path) -> Machine:
    """Read the file of a device.

    Raises:
        InputError: the file is no such file; the message says which field is wrong.
    """
    table = parse_table(read_text(path), str(path))
    try:
        machine = TypeAdapter(Machine).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise InputError(str(path), f"{place}: {first['msg']}", "a file that hexconv calibrate wrote") from None
    if machine.arch not in known_machines():
        raise InputError(f"{path}: arch", machine.arch, " | ".join(known_machines()))
    if strange := [number for number in machine.threads if not re.fullmatch("[1-9]", number)]:
        raise InputError(f"{path}: threads", strange[0], "numbers of threads from 1 to 9")
    return machine


@cache
def memory_of(arch: str) -> Memory:
    """Read how fast an architecture copies, from published figures: none of them was measured here."""
    file = machine_file("memory")
    return TypeAdapter(dict[str, Memory]).validate_python(parse_table(read_text(file), str(file)))[arch]
