"""What runs counted, as CSV: whole numbers and verdicts only, so that two runs write the same file."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

COLUMNS = (
    "case",
    "target",
    "passed",
    "packets",  # of the kernel alone
    "instructions",
    "hvx_instructions",
    "needed_macs",  # of the logical outputs, each once
    "macs_per_packet",  # needed, not done: recomputing makes it smaller
    "vtcm_bytes",  # the most in use at a time
)


def run_csv(rows: Sequence[dict[str, Any]]) -> str:
    """One row a run; what a run didn't count is left empty."""
    frame = pd.DataFrame(rows).reindex(columns=list(COLUMNS))
    counts = ["packets", "instructions", "hvx_instructions", "needed_macs", "vtcm_bytes"]
    return frame.astype(dict.fromkeys(counts, "Int64")).to_csv(index=False, lineterminator="\n", float_format="%.3f")
