"""Show cache usage as a table on the terminal and as CSV."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from rich.table import Table

from hexconv.analyze import Usage, WorkUsage
from hexconv.report.headed import cell, headed
from hexconv.spec.kernel import kernel_columns

COLUMNS = {
    "case": "the name of the case",
    "kind": "`cache` for a buffer as TVM compacted it, `allocation` for memory in which caches take turns",
    "name": "the name of the cache, or of the first cache in an allocation",
    "role": (
        "what a cache holds: `input`, `filter`, `words` (a filter that scalar loads read), `intermediate`, `kept` "
        "(columns for the next strip), `accumulator` or `output`, or scratch of a kernel (`offset`, `window`, `split`, "
        "`scale`, `planes`); empty for an allocation"
    ),
    "scope": "TVM's storage scope of a cache: `global.vtcm` is VTCM, `global` any other memory",
    "dtype": "the type of an element of a cache",
    "shape": "the sizes of a cache after TVM compacted it, in elements",
    "holds": "the caches that take turns in an allocation",
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
    "kernel_asked": "the kernel that the plan names; `none` if it names none",
    "kernel_used": "the kernel that each conv got; one word if all convs got the same",
    "kernel_why": "why each conv got its kernel",
}
"""Every column of the CSV, with what it holds; a row of a case repeats the figures of the whole case."""
COUNTS = tuple(name for name in COLUMNS if name.endswith(("elements", "bytes", "macs", "_in_flight")))


def cache_csv(judged: Sequence[tuple[Usage, WorkUsage]]) -> str:
    """Return the CSV: one row a cache and one row an allocation; each row of a case repeats the totals of the case."""
    rows = [{**row, **_totals(usage, work)} for usage, work in judged for row in _rows(usage)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(COUNTS, "Int64")).to_csv(index=False, lineterminator="\n")


def _totals(usage: Usage, work: WorkUsage) -> dict[str, Any]:
    """Return the totals of a case: its traffic, its copies and its MACs."""
    return {
        "traffic_bytes": work.traffic_bytes,
        "needed_traffic_bytes": work.needed_traffic_bytes,
        "copies_in_flight": work.copies_in_flight,
        "macs": work.macs,
        "needed_macs": work.needed_macs,
        "agrees": usage.agrees and work.agrees,
        **kernel_columns(usage.kernels),
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
