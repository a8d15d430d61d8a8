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

COLUMNS = {
    "case": "the name of the case",
    "target": "where the case ran: `hexagon` is the simulator, `llvm` this machine",
    "weights": "the file that the weights came from, or `random`",
    "input": "the file that the input came from, or `random`",
    "passed": "whether the output is numpy's answer (within a tolerance for floats), and zero where it has no element",
    "packets": "the packets that the kernel executes; a packet is 1 to 4 instructions that a thread issues at once",
    "instructions": "the instructions in these packets",
    "hvx_instructions": "the HVX instructions among them",
    "needed_macs": "the multiply-accumulates of the outputs that are read, each output counted once",
    "macs_per_packet": "needed MACs per packet; recomputed MACs don't count, but their packets do",
    "issue_slots": "packets plus stalls",
    "stalls": "the issue slots that are lost to stalls, for each cause",
    "stall_share": "stalls per packet",
    "macs_per_slot": "needed MACs per issue slot",
    "vector_loads": "how many loads of vector registers the kernel executes",
    "scalar_loads": "how many loads of scalar registers the kernel executes, from any memory",
    "vtcm_scalar_loads": "how many of the scalar loads read VTCM; empty if they could not be counted",
    "copies": "how many asynchronous copies the kernel starts; a copy of many rows counts once",
    "copies_2d": "how many of these copies have more than one row",
    "copy_bytes": "the bytes of one row of a copy: the least, the median and the most",
    "vtcm_bytes": "the most bytes of VTCM in use at a time, in granules of 2 KiB",
    "kernel_asked": "the kernel that the plan names; `none` if it names none",
    "kernel_used": "the kernel that each conv got; one word if all convs got the same",
    "kernel_why": "why each conv got its kernel",
}
"""Every column of the CSV, with what it holds."""


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
    """Return the figures of the copy engine; none where the kernel itself copies."""
    if copies is None:
        return {"copies": 0, "copies_2d": 0, "copy_bytes": None}
    return {"copies": copies.pieces, "copies_2d": copies.pieces_2d, "copy_bytes": copies.copy_bytes}


def slots_row(result: Run, needed_macs: int) -> dict[str, Any]:
    """Return the figures on issue slots for JSON; nothing where they were not asked for."""
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
    """Return the entries of a row that hold several numbers, each written as one cell."""
    sizes = {"copy_bytes": " ".join(map(str, row["copy_bytes"]))} if row.get("copy_bytes") else {}
    return sizes | ({"stalls": causes(row["stalls"])} if "stalls" in row else {})


def causes(stalls: dict[str, int]) -> str:
    """Stalls as one cell of a table.

    >>> causes({"load to multiply": 7, "permute to permute": 2})
    'load to multiply 7, permute to permute 2'
    """
    return ", ".join(f"{cause} {slots}" for cause, slots in stalls.items())


def run_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return the CSV: one row a run; a figure that a run didn't count is left empty."""
    kernels = [kernel_columns([KernelChoice(**choice) for choice in row.get("kernels", ())]) for row in rows]
    told = [{**row, **_cells(row), **used} for row, used in zip(rows, kernels, strict=True)]
    frame = pd.DataFrame(told).reindex(columns=list(COLUMNS))
    counts = ["packets", "instructions", "hvx_instructions", "needed_macs", "issue_slots"]
    counts += ["vector_loads", "scalar_loads", "vtcm_scalar_loads", "copies", "copies_2d", "vtcm_bytes"]
    return frame.astype(dict.fromkeys(counts, "Int64")).to_csv(index=False, lineterminator="\n", float_format="%.3f")
