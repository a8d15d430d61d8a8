"""Fits the rates of the latency model to runs on the simulator, and writes a file of `hexconv/search/machines`.

python -m reports.rates [plain] [nest] [lanes] [scalar]     writes hexconv/search/machines/v67.toml

Plain kernels have two rates for each dtype, those that fit the packets of 20 cases best (least squares of relative
errors), and an error: how far nine of ten of these cases are off. HVX kernels have a price for each part. The prices
fit the stages of drawn cases best, none is below 0, and all are scaled so that nine of ten of these cases are as near
as can be. `lanes` fits the prices of `OF_LANES` alone, to those of these cases that have convs whose lanes are pixels,
rings or strips, which takes half of the time. `reports.model` finds their error on other chains and writes it into the
file. Scalar code beside HVX kernels has prices of its own parts, found in the same way, and an error on other chains.

Every run is kept in `build/rates.journal`: a command that was interrupted goes on from there.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from hexconv.analyze import Planned
from hexconv.analyze.exact import Integers
from hexconv.analyze.row_grid import nest_parts, parts_of_stages
from hexconv.kernel.scalar import SCALAR_PARTS
from hexconv.run.simulator.qemu import find_qemu
from hexconv.search.machine import PlainRates, Prices, machine_file, rates
from hexconv.spec import Case
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import Kernel
from reports.kept import Runs
from reports.rate_cases import (
    dense_cases,
    depthwise_cases,
    few_channel_cases,
    grouped_cases,
    mixed_cases,
    nest_cases,
    plain_cases,
    scalar_cases,
    strip_cases,
    sweep_cases,
)

ROUNDS, NEAR = 30, 0.1
HELD = 0.1
"""How strongly a known price holds a new one, as a share of what the stages do that have the part."""
NINE_OF_TEN = 0.9


@dataclass(frozen=True)
class Stage:
    """What a run, or a stage of it, is made of, and the packets that it took.

    Attributes:
        occurs: how often each part occurs.
        packets: the packets that it took.
        of: the packets that its error is a share of.
    """

    occurs: Mapping[str, float]
    packets: float
    of: float

    @classmethod
    def whole(cls, occurs: Mapping[str, float], packets: float) -> "Stage":
        """Return a whole run."""
        return cls(occurs, packets, packets)


NO_PRICES: Mapping[str, float] = {}


def fitted(
    stages: Sequence[Stage], weights: Sequence[float] = (), known: Mapping[str, float] = NO_PRICES
) -> dict[str, float]:
    """The prices of parts, none below 0, that predict packets best: least squares of errors, each a share of `of`.

    Known prices hold new ones to themselves with `HELD` of the force that stages have: a ridge, by which parts that few
    stages tell apart stay near what other cases told.

    Args:
        stages: the stages of all runs.
        weights: the weight of each stage; all are alike if none are given.
        known: prices that were fitted to other cases.

    >>> runs = [({"a": 1, "b": 2}, 8), ({"a": 2, "b": 1}, 7), ({"a": 1, "c": 1}, 6)]
    >>> fitted([Stage.whole(*run) for run in runs])
    {'a': 2.0, 'b': 3.0, 'c': 4.0}
    >>> fitted([Stage.whole({"a": 1, "b": 1}, 10), Stage.whole({"a": 1, "b": 2}, 9)])
    {'a': 9.45}
    """
    names = sorted({name for stage in stages for name, times in stage.occurs.items() if times})
    roots = np.sqrt(weights if len(weights) else np.ones(len(stages)))
    target = roots * [stage.packets / stage.of for stage in stages]
    shares = np.array([[stage.occurs.get(name, 0) / stage.of for name in names] for stage in stages]) * roots[:, None]
    held = HELD * np.linalg.norm(shares, axis=0) * [name in known for name in names]
    wanted = [*target, *(force * known.get(name, 0) for force, name in zip(held, names, strict=True))]
    prices, _ = nnls(np.vstack([shares, np.diag(held)]), np.array(wanted))
    return {name: float(f"{price:.3g}") for name, price in zip(names, prices, strict=True) if price > 0}


def robust(stages: Sequence[Stage], known: Mapping[str, float] = NO_PRICES) -> dict[str, float]:
    """Return the prices with the least sum of errors, so that the few loops in which LLVM spills count little.

    It repeats least squares and weights each stage by one over its error of the time before; errors below `NEAR` count
    as `NEAR`.

    >>> robust([Stage.whole({"a": times}, packets) for times, packets in enumerate([2, 4, 6, 8, 30, 12], 1)])
    {'a': 2.01}
    """
    weights = np.ones(len(stages))
    for _ in range(ROUNDS):
        prices = Prices(0.0, 0.0, fitted(stages, weights.tolist(), known))
        errors = [(prices.packets(stage.occurs) - stage.packets) / stage.of for stage in stages]
        weights = 1 / np.maximum(np.abs(errors), NEAR)
    return fitted(stages, weights.tolist(), known)


def unseen(stages: Sequence[Stage], known: Mapping[str, float]) -> dict[str, float]:
    """Return the known prices of parts that no stage has.

    >>> unseen([Stage.whole({"a": 1, "b": 0}, 3)], {"a": 2.0, "b": 1.0})
    {'b': 1.0}
    """
    seen = {name for stage in stages for name, times in stage.occurs.items() if times}
    return {name: price for name, price in known.items() if name not in seen}


DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
KERNELS = ("plain", "nest", "lanes", "scalar")
OF_LANES = (
    *("of_pixels", "lane_load", "lane_run", "lane_loop", "lane_row", "lane_channel", "across"),
    *("lane_scale", "lane_even", "lane_away", "lane_offset"),
    *("dealt", "merged", "plane", "phased", "ring_step", "ring_made", "ring_read", "ring_row", "ring_handed"),
    *("output_part", "block_start", "strip_pair", "edge_pair", "strip_read", "strip_row", "strip_output"),
    *("strip_write", "strip_asked", "strip_started", "strip_handed", "block_handed"),
)
"""The parts of convs whose lanes are pixels, and of what plans in rings and in strips do beside."""
HAVE_LANES = ("of_pixels", "ring_row", "ring_read", "strip_read", "strip_asked")
"""Of these, the parts that say whether a case has such a conv, or such a plan."""
ARCH = "v67"
"""The newest instruction set that the simulator runs."""
OF_SCALAR_CONVS = 36
"""How many drawn cases, some convs of which scalar code serves, prices are fitted to."""
MOST_PACKETS = 130_000
"""Cases that the known prices take to be longer are left out: as many short ones tell more."""
OF_SCALAR_CODE = 30
"""How many more cases the prices of scalar code are fitted to; they are compared with as many others."""
LEAST_PACKETS = 100
"""Stages of fewer packets say little of what scalar code takes."""
FITTED_SEED = 0
"""The seed of the cases that prices are fitted to: no other bench judges them by it."""
OF_KINDS = (
    (nest_cases, 160),
    (sweep_cases, 120),
    (depthwise_cases, 160),
    (few_channel_cases, 180),
    (grouped_cases, 120),
    (dense_cases, 160),
    (strip_cases, 60),
)
"""Streams of cases of HVX kernels, and how many are drawn of each."""
JOURNAL = Path("build/rates.journal")


def packets(case: Case, runs: Runs) -> int:
    """Return the packets that a case takes on the simulator; its result has to be right."""
    counted = runs.of(case)
    assert counted.passed, case.to_toml()
    return counted.packets


def stages_of(case: Case, runs: Runs) -> dict[str, Stage]:
    """Return the stages of a case by name, none if they weren't told; an error is a share of the mean of stage and run.

    A run with marks tells which shares of the packets the stages take; a run without marks tells how many there are.
    """
    counted = runs.by_stages(case)
    assert counted.passed, case.to_toml()
    stages, parts = counted.stages or {}, parts_of_stages(Planned.of(case).axes)
    marked, found = sum(stages.values()), {}
    for name in sorted(parts.keys() | stages.keys()) if stages else ():
        took = stages.get(name, 0) * counted.packets / marked
        found[name] = Stage(parts.get(name, {}), took, sqrt(took * counted.packets) if took else counted.packets)
    return found


def stages_and_whole(case: Case, runs: Runs) -> Iterator[Stage]:
    """Yield the stages of a case, and its whole run."""
    yield from stages_of(case, runs).values()
    yield Stage.whole(nest_parts(Planned.of(case).axes), runs.by_stages(case).packets)


def by_kernel(case: Case, runs: Runs, kernel: Kernel) -> Iterator[Stage]:
    """Yield the stages of a case in which the scalar code of a conv runs (`plain`), or all others (`hvx`)."""
    by_scalar_code = {f"conv {index}" for index, used in enumerate(case.kernels, 1) if used.used == "plain"}
    for name, stage in stages_of(case, runs).items():
        if (name in by_scalar_code) == (kernel == "plain"):
            yield stage


def cases_of_hvx() -> list[Case]:
    """Return the cases that the prices of HVX kernels are fitted to: each kind of kernel has some of its own."""
    known = rates(ARCH)
    cases = (case for stream, count in OF_KINDS for case in islice(stream(FITTED_SEED), count))
    return [case for case in cases if known.packets(Planned.of(case)) <= MOST_PACKETS]


def cases_of_scalar_code() -> tuple[list[Case], list[Case]]:
    """Cases of which scalar code serves a conv: those that stages are told of, and those that are fitted as wholes."""
    return [*islice(scalar_cases(FITTED_SEED), OF_SCALAR_CONVS)], [
        *islice(mixed_cases(FITTED_SEED), 2 * OF_SCALAR_CODE)
    ]


def error(modelled: Integers, counted: Sequence[int]) -> float:
    """Return how far nine of ten cases are off at most, as a share of the packets that they take."""
    return float(np.quantile(np.abs(modelled / np.array(counted) - 1), NINE_OF_TEN))


def plain_lines(dtype: Dtype, runs: Runs) -> list[str]:
    """Return the lines of the machine's file for plain kernels of one dtype, fitted anew."""
    cases = [*plain_cases(dtype)]
    works = [Planned.of(case).nest_work for case in cases]
    occurs = [{"mac": sum(work.macs.values()), "byte": sum(work.traffic_bytes.values())} for work in works]
    counted = [packets(case, runs) for case in cases]
    prices = fitted([*map(Stage.whole, occurs, counted)])
    modelled = np.array([sum(prices[name] * parts[name] for name in prices) for parts in occurs])
    rates = {"macs_per_packet": 1 / prices["mac"], "copied_bytes_per_packet": 1 / prices["byte"]}
    named = {**rates, "error": error(modelled, counted)}
    return [f"[kernels.{dtype}]", *(f"{name} = {value:.3g}" for name, value in named.items())]


def priced(cases: Sequence[Case], mixed: Sequence[Case], runs: Runs, known: Prices) -> Prices:
    """Return the prices of HVX kernels, fitted to cases, and to what scalar code leaves of mixed ones.

    The known error stays until `reports.model` finds another.
    """
    stages = [stage for case in cases for stage in stages_and_whole(case, runs)]
    stages += [stage for case in mixed for stage in by_kernel(case, runs, "hvx")]
    scalar = {name: price for name, price in known.parts.items() if name in SCALAR_PARTS}
    return replace(known, parts=unseen(stages, known.parts) | robust(stages, known.parts) | scalar)


def lanes_priced(cases: Sequence[Case], runs: Runs, known: Prices) -> Prices:
    """Return the known prices, with new ones for `OF_LANES`, fitted to what others leave of the stages that have them.

    Of the cases those count that have such a conv, or such a plan.
    """
    others = replace(known, parts={name: each for name, each in known.parts.items() if name not in OF_LANES})
    old = {name: each for name, each in known.parts.items() if name in OF_LANES}
    have = [case for case in cases if any(nest_parts(Planned.of(case).axes).get(name) for name in HAVE_LANES)]
    stages = [_of_lanes(stage, others) for case in have for stage in stages_and_whole(case, runs)]
    stages = [stage for stage in stages if stage.occurs]
    return replace(known, parts=others.parts | unseen(stages, old) | robust(stages, old))


def _of_lanes(stage: Stage, others: Prices) -> Stage:
    """Return a stage without the parts of other prices, and what these leave of its packets."""
    own = {name: stage.occurs[name] for name in OF_LANES if stage.occurs.get(name)}
    return replace(stage, occurs=own, packets=stage.packets - others.packets(stage.occurs))


def scalar_priced(staged: Sequence[Case], mixed: Sequence[Case], runs: Runs, known: Prices) -> Prices:
    """Return the known prices, with new ones for scalar code, and their error on half of the mixed cases.

    The prices are fitted to the convs of scalar code in the staged cases, and to the other half of the mixed ones.
    """
    half = len(mixed) // 2
    occurs, counted = [nest_parts(Planned.of(case).axes) for case in mixed], [packets(case, runs) for case in mixed]
    others = replace(known, parts={name: each for name, each in known.parts.items() if name not in SCALAR_PARTS})
    stages = [Stage.whole(each.occurs, each.packets) for case in staged for each in by_kernel(case, runs, "plain")]
    for parts, count in zip(occurs[:half], counted[:half], strict=True):
        stages.append(Stage(_of_scalar_code(parts), count - others.packets(parts), count))
    stages = [replace(stage, occurs=_of_scalar_code(stage.occurs)) for stage in stages if stage.packets > LEAST_PACKETS]
    parts = others.parts | unseen(stages, known.parts) | robust(stages, known.parts)
    prices = replace(known, parts=parts)
    modelled = np.array([prices.packets(parts) for parts in occurs[half:]])
    return replace(prices, scalar_error=error(modelled, counted[half:]))


def _of_scalar_code(occurs: Mapping[str, float]) -> dict[str, float]:
    return {name: occurs[name] for name in SCALAR_PARTS if name in occurs}


def lines_of(name: str, prices: Prices) -> list[str]:
    """Return the lines of the machine's file for HVX kernels, and for scalar code beside them."""
    errors = [f"error = {prices.error:.3g}", f"scalar_error = {prices.scalar_error:.3g}"]
    kinds = [f"[{name}.errors]", *(f'"{kind}" = {share:.3g}' for kind, share in prices.errors.items())]
    lines = [f"[{name}]", *errors, *kinds, f"[{name}.parts]"]
    return [*lines, *(f"{part} = {price}" for part, price in sorted(prices.parts.items()))]


def kept_lines(rate: PlainRates, dtype: str) -> list[str]:
    """Return the lines of the machine's file for plain kernels of one dtype, as they are known."""
    return [f"[kernels.{dtype}]", *(f"{name} = {value:.3g}" for name, value in vars(rate).items())]


def asked_kernels(arguments: Sequence[str]) -> Sequence[str]:
    """Return the kernels whose rates a command line asks for; all where it names none.

    >>> asked_kernels([]), asked_kernels(["nest"])
    (('plain', 'nest', 'lanes', 'scalar'), ['nest'])
    """
    parser = argparse.ArgumentParser(prog="reports.rates", description=__doc__)
    # argparse compares the list of none with the choices, too.
    parser.add_argument("kernels", nargs="*", choices=[[], *KERNELS], help="to measure; others stay as known")
    return parser.parse_args(arguments).kernels or KERNELS


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the file."""
    asked = asked_kernels(arguments)
    known, isa = rates(ARCH), find_qemu().isa
    with Runs.opened(JOURNAL) as runs:
        staged, mixed = cases_of_scalar_code() if {"nest", "scalar"} & {*asked} else ([], [])
        nest = priced(cases_of_hvx(), staged, runs, known.nest) if "nest" in asked else known.nest
        nest = lanes_priced(cases_of_hvx(), runs, nest) if "lanes" in asked else nest
        nest = scalar_priced(staged, mixed, runs, nest) if "scalar" in asked else nest
        plain = {
            dtype: plain_lines(dtype, runs) if "plain" in asked else kept_lines(known.plain(dtype), dtype)
            for dtype in DTYPES
        }
    write(isa, nest, [line for lines in plain.values() for line in lines])
    return 0


def write_errors(share: float, by_kind: Mapping[str, float]) -> None:
    """Write how far nine of ten runs of HVX kernels are off, of all and by kind, rounded up, and nothing else."""
    nest = replace(rates(ARCH).nest, error=_up(share), errors={kind: _up(each) for kind, each in by_kind.items()})
    text = machine_file(ARCH).read_text(encoding="utf-8")
    first, end = text.index("[nest]"), text.index("[kernels.")
    lines = "\n".join(lines_of("nest", nest)) + "\n"
    machine_file(ARCH).write_text(text[:first] + lines + text[end:], encoding="utf-8")


def _up(share: float) -> float:
    return ceil(share * 1000) / 1000


def write(isa: str, nest: Prices, plain: Sequence[str]) -> None:
    """Write the file of the machine."""
    drawn, scalar = sum(count for _, count in OF_KINDS), OF_SCALAR_CONVS + OF_SCALAR_CODE
    how = f"plain kernels fitted to 20 cases a dtype, HVX to those of {drawn} drawn cases that are short, "
    how += f"scalar code to {scalar}"
    lines = [
        "# Packets of the simulator: what a thread issues, no cycles. Written by `reports.rates`, but for the",
        "# error of the nest, which is that of reports/model.csv: `reports.model` writes it.",
        "# error: nine of ten runs differ from the model by no more than this share of what they take.",
        f'source = "measured on the simulator as {isa}: {how}"',
        *lines_of("nest", nest),
        *plain,
    ]
    machine_file(ARCH).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
