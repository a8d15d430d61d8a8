"""MACs and copied bytes per packet of the kernels on the simulator, as a file of `hexconv/search/machines`.

    python -m hexconv.report.rates schedules/hvx/*.toml > hexconv/search/machines/v67.toml

Plain kernels: by dtype, the two rates that fit the packets of 20 cases best (least squares of relative errors), from
single convs that mostly copy (few output channels) to pairs that mostly multiply, each under several plans. HVX
kernels: the median of the needed MACs per packet of the cases named.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from hexconv.analyze import needed_macs, planned_work
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.chain import INTEGER_RANGE, Dtype

DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
LARGEST_L1 = 2**16 - 1  # of filters over int16, so that an int32 holds all sums
PLAIN = Plan(kernel="plain")
LEAST = replace(PLAIN, k_split=2, h_split=2, order="h_outer", halo="roll", filters="resident")
PLANS = (PLAIN, replace(PLAIN, order="h_outer"), replace(PLAIN, filters="resident"), LEAST)


def plain_cases(dtype: Dtype) -> Iterator[Case]:
    """Cases of the plain kernels, from mostly copying to mostly multiplying."""
    requantize = Requantize(multiplier=1 << 30, shift=-7) if dtype in INTEGER_RANGE else None
    filter_l1 = LARGEST_L1 if dtype == "int16" else None
    for channels, kernel, plan in ((c, k, p) for c in (1, 32, 64) for k in (1, 3) for p in (PLAIN, LEAST)):
        conv = Conv2d(out_channels=channels, kernel=(kernel, kernel), requantize=requantize, filter_l1=filter_l1)
        yield _case(Chain(input=(1, 26, 26, 64), dtype=dtype, conv=(conv,)), plan)
    for kernel, plan in ((k, p) for k in (1, 3) for p in PLANS):
        conv = Conv2d(out_channels=64, kernel=(kernel, kernel), requantize=requantize, filter_l1=filter_l1)
        yield _case(Chain(input=(1, 20, 20, 64), dtype=dtype, conv=(conv, conv)), plan)


def _case(chain: Chain, plan: Plan) -> Case:
    """A case with no split larger than the chain has blocks."""
    channels = -(-max(conv.out_channels for conv in chain.conv) // 32)
    return Case("rates", chain, replace(plan, k_split=min(plan.k_split, channels)))


def packets(case: Case) -> int:
    """What a case takes on the simulator; its result is right."""
    result = run_case(case, lower_case(case), Simulator())
    assert result.check.passed
    assert result.counts
    return result.counts.packets


def rates_of(cases: Sequence[Case]) -> tuple[float, float]:
    """MACs and copied bytes per packet that fit the packets of some cases best."""
    works = [planned_work(case.chain, case.settled) for case in cases]
    figures = np.array([[sum(work.macs.values()), sum(work.traffic_bytes.values())] for work in works], float)
    counted = np.array([packets(case) for case in cases], float)
    per_mac, per_byte = np.linalg.lstsq(figures / counted[:, None], np.ones(len(cases)), rcond=None)[0]
    return 1 / per_mac, 1 / per_byte


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the file."""
    parser = argparse.ArgumentParser(prog="hexconv.report.rates", description="Rates of the latency model.")
    parser.add_argument("hvx", nargs="+", type=Path, help="cases of the HVX kernels")
    hvx = [Case.load(path) for path in parser.parse_args(arguments).hvx]
    isa = find_qemu().isa
    print("# Packets of the simulator: what a thread issues, no cycles. Written by hexconv.report.rates.")
    how = f"plain kernels by least squares over 20 cases a dtype, hvx the median of {len(hvx)} cases"
    print(f'source = "measured on the simulator as {isa}: {how}"')
    print(f"hvx_macs_per_packet = {median(needed_macs(case.chain) / packets(case) for case in hvx):.1f}")
    for dtype in DTYPES:
        macs, copied = rates_of([*plain_cases(dtype)])
        print(f"[kernels.{dtype}]\nmacs_per_packet = {macs:.3g}\ncopied_bytes_per_packet = {copied:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
