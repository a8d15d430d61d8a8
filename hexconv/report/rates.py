"""The rates of the latency model, fitted to runs on the simulator, as a file of `hexconv/search/machines`.

    python -m hexconv.report.rates > hexconv/search/machines/v67.toml

Plain kernels: by dtype, the two rates that fit the packets of 20 cases best (least squares of relative errors), and how
far nine of ten of them are off. HVX kernels: the prices of their parts that fit drawn cases best, none below 0, and how
far nine of ten cases of another draw are off.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from hexconv.analyze import planned_work
from hexconv.analyze.hvx_packets import hvx_parts
from hexconv.lower import lower_case
from hexconv.report.rate_cases import hvx_cases, plain_cases
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.search.exact import Integers
from hexconv.spec import Case
from hexconv.spec.chain import Dtype

DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
FITTED, HELD = 40, 50
"""Drawn cases that prices are fitted to, and that they are held against."""

NINE_OF_TEN = 0.9


def packets(case: Case) -> int:
    """What a case takes on the simulator; its result is right."""
    result = run_case(case, lower_case(case), Simulator())
    assert result.check.passed
    assert result.counts
    return result.counts.packets


def fitted(occurs: Sequence[Mapping[str, float]], counted: Sequence[int]) -> dict[str, float]:
    """The prices of parts, none below 0, whose sums come nearest to what cases took, in relative terms.

    >>> fitted([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1, "c": 1}], [8, 7, 6])
    {'a': 2.0, 'b': 3.0, 'c': 4.0}
    >>> fitted([{"a": 1, "b": 1}, {"a": 1, "b": 2}], [10, 9])
    {'a': 9.45}
    """
    names = sorted({name for parts in occurs for name in parts})
    while True:
        shares = np.array([[parts.get(name, 0) for name in names] for parts in occurs]) / np.array(counted)[:, None]
        prices = np.linalg.lstsq(shares, np.ones(len(counted)), rcond=None)[0]
        if not len(prices) or prices.min() > 0:
            return {name: float(f"{price:.3g}") for name, price in zip(names, prices, strict=True)}
        names.pop(int(prices.argmin()))


def error(modelled: Integers, counted: Sequence[int]) -> float:
    """How far nine of ten cases are off, as a share of what they take."""
    return float(np.quantile(np.abs(modelled / np.array(counted) - 1), NINE_OF_TEN))


def plain_lines(dtype: Dtype) -> list[str]:
    """The table of one dtype."""
    cases = [*plain_cases(dtype)]
    works = [planned_work(case.chain, case.settled) for case in cases]
    occurs = [{"mac": sum(work.macs.values()), "byte": sum(work.traffic_bytes.values())} for work in works]
    counted = [packets(case) for case in cases]
    prices = fitted(occurs, counted)
    modelled = np.array([sum(prices[name] * parts[name] for name in prices) for parts in occurs])
    rates = {"macs_per_packet": 1 / prices["mac"], "copied_bytes_per_packet": 1 / prices["byte"]}
    named = {**rates, "error": error(modelled, counted)}
    return [f"[kernels.{dtype}]", *(f"{name} = {value:.3g}" for name, value in named.items())]


def hvx_lines() -> list[str]:
    """The tables of the HVX kernels."""
    draws = [[*islice(hvx_cases(seed), count)] for seed, count in enumerate((FITTED, HELD))]
    [known, others] = [[hvx_parts(case.chain, case.settled) for case in draw] for draw in draws]
    [counted, held] = [[packets(case) for case in draw] for draw in draws]
    prices = fitted(known, counted)
    modelled = np.array([sum(prices.get(name, 0) * times for name, times in parts.items()) for parts in others])
    lines = ["[hvx]", f"error = {error(modelled, held):.3g}", "[hvx.parts]"]
    return [*lines, *(f"{name} = {price}" for name, price in prices.items())]


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the file."""
    argparse.ArgumentParser(prog="hexconv.report.rates", description=__doc__).parse_args(arguments)
    isa = find_qemu().isa
    print("# Packets of the simulator: what a thread issues, no cycles. Written by hexconv.report.rates.")
    print("# error: nine of ten runs differ from the model by no more than this share of what they take.")
    how = f"plain kernels fitted to 20 cases a dtype, hvx to {FITTED} drawn cases and held against {HELD} others"
    print(f'source = "measured on the simulator as {isa}: {how}"')
    print(*hvx_lines(), sep="\n")
    for dtype in DTYPES:
        print(*plain_lines(dtype), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
