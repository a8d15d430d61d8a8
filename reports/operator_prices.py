"""Fits the prices of the model of operators' packets to `reports/operators.csv`, and tells how far it is off.

python -m reports.operator_prices        writes hexconv/network/operator_prices.toml

Each kind of operator gets the two parts, and their prices, that predict each of its rows best out of the others; that
error is told. Kinds of one row have the part that fits it, and no error; all others the prices of all rows together.
"""

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np

from hexconv.network.call_costs import PRICES, kind_of, parts_of
from hexconv.network.program_steps import Operation
from reports.operators import cases, other_cases
from reports.rates import Stage, fitted

ROWS = Path(__file__).with_name("operators.csv")
NINE_OF_TEN = 0.9
PARTS = (
    "vector",
    "vector_read",
    "element",
    "read",
    "pixel",
    "block",
    "block_tap",
    "element_tap",
    "product",
    "line_vector",
)
BESIDE = ("call", "channel", "channel_vector", "pixel", "line")
Runs = dict[str, list[Stage]]


def measured() -> Runs:
    """Return the parts and the packets of each row of the table, by kind and by way."""
    with ROWS.open() as file:
        rows = list(csv.DictReader(file))
    listed, found = [*cases(), *other_cases()], Runs()
    if any(row["operator"] != case.name for row, case in zip(rows, listed, strict=False)):
        raise SystemExit("reports/operators.csv is of other operators: run make operators")
    for row, case in zip(rows, listed, strict=False):
        elements = max(prod(operand.extents) for operand in (*case.operation.sources, case.operation.result))
        for way in ("plain", "hvx"):
            step = _formed(case.operation, way == "hvx")
            stage = Stage.whole(parts_of(step), float(row[f"{way}_packets"]) * elements)
            for name in (kind_of(step), way):
                found.setdefault(name, []).append(stage)
    return found


def _formed(step: Operation, in_hvx: bool) -> Operation:
    return replace(step, result=replace(step.result, integers="form" if in_hvx else ""))


def priced(runs: Sequence[Stage], parts: Sequence[str]) -> dict[str, float]:
    """Fit the prices of some parts alone."""
    return fitted([replace(run, occurs={part: run.occurs[part] for part in parts}) for run in runs])


def apart(runs: Sequence[Stage], parts: Sequence[str]) -> list[float]:
    """Return the error of each run by prices that are fitted to the others."""
    errors = []
    for at, run in enumerate(runs):
        prices = priced([*runs[:at], *runs[at + 1 :]], parts)
        errors.append(abs(sum(price * run.occurs[part] for part, price in prices.items()) / run.packets - 1))
    return errors


def fit(runs: Sequence[Stage]) -> tuple[dict[str, float], list[float]]:
    """Return the prices of a kind, and its errors; none where there is but one run."""
    size = [part for part in PARTS if any(run.occurs[part] for run in runs)]
    if len(runs) == 1:
        return priced(runs, size[:1]), []
    pairs = [
        (one, *other) for one in size for count in (0, 1) for other in combinations(BESIDE, count) if one not in other
    ]
    best = min(pairs, key=lambda parts: float(np.mean(apart(runs, parts))))
    return priced(runs, best), apart(runs, best)


def written(found: Runs) -> str:
    """Fit all prices, judge them, and return the file."""
    made = {name: fit(runs) for name, runs in sorted(found.items())}
    own = [error for name, (_, each) in made.items() if " " in name for error in each]
    lines = [f'source = "reports/operators.csv: {len(found["hvx"])} operators on the simulator as v67"']
    lines += [f"error = {float(np.quantile(own, NINE_OF_TEN)):.3g}", "[errors]"]
    lines += [f'"{name}" = {max(each):.3g}' for name, (_, each) in made.items() if each]
    for name, (prices, _) in made.items():
        lines += [f'[kinds."{name}"]', *(f"{part} = {price:.4g}" for part, price in sorted(prices.items()))]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the file."""
    text = written(measured())
    Path(str(PRICES)).write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
