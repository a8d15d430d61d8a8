"""Write what runs counted as CSV: whole numbers and verdicts only, so that two runs write the same file."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.run.copies import CopyCounts
from hexconv.run.measure import Run
from hexconv.run.simulator.threads import Threads
from hexconv.spec import Case, KernelChoice
from hexconv.spec.kernel import kernel_columns

COLUMNS = (
    "case",
    "target",
    "weights",  # the file that the weights came from, or `random`
    "input",  # the file that the input came from, or `random`
    "passed",
    "packets",  # packets of the kernel alone
    "instructions",
    "hvx_instructions",
    "needed_macs",  # the MACs of the outputs that are read, each output counted once
    "macs_per_packet",  # needed MACs per packet, so recompute makes it smaller
    "issue_slots",  # packets plus stalls
    "stalls",  # issue slots lost to stalls, by cause
    "stall_share",  # stalls over packets
    "macs_per_slot",
    "vector_loads",
    "scalar_loads",
    "vtcm_scalar_loads",  # scalar loads that read VTCM; empty for kernels without vectors
    "copies",  # asynchronous copies
    "copies_2d",  # asynchronous copies of more than one row
    "copy_bytes",  # bytes of one row of a copy: the least, the median, the most
    "vtcm_bytes",  # the most VTCM in use at a time
    "kernel_asked",  # the kernel that the plan states; `none` where it states none
    "kernel_used",
    "kernel_why",
)


def run_row(case: Case, result: Run) -> dict[str, Any]:
    """A run as a row for JSON: fill, verdict, `seconds`; a run on the simulator also has packets, slots and MACs.

    >>> from hexconv.run.check import Check
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> case = Case("small", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan())
    >>> row = run_row(case, Run("small", "llvm", "most", Check(True, 0.0, 0.0, True), 0.5, None, None))
    >>> list(row)[:6]
    ['case', 'target', 'fill', 'weights', 'input', 'passed']
    >>> list(row)[6:]
    ['max_abs_error', 'max_rel_error', 'fringe_is_zero', 'seconds', 'kernels', 'copies', 'copies_2d', 'copy_bytes']
    """
    kernels = [asdict(choice) for choice in result.kernels]
    asked = {"case": result.case, "target": result.target, "fill": result.fill}
    asked |= {"weights": result.weights, "input": result.input}
    row = {**asked, **asdict(result.check), "seconds": result.seconds, "kernels": kernels, **_copies(result.copies)}
    if result.counts is None:
        return row
    needed = needed_macs(case.chain)
    rate = {"needed_macs": needed, "macs_per_packet": needed / result.counts.packets}
    vtcm = {} if result.vtcm_bytes is None else {"vtcm_bytes": result.vtcm_bytes}
    threads = _threads(result.threads, result.counts.packets)
    return {**row, **asdict(result.counts), **rate, **slots_row(result, needed), **vtcm, **threads}


def _threads(threads: Threads | None, packets: int) -> dict[str, Any]:
    """The packets, slots and waits of each thread; a kernel without threads has the packets of its one thread."""
    if threads is None:
        return {"threads": (packets,)}
    slots = {"thread_slots": threads.slots} if threads.slots else {}
    return {"threads": threads.packets, **slots, "thread_waits": threads.waits}


def _copies(copies: CopyCounts | None) -> dict[str, Any]:
    """The figures of the copy engine; none where the kernel itself copies."""
    if copies is None:
        return {"copies": 0, "copies_2d": 0, "copy_bytes": None}
    return {"copies": copies.pieces, "copies_2d": copies.pieces_2d, "copy_bytes": copies.copy_bytes}


def slots_row(result: Run, needed_macs: int) -> dict[str, Any]:
    """The figures on issue slots for JSON; nothing where they were not asked for."""
    slots = result.slots
    if slots is None:
        return {}
    return {
        "issue_slots": slots.issue_slots,
        "stalls": slots.stalls,
        "stall_share": slots.stall_share,
        "macs_per_slot": needed_macs / slots.issue_slots,
        "vector_loads": slots.vector_loads,
        "scalar_loads": slots.scalar_loads,
        "vtcm_scalar_loads": slots.vtcm_scalar_loads,
    }


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """The entries of a row that hold several numbers, each written as one cell."""
    sizes = {"copy_bytes": " ".join(map(str, row["copy_bytes"]))} if row.get("copy_bytes") else {}
    return sizes | ({"stalls": causes(row["stalls"])} if "stalls" in row else {})


def causes(stalls: dict[str, int]) -> str:
    """Stalls as one cell of a table.

    >>> causes({"load to multiply": 7, "permute to permute": 2})
    'load to multiply 7, permute to permute 2'
    """
    return ", ".join(f"{cause} {slots}" for cause, slots in stalls.items())


def run_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The CSV: one row a run; a figure that a run didn't count is left empty."""
    told = [{**row, **_cells(row)} for row in rows]
    told = [{**row, **kernel_columns([KernelChoice(**choice) for choice in row.get("kernels", ())])} for row in told]
    frame = pd.DataFrame(told).reindex(columns=list(COLUMNS))
    counts = ["packets", "instructions", "hvx_instructions", "needed_macs", "issue_slots"]
    counts += ["vector_loads", "scalar_loads", "vtcm_scalar_loads", "copies", "copies_2d", "vtcm_bytes"]
    return frame.astype(dict.fromkeys(counts, "Int64")).to_csv(index=False, lineterminator="\n", float_format="%.3f")
