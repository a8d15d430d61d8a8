"""Run cases on the simulator and print MACs per packet as a table or as CSV.

    python -m hexconv.report.packets schedules/hvx/*.toml

`make bench` writes the same for all of schedules/hvx, Halide beside it, to reports/hvx.csv and reports/hvx_int16.csv.

Packets count everything that the kernel does: packing, staging of filters, requantisation, write-back. MACs count what
the definition of the chain's output needs. A packet is what a thread issues at once; issue slots are packets and
the stalls that public rules say (`hexconv/lower/stalls.py`). Neither is a cycle.
"""

import argparse
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.lower import lower_case
from hexconv.report.check_tables import RUN_COLUMNS as RUN_COLUMNS
from hexconv.report.check_tables import causes
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain
from hexconv.spec.kernel_choice import kernel_columns

LIMIT = 256
"""MACs per packet: two vrmpy of 128, in the forms that every HVX from v60 on issues twice a packet.

A register pair's vrmpy of v65 and vrmpyz of v66 do more; no simulator that this project can use executes them.
"""

COLUMNS = {
    "case": RUN_COLUMNS["case"],
    "chain": "the shapes, convs and dtypes of the chain in one word",
    "kernel": RUN_COLUMNS["kernel_used"],
    "passed": "whether the output is numpy's answer, and zero where it has no element",
    "macs": RUN_COLUMNS["needed_macs"],
    "packets": RUN_COLUMNS["packets"],
    "hvx_instructions": "the HVX instructions in these packets",
    "macs_per_packet": RUN_COLUMNS["macs_per_packet"],
    "of_limit": (
        "`macs_per_packet` as a share of two vrmpy in every packet: 256 MACs a packet for bytes, 128 for int16 "
        "activations, 64 if filters are int16 too"
    ),
    "issue_slots": RUN_COLUMNS["issue_slots"],
    "stall_share": RUN_COLUMNS["stall_share"],
    "stalls": RUN_COLUMNS["stalls"],
    "macs_per_slot": RUN_COLUMNS["macs_per_slot"],
    "vector_loads": RUN_COLUMNS["vector_loads"],
    "vtcm_scalar_loads": "how many loads of scalar registers read VTCM; empty if they could not be counted",
    "copies": RUN_COLUMNS["copies"],
    "thread_packets": "the packets of each thread",
}
"""Every column of the table, with what it holds."""


def row(case: Case) -> dict[str, object]:
    """Run one case; return its row with the figures and the verdict."""
    result = run_case(case, lower_case(case), Simulator())
    slots = result.slots
    assert result.counts
    assert slots
    macs, packets = needed_macs(case.chain), result.counts.packets
    return {
        "case": case.name,
        "chain": case.chain.slug,
        "kernel": kernel_columns(case.kernels)["kernel_used"],
        "passed": result.check.passed,
        "macs": macs,
        "packets": packets,
        "hvx_instructions": result.counts.hvx_instructions,
        "macs_per_packet": round(macs / packets, 2),
        "of_limit": round(macs / packets / limit(case.chain), 3),
        "issue_slots": slots.issue_slots,
        "stall_share": round(slots.stall_share, 4),
        "stalls": causes(slots.stalls),
        "macs_per_slot": round(macs / slots.issue_slots, 2),
        "vector_loads": slots.vector_loads,
        "vtcm_scalar_loads": slots.vtcm_scalar_loads,
        "copies": result.copies.pieces if result.copies else 0,
        "thread_packets": " ".join(map(str, result.threads.packets if result.threads else (packets,))),
    }


def limit(chain: Chain) -> float:
    """The MACs per packet of two vrmpy in every packet; an int16 product takes one MAC for each pair of bytes."""
    bytes_of = [np.dtype(dtype).itemsize for dtype in (chain.dtype, chain.dtype_of_filters)]
    return LIMIT / prod(bytes_of) if chain.is_integer else LIMIT


def main(arguments: Sequence[str]) -> int:
    """Print the table; exit 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="hexconv.report.packets", description="MACs per packet on the simulator.")
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    table = pd.DataFrame([row(Case.load(path)) for path in options.cases])
    print(table.drop(columns="chain").to_string(index=False))
    if options.csv:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(options.csv, index=False)
    return 0 if table["passed"].all() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
