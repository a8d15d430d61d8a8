"""Measure the columns of one row, in a process of its own."""

from dataclasses import asdict
from typing import Any

from hexconv.analyze import Planned, misfit, needed_macs, needed_work, vtcm_fit
from hexconv.apart import Task
from hexconv.checked import Checked, Trial, check
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError, Overran, RunFailed, ToolMissing, Unsupported
from hexconv.run.measure import Run, runner_of
from hexconv.run.simulator.made_files import other_code
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_columns

Row = dict[str, Any]

STATUSES = {Unsupported: "refused", InputError: "refused", Overran: "overran", RunFailed: "failed"}
"""The `status` of a row without figures, by the error that says why; an error takes the first that it is one of."""


def measure(task: Task) -> Row:
    """Return the columns of a row, `status` and `reason` among them.

    Args:
        task: `case` and `toml`; `target`; `seed` of the tensors; `seconds`, the time limit of a run on the simulator;
            `code`, the provenance that the code of this process must have.
    """
    if missing := other_code(task["code"]):
        return {"missing": missing}
    case = Case.parse(task["toml"], task["case"], target="llvm" if task["target"] == "llvm" else "hexagon")
    row: Row = {**kernel_columns(case.kernels)}
    try:
        row |= _predicted(case)
        if fit := misfit(case):
            return {**row, "status": "infeasible", "reason": str(fit)}
        measured, differences = _measured(case, task)
    except ToolMissing as missing:  # The machine is at fault, not the case: this makes no row.
        return {"missing": str(missing)}
    except tuple(STATUSES) as error:
        status = next(word for kind, word in STATUSES.items() if isinstance(error, kind))
        return {**row, "status": status, "reason": str(error)}
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
    if task["target"] == "cache":
        checked = check(case)
        counted = {"traffic_bytes": checked.work.traffic_bytes, "macs": checked.work.macs, "agrees": checked.agrees}
        return {**_sizes(checked), **counted}, [*checked.other_sizes(), *checked.other_work()]
    checked = check(case, [Trial(runner_of(case, task["target"], task["seconds"]), seed=task["seed"])])
    [tried] = checked.runs
    row = {**_sizes(checked), **_ran(tried.answer(), needed_macs(case.chain))}
    return row, [*checked.other_sizes(), *tried.differences()]


def _sizes(checked: Checked) -> Row:
    return {"peak_bytes": checked.usage.peak_bytes, "agrees": checked.usage.agrees}


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
