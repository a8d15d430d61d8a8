"""The rows of a sweep as one tidy table."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hexconv.spec import Plan
from hexconv.sweep.columns import plan_columns

WHAT = ("case", "target", "status", "reason")
CHAIN = ("chain", "input", "dtype", "filter_dtype", "zero_point", "input_layout", "output_layout", "convs")
PLAN = tuple(plan_columns(Plan()))
KERNELS = ("kernel_asked", "kernel_used", "kernel_why")
SIZES = ("predicted_bytes", "peak_bytes", "agrees", "demand_bytes", "capacity_bytes", "fits")
WORK = (
    "predicted_traffic_bytes",
    "traffic_bytes",
    "needed_traffic_bytes",
    "predicted_macs",
    "macs",
    "needed_macs",
    "recompute",  # MACs done over MACs needed, of the closed form
)
RUN = ("passed", "max_abs_error", "max_rel_error", "fringe_is_zero")
COUNTS = (
    *("packets", "instructions", "hvx_instructions", "macs_per_packet", "vtcm_bytes"),
    *("issue_slots", "stalls", "macs_per_slot", "vector_loads"),  # stalls: slots that are lost
)
SECONDS = ("seconds", "elapsed_seconds")  # seconds of the kernel, and of all work for the row

COLUMNS = (*WHAT, *CHAIN, *PLAN, *KERNELS, *SIZES, *WORK, *RUN, *COUNTS, *SECONDS)
WHOLE = (
    *("zero_point", "rows", "w_split"),
    *(knob for knob, value in plan_columns(Plan()).items() if isinstance(value, int)),
    *(name for name in COLUMNS if name.endswith(("_bytes", "macs", "packets", "instructions")) and "per" not in name),
    *("issue_slots", "stalls", "vector_loads"),
)
FLAGS = ("agrees", "fits", "passed", "fringe_is_zero")


def sweep_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the table, with one row per case and target; a column that a row doesn't have is left empty."""
    frame = pd.DataFrame(rows).reindex(columns=list(COLUMNS)).replace("", pd.NA)
    dtypes = {**dict.fromkeys(COLUMNS, "string"), **dict.fromkeys(WHOLE, "Int64"), **dict.fromkeys(FLAGS, "boolean")}
    floats = ("recompute", "max_abs_error", "max_rel_error", "macs_per_packet", "macs_per_slot", *SECONDS)
    return frame.astype({**dtypes, **dict.fromkeys(floats, "Float64")})


def csv_of(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV."""
    return frame.to_csv(index=False, lineterminator="\n").encode()
