"""What runs counted, as CSV: whole numbers and verdicts only, so that two runs write the same file."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.run.measure import Run
from hexconv.spec import Case, KernelChoice
from hexconv.spec.kernel import kernel_columns

COLUMNS = (
    "case",
    "target",
    "weights",  # the file that they came from, or `random`
    "input",  # likewise
    "passed",
    "packets",  # of the kernel alone
    "instructions",
    "hvx_instructions",
    "needed_macs",  # of the outputs that are read, each once
    "macs_per_packet",  # needed, not done: recomputing makes it smaller
    "vtcm_bytes",  # the most in use at a time
    "kernel_asked",  # in the plan; none where it states none
    "kernel_used",
    "kernel_why",
)


def run_row(case: Case, result: Run) -> dict[str, Any]:
    """A result in the words of the contract: fill, verdict, `seconds`; of the simulator also what it counted.

    >>> from hexconv.run.check import Check
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> case = Case("small", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan())
    >>> row = run_row(case, Run("small", "llvm", "most", Check(True, 0.0, 0.0, True), 0.5, None, None))
    >>> list(row)[:6]
    ['case', 'target', 'fill', 'weights', 'input', 'passed']
    >>> list(row)[6:]
    ['max_abs_error', 'max_rel_error', 'fringe_is_zero', 'seconds', 'kernels']
    """
    kernels = [asdict(choice) for choice in result.kernels]
    asked = {"case": result.case, "target": result.target, "fill": result.fill}
    asked |= {"weights": result.weights, "input": result.input}
    row = {**asked, **asdict(result.check), "seconds": result.seconds, "kernels": kernels}
    if result.counts is None:
        return row
    needed = needed_macs(case.chain)
    rate = {"needed_macs": needed, "macs_per_packet": needed / result.counts.packets}
    vtcm = {} if result.vtcm_bytes is None else {"vtcm_bytes": result.vtcm_bytes}
    return {**row, **asdict(result.counts), **rate, **vtcm}


def run_csv(rows: Sequence[dict[str, Any]]) -> str:
    """One row a run; what a run didn't count is left empty."""
    told = [{**row, **kernel_columns([KernelChoice(**choice) for choice in row.get("kernels", ())])} for row in rows]
    frame = pd.DataFrame(told).reindex(columns=list(COLUMNS))
    counts = ["packets", "instructions", "hvx_instructions", "needed_macs", "vtcm_bytes"]
    return frame.astype(dict.fromkeys(counts, "Int64")).to_csv(index=False, lineterminator="\n", float_format="%.3f")
