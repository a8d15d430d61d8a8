"""Calibrate the model of time by a device: the plans of a first run, what its lines mean, and the fit.

A first run prints lines of words, one for each run of a plan, and one for each pattern of copies:

    hexconv-run plan=tall arch=73 vtcm=1 cycles=1700000 us=1400
    hexconv-copy rows=1 bytes=65536 arch=73 cycles=5200 us=4

The first four plans run in one thread and in VTCM, their copies beside them, and differ in how often they multiply, for
how many tiles at once, and in what else they do. Three figures are fitted to them, none below zero, by least squares of
shares:

    cycles - what the model of time has beside packets = single * packets that multiply for one tile of channels
                                                       + several * packets that multiply for several tiles
                                                       + others * all other packets

Beside packets a call waits for what no step hides, and for copies that take longer than a step
(`hexconv.analyze.step_times`), which depends on the figures: the fit is repeated. The three other plans are the first
one outside of VTCM, and on two and four threads. Of several lines of a plan or of a pattern the median counts. Lines
come from anywhere: their words, numbers and count are checked, and their plans are looked up by name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from itertools import product
from statistics import median

import numpy as np
from pydantic import ValidationError

from hexconv.analyze.exact import Integers
from hexconv.analyze.planned import Planned
from hexconv.analyze.row_grid import nest_parts
from hexconv.errors import InputError
from hexconv.search.grid import figures_of
from hexconv.search.machine import Machine, Stalls, kind_of_packets, known_machines, rates
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.whitelist import plain

_CONV = Conv2d(
    out_channels=64,
    requantize=Requantize(multiplier=1 << 17, shift=-4),
)
CHAIN = Chain(input=(1, 64, 64, 64), dtype="uint8", conv=(_CONV, _CONV))
_TALL = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", storage="vtcm", rows=8)
FITTED = {
    "tall": _TALL,
    "strips": replace(_TALL, rows=2, w_split=1),
    "wide": replace(_TALL, k_split=2),
    "staged": replace(_TALL, rows=1, filters="per_tile"),
}
"""The plans that prices are fitted to, by name."""
OUTSIDE = "outside"
THREADS = {"two": 2, "four": 4}
PLANS = {
    **FITTED,
    OUTSIDE: replace(_TALL, storage="global"),
    **{name: replace(_TALL, rows=4, threads=threads) for name, threads in THREADS.items()},
}
MOST_LINES, LONGEST_LINE, LARGEST, ROUNDS = 10_000, 200, 1 << 53, 8
RUN_LINE = re.compile(
    r"hexconv-run plan=([a-z]{1,16}) arch=(\d{1,3}) vtcm=([01]) cycles=(\d{1,16}) us=(\d{1,16})", re.ASCII
)
COPY_LINE = re.compile(
    r"hexconv-copy rows=(\d{1,6}) bytes=(\d{1,10}) arch=(\d{1,3}) cycles=(\d{1,16}) us=(\d{1,16})", re.ASCII
)
MEGAHERTZ = (10.0, 10_000.0)
"""The clocks that a device may have; lines that tell another one were not counted by one clock."""


def first_run() -> list[Case]:
    """Return the cases of a first run."""
    return [Case(name, CHAIN, plan) for name, plan in PLANS.items()]


@dataclass(frozen=True)
class Lines:
    """What a first run printed.

    Attributes:
        arch: the architecture that its code was for.
        runs: the cycles of each plan, by its name.
        copies: the bytes a cycle of each pattern of copies, by its number of rows.
        megahertz: the clock: cycles over microseconds.
        unused: how many lines were something else, or runs whose caches did not lie where their plan has them.
    """

    arch: str
    runs: Mapping[str, float]
    copies: Mapping[int, float]
    megahertz: float
    unused: int


def read_lines(text: str, name: str) -> Lines:
    """Read the lines of a first run.

    Args:
        text: what was printed, other lines included.
        name: what the text is called in errors.

    Raises:
        InputError: a number can't be, lines are of several architectures, or what the fit needs is not there.
    """
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        raise InputError(name, f"{len(lines)} lines", f"at most {MOST_LINES}, which a first run prints")
    runs, copies, clocks, arches = dict[str, list[int]](), dict[int, list[float]](), list[float](), set[str]()
    for line in lines:
        if found := RUN_LINE.fullmatch(line.strip()[:LONGEST_LINE]):
            plan, arch, vtcm, cycles, us = found[1], *(_number(name, found[at]) for at in (2, 3, 4, 5))
            if plan not in PLANS or vtcm != (plan != OUTSIDE):
                continue
            runs.setdefault(plan, []).append(_positive(name, "cycles", cycles))
        elif found := COPY_LINE.fullmatch(line.strip()[:LONGEST_LINE]):
            rows, size, arch, cycles, us = (_number(name, word) for word in found.groups())
            copies.setdefault(rows, []).append(_positive(name, "bytes", size) / _positive(name, "cycles", cycles))
        else:
            continue
        arches.add(f"v{arch}")
        clocks += [cycles / us] if us else []
    used = sum(map(len, (*runs.values(), *copies.values())))
    return Lines(
        arch=_one_arch(name, arches),
        runs={plan: median(cycles) for plan, cycles in _complete(name, runs).items()},
        copies={rows: median(speeds) for rows, speeds in _both(name, copies).items()},
        megahertz=_clock(name, clocks),
        unused=len(lines) - used,
    )


def _number(name: str, word: str) -> int:
    if int(word) > LARGEST:
        raise InputError(name, word, f"numbers up to {LARGEST}")
    return int(word)


def _positive(name: str, what: str, number: int) -> int:
    if number <= 0:
        raise InputError(name, f"{what}={number}", f"{what} above 0: a first run counts them")
    return number


def _one_arch(name: str, arches: set[str]) -> str:
    if len(arches) > 1:
        raise InputError(name, f"lines of {' and '.join(sorted(arches))}", "lines of one device")
    if arches - set(known_machines()):
        raise InputError(name, f"lines of {', '.join(arches)}", " | ".join(known_machines()))
    return next(iter(arches), "")


def _complete(name: str, runs: Mapping[str, list[int]]) -> Mapping[str, list[int]]:
    if missing := [plan for plan in FITTED if plan not in runs]:
        what = f"no line of {', '.join(missing)} with its caches in VTCM"
        raise InputError(name, what, f"a line of each of {', '.join(FITTED)}, which a first run prints")
    return runs


def _both(name: str, copies: Mapping[int, list[float]]) -> Mapping[int, list[float]]:
    if 1 not in copies or max(copies) == 1:
        raise InputError(
            name, "no lines of copies", "a line of copies of one row, and one of several, which a first run prints"
        )
    return copies


def _clock(name: str, clocks: Iterable[float]) -> float:
    megahertz = median(clocks or [0.0])  # pyright: ignore[reportArgumentType]
    if not MEGAHERTZ[0] <= megahertz <= MEGAHERTZ[1]:
        asked = f"{MEGAHERTZ[0]:g} to {MEGAHERTZ[1]:g} MHz: cycles and microseconds of one clock"
        raise InputError(name, f"cycles at {megahertz:g} MHz", asked)
    return megahertz


@dataclass(frozen=True)
class FittedPlan:
    """One plan of a first run.

    Attributes:
        plan: the name of the plan.
        cycles: the cycles that the device counted.
        fitted_cycles: what the machine says of it.
    """

    plan: str
    cycles: float
    fitted_cycles: float


@dataclass(frozen=True)
class Fit:
    """A machine, and how far it is from the lines that it was fitted to.

    Attributes:
        machine: the machine, as `best --machine` takes it.
        plans: the plans that it was fitted to.
        unused_lines: how many lines were something else, or of plans whose caches did not lie where they should.
    """

    machine: Machine
    plans: tuple[FittedPlan, ...]
    unused_lines: int


def calibrate(lines: Lines, source: str) -> Fit:
    """Fit a machine to the lines of a first run.

    Args:
        lines: the lines.
        source: what the lines are called in the machine's file.

    Raises:
        InputError: copies alone take longer than the plans whose copies they are, so that nothing is left to fit; or a
            figure is none that a machine may have.
    """
    bytes_per_cycle = lines.copies[1]  # stripes of whole rows are of one run
    packets = np.array([astuple(_packets(name, lines.arch)) for name in FITTED])
    measured = np.array([lines.runs[name] for name in FITTED])
    fitted = np.full(packets.shape[1], float(np.median(measured / packets.sum(axis=1))))
    for _ in range(ROUNDS):
        modelled = np.array([_modelled(name, fitted, bytes_per_cycle, lines.arch) for name in FITTED])
        computed = measured - (modelled - packets @ fitted)
        if np.any(computed <= 0):
            worst = int(np.argmin(computed))
            what = f"plan={list(FITTED)[worst]} in {measured[worst]:.0f} cycles, less than its copies take"
            raise InputError(source, what, "lines of one run of the first run's program")
        fitted = _not_negative(packets / measured[:, None], computed / measured)
    predicted = np.array([_modelled(name, fitted, bytes_per_cycle, lines.arch) for name in FITTED])
    mean = float((packets @ fitted).sum() / packets.sum())
    try:
        machine = Machine(
            source=plain(source),
            arch=lines.arch,
            megahertz=round(lines.megahertz, 1),
            bytes_per_cycle=_short(bytes_per_cycle),
            cycles_per_packet=_short(mean),
            stalls=Stalls(*(_short(float(each) / mean) for each in fitted)),
            error=_short(float(np.max(np.abs(predicted / measured - 1)))),
            threads=dict(_contentions(lines, fitted)),
            told=dict(_told(lines)),
        )
    except ValidationError as error:  # no device is that quick or slow
        wrong = error.errors()[0]
        what = f"{'.'.join(map(str, wrong['loc']))} {wrong['input']}"
        raise InputError(source, what, "lines of one run of the first run's program") from None
    plans = (FittedPlan(name, lines.runs[name], float(each)) for name, each in zip(FITTED, predicted, strict=True))
    return Fit(machine, tuple(plans), lines.unused)


def _not_negative(matrix: Integers, wanted: Integers) -> Integers:
    """Solve a small system by least squares, no unknown below zero: the best of the sets of unknowns that may be more.

    >>> _not_negative(np.eye(2), np.array([3.0, -1.0])).tolist()
    [3.0, 0.0]
    """
    found = []
    for kept in product((False, True), repeat=matrix.shape[1]):
        solution = np.zeros(matrix.shape[1])
        solution[list(kept)] = np.linalg.lstsq(matrix[:, kept], wanted, rcond=None)[0]
        if np.all(solution >= 0):
            found.append(solution)
    return min(found, key=lambda each: float(np.sum((matrix @ each - wanted) ** 2)))


def _packets(name: str, arch: str) -> Stalls:
    """Return the packets of a plan by kind, by the closed forms."""
    prices, packets = rates(arch).nest.parts, dict.fromkeys(asdict(Stalls(0, 0, 0)), 0.0)
    for part, times in nest_parts(Planned(CHAIN, PLANS[name]).axes).items():
        packets[kind_of_packets(part)] += prices.get(part, 0.0) * float(times)
    return Stalls(**packets)


def _modelled(name: str, cycles: Integers, bytes_per_cycle: float, arch: str) -> float:
    """Return the cycles of a plan by the model of time, from those of each kind of packets."""
    paced = rates(arch).at_pace(Stalls(*map(float, cycles)))
    return figures_of(CHAIN, PLANS[name], paced).time_packets(bytes_per_cycle)


def _contentions(lines: Lines, fitted: Integers) -> Iterator[tuple[str, float]]:
    """Yield how much longer a packet takes on several threads, by their number, where a line tells."""
    for name, threads in THREADS.items():
        if name in lines.runs:
            alone = _modelled(name, fitted, lines.copies[1], lines.arch)
            yield str(threads), _short(max(lines.runs[name] / alone, 0.01))


def _told(lines: Lines) -> Iterator[tuple[str, float]]:
    yield "bytes_per_cycle_of_rows", _short(min(speed for rows, speed in lines.copies.items() if rows > 1))
    if OUTSIDE in lines.runs:
        yield "outside_of_vtcm", _short(lines.runs[OUTSIDE] / lines.runs["tall"])


def _short(number: float) -> float:
    return float(f"{number:.4g}")
