"""Fits the rates of the latency model to runs on the simulator, and writes a file of `hexconv/search/machines`.

    python -m hexconv.bench.rates [plain] [nest] [scalar]       writes hexconv/search/machines/v67.toml

Plain kernels have two rates for each dtype, those that fit the packets of 20 cases best (least squares of relative
errors), and an error: how far nine of ten of these cases are off. HVX kernels have a price for each part; the prices
fit drawn cases best, and none is below 0. `hexconv.bench.model` finds their error on other chains and writes it into
the file. Scalar code beside HVX kernels has prices of its own parts, found in the same way, and an error on other
chains.

Every run is kept in `build/rates.journal`: a command that was interrupted goes on from there.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np

from hexconv.analyze import Planned
from hexconv.analyze.exact import Integers
from hexconv.analyze.nest_packets import SCALAR_PARTS, nest_parts, parts_of_stages
from hexconv.bench.journaled import Runs
from hexconv.bench.rate_cases import mixed_cases, nest_cases, plain_cases, sweep_cases
from hexconv.run.simulator.qemu import find_qemu
from hexconv.search.machine import PlainRates, Prices, machine_file, rates
from hexconv.spec import Case
from hexconv.spec.dtypes import Dtype

DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
KERNELS = ("plain", "nest", "scalar")
ARCH = "v67"
"""The newest instruction set that the simulator runs."""
OF_NETWORKS, OF_SWEEP, OF_SCALAR_CODE = 80, 140, 30
"""How many drawn cases prices are fitted to; scalar code is compared with as many others."""
ROUNDS, NEAR = 30, 0.03
JOURNAL = Path("build/rates.journal")

NINE_OF_TEN = 0.9


def packets(case: Case, runs: Runs) -> int:
    """The packets that a case takes on the simulator; its result has to be right."""
    counted = runs.of(case)
    assert counted.passed, case.to_toml()
    return counted.packets


@dataclass(frozen=True)
class Stage:
    """What a run, or a stage of it, is made of, and the packets that it took.

    Attributes:
        occurs: how often each part occurs.
        packets: the packets that it took.
        of: the packets of the whole run.
    """

    occurs: Mapping[str, float]
    packets: float
    of: float

    @classmethod
    def whole(cls, occurs: Mapping[str, float], packets: float) -> "Stage":
        """A whole run."""
        return cls(occurs, packets, packets)


def fitted(stages: Sequence[Stage], weights: Sequence[float] = ()) -> dict[str, float]:
    """The prices of parts, none below 0, that predict packets best: least squares of errors relative to the run.

    Args:
        stages: the stages of all runs.
        weights: the weight of each stage; all are alike if none are given.

    >>> runs = [({"a": 1, "b": 2}, 8), ({"a": 2, "b": 1}, 7), ({"a": 1, "c": 1}, 6)]
    >>> fitted([Stage.whole(*run) for run in runs])
    {'a': 2.0, 'b': 3.0, 'c': 4.0}
    >>> fitted([Stage.whole({"a": 1, "b": 1}, 10), Stage.whole({"a": 1, "b": 2}, 9)])
    {'a': 9.45}
    """
    names = sorted({name for stage in stages for name in stage.occurs})
    roots = np.sqrt(weights if len(weights) else np.ones(len(stages)))
    target = roots * [stage.packets / stage.of for stage in stages]
    while True:
        shares = np.array([[stage.occurs.get(name, 0) / stage.of for name in names] for stage in stages])
        prices = np.linalg.lstsq(shares * roots[:, None], target, rcond=None)[0]
        if not len(prices) or prices.min() > 0:
            return {name: float(f"{price:.3g}") for name, price in zip(names, prices, strict=True)}
        names.pop(int(prices.argmin()))


def robust(stages: Sequence[Stage]) -> dict[str, float]:
    """The prices with the least sum of errors, so that the few loops in which LLVM spills count little.

    It repeats least squares and weights each stage by one over its error of the time before, relative to the run;
    errors below `NEAR` count as `NEAR`.

    >>> robust([Stage.whole({"a": times}, packets) for times, packets in enumerate([2, 4, 6, 8, 30, 12], 1)])
    {'a': 2.0}
    """
    weights = np.ones(len(stages))
    for _ in range(ROUNDS):
        prices = Prices(0.0, 0.0, fitted(stages, weights.tolist()))
        errors = [(prices.packets(stage.occurs) - stage.packets) / stage.of for stage in stages]
        weights = 1 / np.maximum(np.abs(errors), NEAR)
    return fitted(stages, weights.tolist())


def stages_and_whole(case: Case, runs: Runs) -> Iterator[Stage]:
    """Yield the stages of a case, and its whole run.

    A run with marks tells which shares of the packets the stages take; a run without marks tells how many there are.
    """
    counted = runs.by_stages(case)
    assert counted.passed, case.to_toml()
    planned = Planned.of(case).rows
    stages, parts = counted.stages or {}, parts_of_stages(planned)
    marked = sum(stages.values())
    for name in sorted(parts.keys() | stages.keys()) if stages else ():
        yield Stage(parts.get(name, {}), stages.get(name, 0) * counted.packets / marked, counted.packets)
    yield Stage.whole(nest_parts(planned), counted.packets)


def nest_and_sweep() -> list[Case]:
    """The cases that the prices of HVX kernels are fitted to."""
    return [*islice(nest_cases(0), OF_NETWORKS), *islice(sweep_cases(0), OF_SWEEP)]


def error(modelled: Integers, counted: Sequence[int]) -> float:
    """How far nine of ten cases are off at most, as a share of the packets that they take."""
    return float(np.quantile(np.abs(modelled / np.array(counted) - 1), NINE_OF_TEN))


def plain_lines(dtype: Dtype, runs: Runs) -> list[str]:
    """The lines of the machine's file for plain kernels of one dtype, fitted anew."""
    cases = [*plain_cases(dtype)]
    works = [Planned.of(case).work for case in cases]
    occurs = [{"mac": sum(work.macs.values()), "byte": sum(work.traffic_bytes.values())} for work in works]
    counted = [packets(case, runs) for case in cases]
    prices = fitted([*map(Stage.whole, occurs, counted)])
    modelled = np.array([sum(prices[name] * parts[name] for name in prices) for parts in occurs])
    rates = {"macs_per_packet": 1 / prices["mac"], "copied_bytes_per_packet": 1 / prices["byte"]}
    named = {**rates, "error": error(modelled, counted)}
    return [f"[kernels.{dtype}]", *(f"{name} = {value:.3g}" for name, value in named.items())]


def priced(cases: Sequence[Case], runs: Runs, known: Prices) -> Prices:
    """The prices of HVX kernels, fitted to cases; the known error stays until `hexconv.bench.model` finds another."""
    stages = [stage for case in cases for stage in stages_and_whole(case, runs)]
    scalar = {name: price for name, price in known.parts.items() if name in SCALAR_PARTS}
    return replace(known, parts=robust(stages) | scalar)


def scalar_priced(cases: Sequence[Case], runs: Runs, known: Prices) -> Prices:
    """The known prices, with new ones for scalar code: fitted to half of the cases, their error that of the others."""
    half = len(cases) // 2
    occurs, counted = [nest_parts(Planned.of(case).rows) for case in cases], [packets(case, runs) for case in cases]
    scalar = [{name: parts[name] for name in SCALAR_PARTS} for parts in occurs]
    others = replace(known, parts={name: each for name, each in known.parts.items() if name not in SCALAR_PARTS})
    rest = [count - others.packets(parts) for parts, count in zip(occurs, counted, strict=True)]
    prices = replace(known, parts=others.parts | robust([*map(Stage, scalar[:half], rest, counted)]))
    modelled = np.array([prices.packets(parts) for parts in occurs[half:]])
    return replace(prices, scalar_error=error(modelled, counted[half:]))


def lines_of(name: str, prices: Prices) -> list[str]:
    """The lines of the machine's file for HVX kernels, and for scalar code beside them."""
    errors = [f"error = {prices.error:.3g}", f"scalar_error = {prices.scalar_error:.3g}"]
    lines = [f"[{name}]", *errors, f"[{name}.parts]"]
    return [*lines, *(f"{part} = {price}" for part, price in sorted(prices.parts.items()))]


def kept_lines(rate: PlainRates, dtype: str) -> list[str]:
    """The lines of the machine's file for plain kernels of one dtype, as they are known."""
    return [f"[kernels.{dtype}]", *(f"{name} = {value:.3g}" for name, value in vars(rate).items())]


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.rates", description=__doc__)
    parser.add_argument("kernels", nargs="*", choices=KERNELS, default=KERNELS, help="to measure; others stay as known")
    asked = parser.parse_args(arguments).kernels
    known, isa = rates(ARCH), find_qemu().isa
    with Runs.opened(JOURNAL) as runs:
        cases = nest_and_sweep() if "nest" in asked else []
        nest = priced(cases, runs, known.nest) if cases else known.nest
        mixed = [*islice(mixed_cases(0), 2 * OF_SCALAR_CODE)] if "scalar" in asked else []
        nest = scalar_priced(mixed, runs, nest) if mixed else nest
        plain = {
            dtype: plain_lines(dtype, runs) if "plain" in asked else kept_lines(known.plain(dtype), dtype)
            for dtype in DTYPES
        }
    write(isa, nest, [line for lines in plain.values() for line in lines])
    return 0


def write_error(share: float) -> None:
    """Write how far nine of ten runs of HVX kernels are off, rounded up, and nothing else."""
    stated = f"[nest]\nerror = {ceil(share * 1000) / 1000:.3g}\n"
    text = machine_file(ARCH).read_text(encoding="utf-8")
    machine_file(ARCH).write_text(re.sub(r"\[nest\]\nerror = .*\n", stated, text), encoding="utf-8")


def write(isa: str, nest: Prices, plain: Sequence[str]) -> None:
    """Write the file of the machine."""
    drawn = OF_NETWORKS + OF_SWEEP
    how = f"plain kernels fitted to 20 cases a dtype, HVX to {drawn} drawn cases, scalar code to {OF_SCALAR_CODE}"
    lines = [
        "# Packets of the simulator: what a thread issues, no cycles. Written by `hexconv.bench.rates`, but for the",
        "# error of the nest, which is that of reports/model.csv: `hexconv.bench.model` writes it.",
        "# error: nine of ten runs differ from the model by no more than this share of what they take.",
        f'source = "measured on the simulator as {isa}: {how}"',
        *lines_of("nest", nest),
        *plain,
    ]
    machine_file(ARCH).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
