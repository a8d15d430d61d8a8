"""Write the page of the site that has every column of every table and every key of JSON, each with a sentence."""

from dataclasses import fields

from hexconv.report.check_tables import COLUMNS as CACHE_COLUMNS
from hexconv.report.check_tables import RUN_COLUMNS as RUN_COLUMNS
from hexconv.report.described import attributes, markdown
from hexconv.report.json_keys import keys_page
from hexconv.spec import Plan
from hexconv.sweep.grid_file import COLUMN_OF
from hexconv.sweep.survey import COLUMNS
from reports import (
    bytes,
    called,
    engine_programs,
    engine_sweep,
    fits,
    hmx,
    hvx,
    mlir,
    model,
    networks,
    networks_bytes,
    operator_differences,
    operators,
    packets_pass,
    plans,
    programs,
    qnn,
    trapped_words,
    wild_operators,
)


def _of(kind: type) -> dict[str, str]:
    said = attributes(kind)
    return {one.name: said[one.name] for one in fields(kind)}


OF_SWEEPS = {
    "case": "the name of the case",
    "target": "what was done with it: `cache` compares sizes and counts, `llvm` and `hexagon` run it there",
    "status": "what came of it: `holds` if all figures agree ([all words](../how-to/sweep.md))",
    "reason": "what differs, or why there is no result; empty if the row holds",
    "chain": "the shapes, convs and dtypes of the chain in one word",
    "input": "the NHWC shape of the input",
    "dtype": "the type of the input and of intermediates",
    "filter_dtype": "the type of the filters",
    "zero_point": "the zero point of the input",
    "input_layout": "the layout of the input",
    "output_layout": "the layout of the output",
    "convs": "the number of convs",
    "predicted_bytes": "the bytes of all allocations that the closed form predicts",
    "peak_bytes": "the bytes of all allocations that TVM made",
    "agrees": "whether the closed form agrees with TVM and, for `cache`, with the counts",
    "demand_bytes": "the bytes of VTCM that the plan takes, in granules of 2 KiB; empty if it uses no VTCM",
    "capacity_bytes": "the bytes of VTCM that the architecture has; empty if the plan uses no VTCM",
    "fits": "whether the demand is within the capacity",
    "predicted_traffic_bytes": "the bytes that the closed form says the case moves",
    "predicted_macs": "the multiply-accumulates that the closed form says the case does, recomputed ones included",
    "recompute": "predicted MACs over needed MACs",
    "max_abs_error": "the largest difference of the output from numpy's answer",
    "max_rel_error": "the same, relative to the largest value of numpy's answer",
    "fringe_is_zero": "whether the output is zero where it has no element",
    "stalls": "the issue slots that are lost to stalls",
    "seconds": "the seconds that the kernel ran",
    "elapsed_seconds": "the seconds of all work for the row",
}
"""The columns of a sweep's table, except knobs and those of other tables."""

OF_MUTANTS = {
    "file": "the file that was changed",
    "line": "the changed line",
    "operator": "the operator of cosmic-ray that changed it",
    "before": "the line before",
    "after": "the line after",
    "verdict": "`killed` if a test failed, `late` if the tests didn't end in time, `lived` if none failed",
    "by": "the test that failed",
    "reason": "of a change that lived: why it is equivalent, or isn't worth a test",
}


def sweep_columns() -> dict[str, str]:
    """Return every column of a sweep's table with its sentence.

    >>> sweep_columns()["macs_per_packet"] == RUN_COLUMNS["macs_per_packet"]
    True
    """
    knobs = {COLUMN_OF.get(name, name): said for name, said in _of(Plan).items()}
    known = {**CACHE_COLUMNS, **RUN_COLUMNS, **knobs, **OF_SWEEPS}
    return {name: known[name] for name in COLUMNS}


PROGRAMS = _of(programs.Row)

TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "simulator.csv": ("make simulator", RUN_COLUMNS),
    "cache_usage.csv": ("hexconv cache --csv", CACHE_COLUMNS),
    "hvx.csv": ("make bench", hvx.COLUMNS),
    "hvx_int16.csv": ("make bench", hvx.COLUMNS),
    "hmx.csv": ("make bench", _of(hmx.Row)),
    "engine_programs.csv": ("make engine-programs", _of(engine_programs.Row)),
    "engine_sweep.csv": ("make engine-sweep", _of(engine_sweep.Row)),
    "trapped_words.csv": ("make trapped-words", _of(trapped_words.Row)),
    "mlir.csv": ("make mlir", _of(mlir.Row)),
    "model.csv": ("make model", _of(model.Pair) | {"error": "the model's error: `model / packets - 1`"}),
    "packets_pass.csv": ("make packets-pass", _of(packets_pass.Row)),
    "fits.csv": ("make fits", _of(fits.Row)),
    "plans.csv": ("make plans", _of(plans.BruteForceRow)),
    "bytes.csv": ("make bytes", _of(bytes.Row)),
    "qnn.csv": ("make bench-qnn", _of(qnn.Account)),
    "networks.csv": ("make bench-networks", _of(networks.Row)),
    "networks_bytes.csv": ("make bytes-networks", _of(networks_bytes.Row)),
    "networks_layers.csv": ("make bench-networks", _of(networks.Layer)),
    "programs.csv": ("make verify-networks", PROGRAMS),
    "called.csv": ("make call-libraries", _of(called.Row)),
    "operators.csv": ("make operators", _of(operators.Row)),
    "operator_differences.csv": ("make operator-differences", _of(operator_differences.Row)),
    "wild.csv": ("make wild", PROGRAMS),
    "wild_operators.csv": ("make wild-operators", _of(wild_operators.Row)),
    "mutants.csv": ("make mutants", OF_MUTANTS),
}
"""For each committed table of `reports`, the command that writes it, and its columns."""


def columns_page() -> str:
    """Return the Markdown of the page."""
    parts = [
        "# Columns of tables",
        "A name that ends in `_bytes`, `_elements`, `_macs`, `_packets` or `_percent` ends in its unit; MACs are "
        "multiply-accumulates. A figure that a row doesn't have is empty.",
        "## `hexconv sweep --out`",
        markdown(sweep_columns().items(), "column"),
    ]
    for name, (command, columns) in TABLES.items():
        like = next(other for other, (_, theirs) in TABLES.items() if theirs is columns)
        parts += [f"## `reports/{name}`", f"`{command}` writes it."]
        parts += [markdown(columns.items(), "column") if like == name else f"It has the columns of `reports/{like}`."]
    return "\n\n".join((*parts, keys_page())) + "\n"
