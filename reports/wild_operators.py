"""Operators between the chains of real networks: packets beside the least that their instructions fit in.

python -m reports.wild_operators [NAME ...]        writes reports/wild_operators.csv

Each network of `reports.wild` is planned as for `reports/wild.csv`, and each of its operators runs once on the
simulator, on drawn codes and on one thread, like those of `reports.operators`. A row has those of a network that are
alike.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hexconv.model import import_model
from hexconv.network.planned_model import plan, question_of
from hexconv.network.program_steps import NHWC, Constants, Operand, Operation, Program
from hexconv.spec import Plan
from hexconv.spec.capacities import capacity_of
from reports.operator_floors import least_of
from reports.operators import Drawn, codes_of, run_operations
from reports.programs import THREADS
from reports.wild import TABLE, prepared, tomllib

CSV = Path(__file__).with_suffix(".csv")
NEAR = 1.5


@dataclass(frozen=True)
class Row:
    """The operators of a network that are alike.

    Attributes:
        network: the model.
        operator: the operator.
        tensors: the NHWC shapes that it reads and writes, with the dtypes that are not uint8, and NCHW where that is
            their layout.
        steps: how many steps of the network are alike.
        packets: the packets of all of them, on one thread.
        floor_packets: the least packets that their instructions fit in; none where no way in HVX is known.
        floor_counts: which instructions fill these; all others fit beside them.
        over_floor: `packets` over `floor_packets`.
        differing: elements that differ from numpy's.
    """

    network: str
    operator: str
    tensors: str
    steps: int
    packets: int
    floor_packets: int | None
    floor_counts: str
    over_floor: float | None
    differing: int


def rows_of(name: str, program: Program) -> list[Row]:
    """Run the operators of a program; those that are alike become a row."""
    operations = [step for step in program.computed if isinstance(step, Operation)]
    random, found = np.random.default_rng(0), dict[tuple[str, str], Row]()
    drawn = [_drawn(step, program.constants, random) for step in operations]
    for step, (_, run) in zip(operations, run_operations(drawn, alone=True), strict=True):
        sources = ", ".join(_told(each) for each in step.sources)
        alike = (step.operator, f"{sources} to {_told(step.result)}")
        least = least_of(step, program.constants)
        floor = least.packets if least else None
        row = found.get(alike, Row(name, *alike, 0, 0, 0, least.fullest if least else "", None, 0))
        both = None if floor is None or row.floor_packets is None else row.floor_packets + floor
        packets = row.packets + run.packets
        over = round(packets / both, 2) if both else None
        found[alike] = replace(
            row,
            steps=row.steps + 1,
            packets=packets,
            floor_packets=None if both is None else round(both),
            over_floor=over,
            differing=row.differing + run.differing,
        )
    return list(found.values())


def _drawn(step: Operation, constants: Constants, random: np.random.Generator) -> Drawn:
    """Draw what an operation reads, and take the constants that it names."""
    plain = replace(step, result=replace(step.result, integers=""))
    own = {name: constants[name] for name in _names(asdict(plain)) if name in constants}
    arrays = {each.buffer: codes_of(random, each) for each in step.sources if each.buffer not in own}
    return Drawn(plain, arrays, own)


def _names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for each in value:
            yield from _names(each)
    elif isinstance(value, str):
        yield value


def _told(operand: Operand) -> str:
    sizes = "x".join(map(str, operand.extents))
    layout = "" if operand.layout == NHWC or operand.is_one_order else f" {operand.layout}"
    return sizes + layout + ("" if operand.dtype == "uint8" else f" {operand.dtype}")


def near_floor(rows: Sequence[Row]) -> float:
    """Return the share of packets that lie in rows of at most 1.5 times their floor."""
    near = sum(row.packets for row in rows if row.over_floor is not None and row.over_floor <= NEAR)
    return near / max(sum(row.packets for row in rows), 1)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if an element differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="networks of reports/wild.toml; all if none is named")
    parser.add_argument("--folder", type=Path, default=Path("build/wild"), help="for the quantised models")
    parser.add_argument("--csv", type=Path, default=CSV, help="the table")
    asked = parser.parse_args(arguments)
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    question, rows = question_of(capacity_of(Plan()), "latency", threads=THREADS), list[Row]()
    for name in asked.names or known:
        model = prepared(name, known[name], asked.folder)
        rows += rows_of(name, plan(import_model(model), question).open_program)
        print(f"{name}: {100 * near_floor([row for row in rows if row.network == name]):.1f} %", flush=True)
    pd.DataFrame([asdict(row) for row in rows]).to_csv(asked.csv, index=False)
    print(f"{100 * near_floor(rows):.1f} % of packets in operators that take at most {NEAR} times their floor")
    return int(any(row.differing for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
