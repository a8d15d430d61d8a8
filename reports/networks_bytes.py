"""`python -m reports.networks_bytes MODEL.onnx...`: the bytes that whole networks move, beside QNN's planner.

Each network is planned for the least traffic in 1, 2, 4 and 8 MiB of VTCM: chains, what is between them, and tensors
that stay in VTCM. All bytes of a call count, by the closed forms that `hexconv best` prints. Nothing runs here.

Networks have codes of 8 bits at both ends: `python -m tests.verify.full_size FOLDER --codes --forms tensor` writes them
as NAME-tensor-codes.onnx. With `--qnn PYTHON`, an environment that has onnxruntime-qnn (`reports.qnn`), QNN's planner
is asked about the same files; without it, what it stated before stays. It plans for the least time, not for the fewest
bytes, and pads channels as it stores them.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import onnx

from hexconv.model import import_model
from hexconv.network.call_costs import call_cost
from hexconv.network.planned_model import plan, question_of
from reports.board import LIMITS_MIB
from reports.kept import keep_all, named
from reports.qnn import ARCHITECTURES, prepared

MIB = 1 << 20
Stated = dict[str, int | None]
"""The bytes that QNN's planner states, by Hexagon; None if it gives no graph."""


@dataclass(frozen=True)
class Row:
    """A network under one limit.

    Attributes:
        network: the model.
        vtcm_mib: the MiB of VTCM that caches and tensors between steps may take.
        needed_bytes: the input, the output, and each constant that is no scalar, once.
        apart_bytes: what a call moves if each conv and each operator reads and writes memory; None if a conv does not
            fit.
        moved_bytes: what a call moves by the plan.
        chains_bytes: how many of these chains move.
        steps: the steps of the program: pieces of chains, and operators.
        residents: the tensors that stay in VTCM between steps.
        qnn_v73_bytes: the bytes that QNN's planner states for an HTP v73; None if it gives no graph, or wasn't asked.
        qnn_v75_bytes: the same for v75.
        plan_seconds: the CPU seconds that planning took, import excluded.
    """

    network: str
    vtcm_mib: int
    needed_bytes: int
    apart_bytes: int | None
    moved_bytes: int
    chains_bytes: int
    steps: int
    residents: int
    qnn_v73_bytes: int | None
    qnn_v75_bytes: int | None
    plan_seconds: float

    @property
    def holds(self) -> bool:
        """Whether all constants and both ends are counted: nothing can move less than what is needed."""
        return self.moved_bytes >= self.needed_bytes


def rows(limits_mib: Sequence[int], python: Path | None, table: Path, path: Path) -> Iterator[Row]:
    """Plan a network under some limits."""
    imported, needed = import_model(path), needed_bytes(onnx.load(path))
    for limit in limits_mib:
        name = named(path)[0]
        stated = asked(python, path, limit) if python else known(table, name, limit)
        started = time.process_time()
        planned = plan(imported, question_of(limit * MIB, "traffic"))
        seconds = time.process_time() - started
        cost = call_cost(planned)
        before = [part.before_bytes for part in cost.parts]
        yield Row(
            network=name,
            vtcm_mib=limit,
            needed_bytes=needed,
            apart_bytes=None if None in before else sum(filter(None, before)),
            moved_bytes=sum(part.after_bytes for part in cost.parts),
            chains_bytes=cost.parts[0].after_bytes,
            steps=len(planned.program.steps),
            residents=len(planned.program.residents),
            qnn_v73_bytes=stated["v73"],
            qnn_v75_bytes=stated["v75"],
            plan_seconds=round(seconds, 1),
        )


def needed_bytes(model: onnx.ModelProto) -> int:
    """Return the bytes of the input, of the output, and of each constant that is no scalar, in codes of 8 bits."""
    ends = [*model.graph.input, *model.graph.output]
    shapes = [[dim.dim_value for dim in end.type.tensor_type.shape.dim] for end in ends]
    constants = [onnx.numpy_helper.to_array(each) for each in model.graph.initializer]
    return sum(map(prod, shapes)) + sum(array.nbytes for array in constants if array.size > 1)


def asked(python: Path, path: Path, limit_mib: int) -> Stated:
    """Ask QNN's planner for the bytes that a network reads and writes in DDR."""
    with TemporaryDirectory() as folder:
        model = Path(copyfile(path, Path(folder) / "network.onnx"))
        accounts = {isa: prepared(python, model, limit_mib, isa)[0] for isa in ARCHITECTURES}
    return {
        isa: None if read is None or written is None else read + written
        for isa, (read, written, *_) in accounts.items()
    }


def known(table: Path, network: str, limit_mib: int) -> Stated:
    """Return what QNN's planner stated before, by a table."""
    found: Stated = dict.fromkeys(ARCHITECTURES)
    if not table.exists():
        return found
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            if (row["network"], row["vtcm_mib"]) == (network, str(limit_mib)):
                found = {
                    isa: int(row[f"qnn_{isa}_bytes"]) if row[f"qnn_{isa}_bytes"] else None for isa in ARCHITECTURES
                }
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(prog="reports.networks_bytes", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="NAME-FORM.onnx files with codes at both ends")
    parser.add_argument("--vtcm", nargs="+", type=int, choices=LIMITS_MIB, default=list(LIMITS_MIB), help="MiB")
    parser.add_argument("--qnn", type=Path, metavar="PYTHON", help="the interpreter that has onnxruntime-qnn")
    parser.add_argument("--csv", type=Path, default=Path("reports/networks_bytes.csv"), help="the table")
    options = parser.parse_args(arguments)
    measured = partial(rows, options.vtcm, options.qnn, options.csv)
    return keep_all(options.models, measured, options.csv, ("network", "vtcm_mib"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
