"""`python -m reports.hvx`: measures HVX kernels and Halide's in one run, and prints their tables (`make bench`).

Packets count everything that the kernel does: packing, staging of filters, requantisation, write-back. MACs count what
the definition of the chain's output needs. A packet is what a thread issues at once; issue slots are packets and
the stalls that public rules say (`hexconv/lower/stalls.py`). Neither is a cycle.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.errors import HexconvError
from hexconv.lower import lower_case
from hexconv.report.check_tables import RUN_COLUMNS, causes
from hexconv.report.tables import LIMIT, limit
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_columns
from reports.halide import pipelines

Row = dict[str, Any]

PUBLISHED = {
    "a-shift": 226.66,
    "a-multiplier": 211.31,
    "a-filter-zero": 186.41,
    "a-int8-filters": 186.41,
    "b-shift": 246.36,
    "b-multiplier": 244.96,
    "b-filter-zero": 230.31,
    "b-int8-filters": 230.31,
}
"""Halide's MACs per packet in the comparison of tools that this project set out to beat.

That comparison measured int8 filters, which Halide gets as uint8 with a zero point: for Halide both are the same work.
"""

FAIR = 0.98
"""Halide has to reach this share of the published figure, or it isn't measured at its best."""

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
    "halide_packets": "the packets of Halide's kernel for the same chain; empty if there is no Halide schedule for it",
    "halide_macs_per_packet": "needed MACs per packet of Halide's kernel",
    "halide_published": "the MACs per packet of Halide's kernel in the comparison that this project set out to beat; "
    "empty if the case isn't part of it",
    "halide_issue_slots": "the packets and stalls of Halide's kernel together",
    "halide_stall_share": "stalls per packet of Halide's kernel",
    "halide_macs_per_slot": "needed MACs per issue slot of Halide's kernel",
    "ratio": "our MACs per issue slot over Halide's",
}
"""Every column of the table, with what it holds."""
PEER = tuple(name for name in COLUMNS if name.startswith("halide_"))
"""The columns of Halide's kernel, in order."""


def row(path: Path, known: Mapping[str, Row] = MappingProxyType({}), builds: int = 0) -> Row:
    """Measure one case: our kernel and, if there is a schedule, Halide's; both results have to be exact.

    Args:
        path: the case.
        known: the rows of an earlier table, by case. Where builds of Halide's kernel differ, its figures stay.
        builds: how many builds of such a kernel to measure, for the best of them; 0 takes what is known.

    Raises:
        ToolMissing: no Halide, no simulator.
        RunFailed: a run failed, or Halide's result differs from numpy's.
    """
    case = Case.load(path)
    ours = own_row(case)
    schedule = pipelines.SCHEDULES.get(case.name)
    if schedule is None:
        return ours
    stays = pipelines.varies(schedule) and not builds and case.name in known
    peer = {name: known[case.name][name] for name in PEER} if stays else _peer(case, schedule, builds)
    ratio = round(peer["halide_issue_slots"] / ours["issue_slots"], 3)
    return {**ours, **peer, "ratio": ratio}


def own_row(case: Case) -> Row:
    """Run one case; return the figures of our kernel, and the verdict."""
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


def _peer(case: Case, schedule: pipelines.AnySchedule, builds: int) -> Row:
    """Measure Halide's kernel."""
    slots = pipelines.measured(case.chain, schedule, builds=builds if pipelines.varies(schedule) else 0)
    macs = needed_macs(case.chain)
    figures = (
        slots.packets,
        round(macs / slots.packets, 2),
        PUBLISHED.get(case.name),
        slots.issue_slots,
        round(slots.stall_share, 4),
        round(macs / slots.issue_slots, 2),
    )
    return dict(zip(PEER, figures, strict=True))


def unfair(rows: Sequence[Row]) -> list[str]:
    """Return a line for each case in which Halide falls behind what it is known to reach."""
    return [
        f"{row['case']}: Halide reached {row['halide_macs_per_packet']}, published are {row['halide_published']}"
        for row in rows
        if row.get("halide_published") and row["halide_macs_per_packet"] < FAIR * row["halide_published"]
    ]


HIDDEN = (  # these columns are in the file, and too wide to print
    *("chain", "kernel", "passed", "packets", "hvx_instructions", "macs", "halide_packets", "halide_published"),
    *("issue_slots", "stalls", "vector_loads", "copies", "halide_issue_slots"),
)


def main(arguments: Sequence[str]) -> int:
    """Print the tables and write them; exit 1 if a result is wrong or Halide isn't measured at its best."""
    parser = argparse.ArgumentParser(prog="reports.hvx", description="HVX kernels beside Halide's.")
    parser.add_argument("--hvx", nargs="+", type=Path, required=True, help="cases for Hexagon")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="where hvx.csv and hvx_int16.csv go")
    parser.add_argument(
        "--builds",
        type=int,
        default=0,
        help="measure kernels of Halide that differ from build to build in so many builds, and take the best; "
        "0: what the table has of them stays",
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except HexconvError as error:
        print(f"hexconv: {error}", file=sys.stderr)
        return error.exit_code


def hvx_table(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the table of the cases on Hexagon; counts stay whole numbers where Halide has no figure."""
    return pd.DataFrame(rows).astype({"halide_packets": "Int64", "halide_issue_slots": "Int64"})


def _known(table: Path) -> dict[str, Row]:
    """Return the rows of an earlier table, by case."""
    return pd.read_csv(table).set_index("case").to_dict("index") if table.exists() else {}


def _shown(table: pd.DataFrame) -> str:
    """Return a table as people read it, without columns that are empty throughout."""
    return table.drop(columns=list(HIDDEN), errors="ignore").dropna(axis=1, how="all").to_string(index=False, na_rep="")


def _run(options: argparse.Namespace) -> int:
    known = _known(options.reports / "hvx.csv")
    packets = [row(path, known, options.builds) for path in options.hvx]
    hvx = hvx_table(packets)
    of_bytes = [limit(Case.load(path).chain) == LIMIT for path in options.hvx]
    narrow, wide = hvx.loc[of_bytes], hvx.loc[[not each for each in of_bytes]]
    print(
        f"Hexagon, MACs per packet ({LIMIT} is two vrmpy in every packet) and issue slot; the ratio is of MACs per slot"
    )
    print(_shown(narrow))
    print(f"\nint16 (two vrmpy in every packet: {LIMIT // 2}, {LIMIT // 4} with int16 filters)\n{_shown(wide)}")
    options.reports.mkdir(parents=True, exist_ok=True)
    narrow.to_csv(options.reports / "hvx.csv", index=False)
    wide.to_csv(options.reports / "hvx_int16.csv", index=False)
    complaints = unfair(packets)
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 0 if hvx["passed"].all() and not complaints else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
