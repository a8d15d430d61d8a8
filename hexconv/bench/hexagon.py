"""MACs per packet and issue slot on the simulator: our HVX kernels, and Halide's where there is a schedule for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hexconv.analyze import needed_macs
from hexconv.bench import halide
from hexconv.report import packets
from hexconv.spec import Case

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
    **packets.COLUMNS,
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
    ours: Row = packets.row(case)
    schedule = halide.SCHEDULES.get(case.name)
    if schedule is None:
        return ours
    stays = halide.varies(schedule) and not builds and case.name in known
    peer = {name: known[case.name][name] for name in PEER} if stays else _peer(case, schedule, builds)
    ratio = round(peer["halide_issue_slots"] / ours["issue_slots"], 3)
    return {**ours, **peer, "ratio": ratio}


def _peer(case: Case, schedule: halide.AnySchedule, builds: int) -> Row:
    """Measure Halide's kernel."""
    slots = halide.measured(case.chain, schedule, builds=builds if halide.varies(schedule) else 0)
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
