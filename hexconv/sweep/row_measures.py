"""Measure the columns of one row, in a process of its own."""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hexconv.analyze import Planned, Usage, cache_usage, needed_macs, needed_work, vtcm_fit, work_usage
from hexconv.apart import Task
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError, Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import lower_case
from hexconv.run.count import count
from hexconv.run.measure import Run, run_case, runner_of
from hexconv.run.simulator.made_files import provenance
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_columns
from hexconv.sweep.judging import errors_of, miscounts

Row = dict[str, Any]


def measure(task: Task) -> Row:
    """Return the columns of a row, `status` and `reason` among them.

    Args:
        task: `case` and `toml`; `target`; `seed` of the tensors; `seconds`, the time limit of a run on the simulator;
            `code`, the provenance that the code of this process must have.
    """
    if task["code"] != provenance():  # A machine joined the cluster late, or the source was edited meanwhile.
        return {"missing": f"{platform.node()} has other code than what started the sweep; the same command goes on"}
    case = Case.parse(task["toml"], task["case"], target="llvm" if task["target"] == "llvm" else "hexagon")
    row: Row = {**kernel_columns(case.kernels)}
    try:
        row |= _predicted(case)
        if row.get("fits") is False:
            return {**row, "status": "infeasible", "reason": str(vtcm_fit(case.chain, case.settled))}
        measured, differences = _measured(case, task)
    except (Unsupported, InputError) as refusal:
        return {**row, "status": "refused", "reason": str(refusal)}
    except Overran as shortage:
        return {**row, "status": "overran", "reason": str(shortage)}
    except RunFailed as failure:
        return {**row, "status": "failed", "reason": str(failure)}
    except ToolMissing as missing:  # The machine is at fault, not the case: this makes no row.
        return {"missing": str(missing)}
    return {**row, **measured, "status": "differs" if differences else "holds", "reason": "; ".join(differences)}


def _predicted(case: Case) -> Row:
    """Return the columns that the closed forms predict."""
    check_supported(case.chain)
    planned, needed = Planned.of(case), needed_work(case.chain)
    row: Row = {
        "predicted_bytes": sum(memory.bytes for memory in planned.allocations),
        "needed_traffic_bytes": sum(needed.traffic_bytes.values()),
        "needed_macs": sum(needed.macs.values()),
    }
    row["predicted_traffic_bytes"] = sum(planned.work.traffic_bytes.values())
    row["predicted_macs"] = sum(planned.work.macs.values())
    row["recompute"] = row["predicted_macs"] / row["needed_macs"]
    if planned.plan.uses_vtcm:
        fit = vtcm_fit(case.chain, planned.plan)
        row |= {"demand_bytes": fit.demand_bytes, "capacity_bytes": fit.capacity_bytes, "fits": fit.fits}
    return row


def _measured(case: Case, task: Task) -> tuple[Row, list[str]]:
    """Return the columns from TVM and from a run, and where they differ from the closed forms and from numpy."""
    lowered = lower_case(case)
    usage = cache_usage(case, lowered)
    row: Row = {"peak_bytes": usage.peak_bytes, "agrees": usage.agrees}
    if task["target"] == "cache":
        work = work_usage(case, count(lowered))
        counted = {"traffic_bytes": work.traffic_bytes, "macs": work.macs, "agrees": usage.agrees and work.agrees}
        return {**row, **counted}, [*_other_sizes(usage), *miscounts(work)]
    runner = runner_of(case, task["target"], task["seconds"])
    run = run_case(case, lowered, runner, task["seed"])
    return {**row, **_ran(run, needed_macs(case.chain))}, [*_other_sizes(usage), *errors_of(run.check)]


def _ran(run: Run, macs: int) -> Row:
    """Return the columns of a run."""
    row = {**asdict(run.check), "seconds": run.seconds}
    if run.counts is None:
        return row
    row |= {**asdict(run.counts), "macs_per_packet": macs / run.counts.packets, "vtcm_bytes": run.vtcm_bytes}
    if run.slots:
        row |= {"issue_slots": run.slots.issue_slots, "macs_per_slot": macs / run.slots.issue_slots}
        row |= {"stalls": run.slots.stall_slots, "vector_loads": run.slots.vector_loads}
    return row


def _other_sizes(usage: Usage) -> Iterator[str]:
    """Say where the closed form and TVM disagree on caches and allocations."""
    if usage.agrees:
        return
    found = [
        f"{part.name}: closed form {part.predicted_elements} elements, TVM {part.elements}"
        for part in (*usage.caches, *usage.allocations)
        if part.predicted_elements != part.elements
    ]
    yield from found or ["closed form and TVM have other caches, or share their memory otherwise"]
