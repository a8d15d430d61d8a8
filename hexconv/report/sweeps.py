"""Read the tables of sweeps: what was measured of a case's plan with other splits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.errors import InputError
from hexconv.spec import Case
from hexconv.spec.document import check_regular

SPLITS = ("k_split", "h_split")
FIGURES = ("peak_bytes", "traffic_bytes", "macs", "needed_macs", "macs_per_packet")
NEEDED = ("chain", "status", *SPLITS, *FIGURES)


@dataclass(frozen=True)
class Measured:
    """The measured figures of one plan; None where a sweep has none.

    Attributes:
        footprint_bytes: the bytes that TVM allocated.
        traffic_bytes: the bytes that the lowered module copies, counted in it.
        recompute: the MACs counted in the lowered module over the MACs needed.
        macs_per_packet: the MACs per packet of a run on the simulator.
    """

    footprint_bytes: int | None = None
    traffic_bytes: int | None = None
    recompute: float | None = None
    macs_per_packet: float | None = None


BySplits = Mapping[tuple[int, int], Measured]
"""The measured figures by k_split and h_split."""


Row = Mapping[str, Any]


def read_sweeps(paths: Sequence[Path]) -> tuple[Row, ...]:
    """Read the rows that hold from all tables that a sweep wrote; an empty cell is None.

    Raises:
        InputError: a file can't be read, or is not a table of a sweep.
    """
    return tuple(row for path in paths for row in _read(path) if row["status"] == "holds")


def _read(path: Path) -> list[Row]:
    try:
        check_regular(path)
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"a table that can't be read ({error})", "what 'hexconv sweep' wrote") from None
    if missing := [name for name in NEEDED if name not in frame.columns]:
        raise InputError(str(path), f"no column {missing[0]}", "what 'hexconv sweep' wrote")
    return json.loads(str(frame.to_json(orient="records")))


def measured_splits(case: Case, sweeps: Sequence[Row]) -> BySplits:
    """The figures of a case's chain under plans that differ only in the splits; rows of several targets make one entry.

    Kernels are compared by the one used, not by the one asked for.
    """
    knobs = {knob: value for knob, value in asdict(case.settled).items() if knob not in (*SPLITS, "vtcm_bytes")}
    knobs = {("kernel_used" if knob == "kernel" else knob): value for knob, value in knobs.items()}
    figures: dict[tuple[int, int], dict[str, Any]] = {}
    for row in sweeps:
        if row["chain"] == case.chain.slug and all(row.get(knob, value) == value for knob, value in knobs.items()):
            known = {name: row[name] for name in FIGURES if row[name] is not None}
            figures.setdefault((int(row["k_split"]), int(row["h_split"])), {}).update(known)
    return {splits: _measured(known) for splits, known in figures.items()}


def _measured(known: Row) -> Measured:
    """Return the figures of one plan."""
    macs, needed = known.get("macs"), known.get("needed_macs")
    return Measured(
        footprint_bytes=known.get("peak_bytes"),
        traffic_bytes=known.get("traffic_bytes"),
        recompute=macs / needed if macs and needed else None,
        macs_per_packet=known.get("macs_per_packet"),
    )
