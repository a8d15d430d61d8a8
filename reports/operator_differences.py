"""How far operators are from ONNX Runtime and from ONNX's evaluator, in drawn programs.

python -m reports.operator_differences --draws 2000 --workers 1

Each step of a drawn program is computed by numpy, and by each witness on the same tensors before it: ONNX Runtime node
by node and optimised, and ONNX's evaluator in float64. C gives numpy's bytes. Exit 1 if an element is wrong: float32's
error does not explain it.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from hexconv.errors import HexconvError
from tests.network.drawn_programs import draw_program
from tests.network.judged_programs import EVALUATOR, NODE_BY_NODE, OPTIMISED, Apart, judged_program

SEED, DRAWS = 1, 2000


@dataclass(frozen=True)
class Row:
    """An operator in all drawn programs; what folds into convs counts as Conv.

    Attributes:
        operator: the operator of ONNX.
        networks: how many drawn programs have a step of it.
        elements: how many codes were compared with ONNX Runtime node by node.
        differing_percent: the share of them that differ, all within float32's error: numbers next to a half.
        largest: the largest difference, in codes.
        optimised_percent: the share that differs from ONNX Runtime as it optimises the step.
        optimised_largest: the largest such difference, in codes.
        evaluator_percent: the share that differs from ONNX's evaluator in float64; empty where it is not asked.
        evaluator_largest: the largest such difference, in codes.
        wrong: elements, of floats too, that differ by more than float32's error.
    """

    operator: str
    networks: int
    elements: int
    differing_percent: float
    largest: int
    optimised_percent: float | None
    optimised_largest: int | None
    evaluator_percent: float | None
    evaluator_largest: int | None
    wrong: int


def judged(seed: int, index: int) -> list[Apart]:
    """Judge one drawn program; one that is refused whole counts as wrong."""
    with TemporaryDirectory() as folder:
        try:
            return list(judged_program(draw_program(seed, index), Path(folder)))
        except HexconvError as refusal:
            return [Apart(frozenset(["whole"]), NODE_BY_NODE, wrong=1, told=str(refusal))]


def rows(programs: Iterable[Sequence[Apart]]) -> Iterator[Row]:
    """Add up what was found, operator by operator."""
    networks: dict[str, int] = {}
    found: dict[tuple[str, str], list[Apart]] = {}
    for program in programs:
        for operator in {operator for each in program for operator in each.operators}:
            networks[operator] = networks.get(operator, 0) + 1
        for each in program:
            for operator in each.operators:
                found.setdefault((operator, each.witness), []).append(each)
    for operator in sorted(networks.keys() - {"whole"}, key=lambda name: name.rpartition(".")[::-1]):
        own, optimised, evaluator = (found.get((operator, name), []) for name in (NODE_BY_NODE, OPTIMISED, EVALUATOR))
        share, largest = _differing(own)
        elements = sum(each.elements for each in own)
        wrong = sum(each.wrong for each in (*own, *optimised, *evaluator))
        yield Row(
            operator,
            networks[operator],
            elements,
            share or 0.0,
            largest or 0,
            *_differing(optimised),
            *_differing(evaluator),
            wrong,
        )


def _differing(found: Sequence[Apart]) -> tuple[float | None, int | None]:
    elements = sum(each.elements for each in found)
    if not elements:
        return None, None
    return round(100 * sum(each.differing for each in found) / elements, 4), max(each.largest for each in found)


def operators_page() -> str:
    """Return the Markdown of the page that has the table."""
    with Path(__file__).with_suffix(".csv").open() as file:
        table = list(csv.DictReader(file))
    lines = [
        "# Operators and ONNX Runtime",
        f"`make operator-differences` draws {DRAWS} programs of convs and these operators, and computes each "
        "step on the same tensors by hexconv's numpy, whose bytes the C gives, by ONNX Runtime node by node, "
        "by ONNX Runtime as it optimises the step, and by ONNX's evaluator in float64. A share is of codes "
        "that differ; behind it is the largest difference in codes. No element differs from ONNX Runtime node "
        "by node, or from the evaluator, by more than float32's error. Conv has all that folds into it: where "
        "a table stands for a function behind a conv, `hexconv import` says by how many codes it may be off, "
        "and the table here counts that. The evaluator is not asked where it has faults of its own, or where "
        "float32 decides on which side of a step a number lies.",
        "| operator | programs | codes | from ONNX Runtime node by node | as it optimises | from ONNX's evaluator |",
        "|---|---:|---:|---|---|---|",
    ]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join([*lines[2:], *map(_line, table)]) + "\n"


def _line(row: dict[str, str]) -> str:
    ways = [
        ("differing_percent", "largest"),
        ("optimised_percent", "optimised_largest"),
        ("evaluator_percent", "evaluator_largest"),
    ]
    told = [_share(row[percent], row[largest]) for percent, largest in ways]
    cells = [
        f"`{row['operator']}`",
        row["networks"],
        row["elements"],
        *(told if int(row["elements"]) else ["floats alone", "", ""]),
    ]
    return "| " + " | ".join(cells) + " |"


def _share(percent: str, largest: str) -> str:
    if not percent:
        return "not asked"
    return f"{float(percent):.2g} %, by {largest}" if float(percent) else "none"


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if an element is wrong."""
    parser = argparse.ArgumentParser(prog="reports.operator_differences", description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"), help="the table")
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(options.workers) as pool:
        programs = list[list[Apart]]()
        for program in pool.map(partial(judged, options.seed), range(options.draws), chunksize=8):
            for each in program:
                if each.wrong:
                    print(f"draw_program({options.seed}, {len(programs)}): {each.told}", file=sys.stderr, flush=True)
            programs.append(program)
    table = pd.DataFrame([asdict(row) for row in rows(programs)]).astype(
        {"optimised_largest": "Int64", "evaluator_largest": "Int64"}
    )
    table.to_csv(options.csv, index=False)
    print(table.to_string())
    wrong = sum(any(each.wrong for each in program) for program in programs)
    print(f"{len(programs)} drawn programs, {wrong} of them with a wrong element")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
