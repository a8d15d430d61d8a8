"""Tables and CSV of what was checked: cache usage, traffic and MACs, forms of convs, runs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hexconv.analyze import ConvForm, Usage, WorkUsage, conv_forms, needed_macs
from hexconv.report.described import attributes
from hexconv.report.rows import CacheRow, RunRow
from hexconv.run.check import Check
from hexconv.run.copy_engine import CopyCounts
from hexconv.run.matrix_engine import EngineCounts
from hexconv.run.simulator.slots import Threads
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_columns

if TYPE_CHECKING:
    from hexconv.checked import Checked
    from hexconv.run.measure import Run


def headed(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Make a table without rows: first columns of words, then columns of numbers, which stand at the right."""
    table = Table(*words, title=title)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def cell(value: object) -> str:
    """Write a value as a cell, which is empty if there is none."""
    return "" if value is None else str(value)


KERNEL_COLUMNS = {
    "kernel_asked": "the kernel that the plan names; `none` if it names none",
    "kernel_used": "the kernel that each conv got; one word if all convs got the same",
    "kernel_why": "why each conv got its kernel",
}

COLUMNS = {
    "case": "the name of the case",
    "kind": "`cache` for a buffer as TVM compacted it, `allocation` for memory that caches share",
    "name": "the name of the cache, or of the first cache in an allocation",
    "role": (
        "what a cache holds: `input`, `filter`, `words` (a filter that scalar loads read), `intermediate`, `kept` "
        "(columns for the next strip), `accumulator` or `output`, or scratch of a kernel (`offset`, `window`, `split`, "
        "`scale`, `planes`); empty for an allocation"
    ),
    "scope": "TVM's storage scope of a cache: `global.vtcm` is VTCM, `global` any other memory",
    "dtype": "the type of an element of a cache",
    "shape": "the sizes of a cache after TVM compacted it, in elements",
    "holds": "the caches that share an allocation",
    "elements": "the elements that TVM allocated",
    "bytes": "the bytes that TVM allocated",
    "predicted_elements": "the elements that the closed form predicts",
    "documented_elements": "the elements that the source documents state, if they have the case",
    "peak_bytes": "the bytes of all allocations of the case together",
    "agrees": "whether closed form, TVM, counts and documents agree in every figure of the case",
    "traffic_bytes": (
        "the bytes that the case moves, counted in the lowered loops: copies between memory and caches and, if some "
        "caches lie in VTCM, what kernels read and write in the others"
    ),
    "needed_traffic_bytes": "a lower bound of these bytes: every element that is needed moves once",
    "copies_in_flight": "the most copies of each tensor that are under way at once, summed over the tensors",
    "macs": "the multiply-accumulates of the case, counted in the lowered loops, recomputed ones included",
    "needed_macs": "the multiply-accumulates of the outputs that are read, each output counted once",
    **KERNEL_COLUMNS,
}
"""Every column of the CSV, with what it holds; a row of a case repeats the figures of the whole case."""
COUNTS = tuple(name for name in COLUMNS if name.endswith(("elements", "bytes", "macs", "_in_flight")))


def cache_row(checked: "Checked") -> dict[str, Any]:
    """Return a case as a row for JSON: its caches, what it moves and computes, and how its convs multiply."""
    usage = checked.usage
    row: CacheRow = {
        "case": usage.case,
        "caches": usage.caches,
        "allocations": usage.allocations,
        "peak_bytes": usage.peak_bytes,
        "kernels": usage.kernels,
        "forms": conv_forms(checked.case),
        "agrees": checked.agrees,
    }
    return {**vars(checked.work), **row}


def cache_csv(cases: "Sequence[Checked]") -> str:
    """Return the CSV: one row a cache and one row an allocation; each row of a case repeats the totals of the case."""
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]  # which brings no types

    rows = [{**row, **_totals(checked)} for checked in cases for row in _rows(checked.usage)]
    frame: Any = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(COUNTS, "Int64")).to_csv(index=False, lineterminator="\n")


def _totals(checked: "Checked") -> dict[str, Any]:
    """Return the totals of a case: its traffic, its copies and its MACs."""
    work = checked.work
    return {
        "traffic_bytes": work.traffic_bytes,
        "needed_traffic_bytes": work.needed_traffic_bytes,
        "copies_in_flight": work.copies_in_flight,
        "macs": work.macs,
        "needed_macs": work.needed_macs,
        "agrees": checked.agrees,
        **kernel_columns(checked.usage.kernels),
    }


def cache_table(usage: Usage) -> Table:
    """The table of a case, verdict first: predicted, allocated and documented elements of caches and allocations."""
    verdict = "agrees" if usage.agrees else "does NOT agree"
    title = f"{usage.case}: {verdict}; {usage.peak_bytes} bytes at the peak; caches in elements"
    words = ("agrees", "kind", "name", "shape or caches held")
    table = headed(title, words, ("predicted", "allocated", "documented", "bytes"))
    for row in _rows(usage):
        figures = (row["predicted_elements"], row["elements"], row["documented_elements"])
        same = "yes" if len({figure for figure in figures if figure is not None}) == 1 else "NO"
        cells = (same, row["kind"], row["name"], row["shape"] or row["holds"])
        table.add_row(*cells, *map(cell, (*figures, row["bytes"])))
    return table


def _rows(usage: Usage) -> Iterator[dict[str, Any]]:
    """Yield the rows of one case by column name."""
    common = {"case": usage.case, "peak_bytes": usage.peak_bytes, "agrees": usage.agrees}
    empty = dict.fromkeys(COLUMNS)
    for cache in usage.caches:
        counts = {"elements": cache.elements, "bytes": cache.bytes, "predicted_elements": cache.predicted_elements}
        kind = {"kind": "cache", "name": cache.name, "role": cache.role, "scope": cache.scope, "dtype": cache.dtype}
        yield {**empty, **common, **kind, "shape": "x".join(map(str, cache.shape)), **counts}
    for memory in usage.allocations:
        counts = {
            "elements": memory.elements,
            "bytes": memory.bytes,
            "predicted_elements": memory.predicted_elements,
            "documented_elements": memory.documented_elements,
        }
        yield {**empty, **common, "kind": "allocation", "name": memory.name, "holds": " ".join(memory.holds), **counts}


def work_table(case: str, work: WorkUsage) -> Table:
    """Return the table: needed, predicted and counted bytes of tensors and MACs of convs, and counted over needed."""
    verdict = "agrees" if work.agrees else "does NOT agree"
    title = f"{case}: {verdict}; bytes between memory and caches, and multiply-accumulates"
    table = headed(title, ("agrees", "what"), ("needed", "predicted", "counted", "times needed"))
    for tensor in work.traffic:
        _add(table, f"{tensor.name} {tensor.direction}", tensor.needed_bytes, tensor.predicted_bytes, tensor.bytes)
    for tensor in work.traffic:
        if tensor.predicted_copies_in_flight or tensor.copies_in_flight:
            in_flight = (tensor.predicted_copies_in_flight, tensor.copies_in_flight)
            _add(table, f"{tensor.name} copies in flight", None, *in_flight)
    traffic = sum(tensor.predicted_bytes for tensor in work.traffic)
    _add(table, "traffic", work.needed_traffic_bytes, traffic, work.traffic_bytes)
    for conv in work.convs:
        _add(table, f"{conv.name} MACs", conv.needed_macs, conv.predicted_macs, conv.macs)
    _add(table, "MACs", work.needed_macs, sum(conv.predicted_macs for conv in work.convs), work.macs)
    return table


def _add(table: Table, what: str, needed: int | None, predicted: int, counted: int) -> None:
    """Add one row."""
    times = f"{counted / needed:.2f}" if needed else ""
    same = "yes" if predicted == counted else "NO"
    table.add_row(same, what, cell(needed), str(predicted), str(counted), times)


def form_table(case: str, forms: Sequence[ConvForm]) -> Table:
    """Return the table: a row for each conv, with the bound that follows from the instructions that multiply."""
    title = f"{case}: what lanes of vectors are, and the most MACs that the products allow in a packet"
    words = ("conv", "kernel", "lanes", "made dense")
    table = headed(title, words, ("products", "MACs per packet at most"))
    for form in forms:
        dense = "yes" if form.made_dense else ""
        table.add_row(form.name, form.kernel, form.form, dense, cell(form.products), cell(form.most_macs_per_packet))
    return table


SAID = {**attributes(Check), **attributes(RunRow), **KERNEL_COLUMNS}
RUN_COLUMNS = {
    name: SAID[name]
    for name in (
        *("case", "target", "weights", "input", "passed", "packets", "instructions", "hvx_instructions", "needed_macs"),
        *("macs_per_packet", "issue_slots", "stalls", "stall_share", "macs_per_slot", "vector_loads", "scalar_loads"),
        *("vtcm_scalar_loads", "copies", "copies_2d", "copy_bytes", "vtcm_bytes", *KERNEL_COLUMNS),
    )
}
"""Every column of the CSV, with what it holds."""


def run_row(case: Case, result: "Run") -> dict[str, Any]:
    """A run as a row for JSON: fill, verdict, `seconds`; a run on the simulator also has packets, slots and MACs.

    >>> from hexconv.run.measure import Run
    >>> from hexconv.run.check import Check
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> case = Case("small", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan())
    >>> row = run_row(case, Run("small", "llvm", "most", Check(True, 0.0, 0.0, True), 0.5, None, None))
    >>> list(row)[:6]
    ['case', 'target', 'fill', 'weights', 'input', 'passed']
    >>> list(row)[6:]
    ['max_abs_error', 'max_rel_error', 'fringe_is_zero', 'seconds', 'kernels', 'copies', 'copies_2d', 'copy_bytes']
    """
    asked = {"case": result.case, "target": result.target, "fill": result.fill}
    asked |= {"weights": result.weights, "input": result.input}
    row = {
        **asked,
        **asdict(result.check),
        "seconds": result.seconds,
        "kernels": result.kernels,
        **_copies(result.copies),
        **({"from_exact": asdict(result.from_exact)} if result.from_exact else {}),
    }
    if result.counts is None:
        return row
    needed = needed_macs(case.chain)
    rate = {"needed_macs": needed, "macs_per_packet": needed / result.counts.packets}
    vtcm = {} if result.vtcm_bytes is None else {"vtcm_bytes": result.vtcm_bytes}
    threads, engine = _threads(result.threads, result.counts.packets), _engine(result.engine, needed)
    return {**row, **asdict(result.counts), **rate, **slots_row(result, needed), **vtcm, **threads, **engine}


def _engine(engine: EngineCounts | None, needed_macs: int) -> dict[str, Any]:
    """The packets of the matrix engine, and the share of its products that are needed; nothing without it."""
    if engine is None:
        return {}
    return {"engine_packets": asdict(engine.packets), "engine_useful_share": needed_macs / engine.packets.macs}


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


def slots_row(result: "Run", needed_macs: int) -> dict[str, Any]:
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
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]  # which brings no types

    kernels = [kernel_columns(row.get("kernels", ())) for row in rows]
    told = [{**row, **_cells(row), **used} for row, used in zip(rows, kernels, strict=True)]
    frame: Any = pd.DataFrame(told, columns=list(RUN_COLUMNS))
    counts = ["packets", "instructions", "hvx_instructions", "needed_macs", "issue_slots"]
    counts += ["vector_loads", "scalar_loads", "vtcm_scalar_loads", "copies", "copies_2d", "vtcm_bytes"]
    return frame.astype(dict.fromkeys(counts, "Int64")).to_csv(index=False, lineterminator="\n", float_format="%.3f")
