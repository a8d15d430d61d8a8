"""What a call moves outside of chains: counted from the graph, it is what the steps of its program move."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from hexconv.analyze import planned_work
from hexconv.model import Manifest, import_model, write_network
from hexconv.model.manifest import OperatorEntry
from hexconv.model.unfused import unfused_lines
from hexconv.network.program_steps import moved_bytes
from hexconv.run.tensors import random_tensors
from hexconv.search import Question, plan_all
from tests.network.models import OPERATORS, OneOperator, as_read, saved
from tests.verify.networks import residual

MIB = 1 << 20
COPIES_BETWEEN_LAYOUTS = (
    "flattened",
    "matmul",
    "gemm",
    "gemm_of_blocks",
    "gemm_of_blocks_of_inputs",
    "in_one_dimension",
)
"""Their programs also convert NHWC to the model's own order."""
WITH_CONSTANTS = ("constant", "clip", "resize", "conv_transpose", "quantised")


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in COPIES_BETWEEN_LAYOUTS])
def test_operators_move_what_the_steps_of_the_program_move(name: str, tmp_path: Path) -> None:
    net = OneOperator()
    path = saved(net, [OPERATORS[name](net)], tmp_path / f"{name}.onnx")
    entries = import_model(path).network.operator
    steps = as_read(path)
    assert [entry.writes_bytes for entry in entries] == [step.result.bytes for step in steps]
    for entry, step in zip(entries, steps, strict=True):
        constants = entry.reads_bytes - moved_bytes(step)[0]
        assert 0 <= constants < 4096
        assert constants == 0 or any(
            word in name for word in ("constant", "clip", "resize", "conv_transpose", "quantised")
        )


def test_a_network_moves_what_its_chains_vectors_and_operators_move(tmp_path: Path) -> None:
    net, output = residual()
    imported = import_model(saved(net, [output], tmp_path / "small.onnx"))
    write_network(imported, tmp_path / "net")
    manifest = Manifest.load(tmp_path / "net")
    assert manifest.operator == imported.network.operator
    planned = plan_all(imported.cases, Question(MIB), manifest)
    total = planned.total
    alone = plan_all(imported.cases, Question(MIB)).total
    given = [random_tensors(case.chain) for case in imported.cases]
    vectors = [array for each in given for array in (*each.biases, *each.vectors.values()) if array is not None]
    assert total.vectors_bytes == sum(array.nbytes for array in vectors) > 0
    cuts = [answer.cuts.best for answer in planned.planned]
    pieces = [piece for cut in cuts if cut for piece in cut.pieces]
    works = [planned_work(piece.chain, piece.figures.plan).traffic_bytes for piece in pieces]
    assert total.chains_after_bytes == sum(sum(work.values()) for work in works)
    assert sum(work[name] for work in works for name in work if name.startswith("bias")) > 0
    assert total.operators_before_bytes == total.operators_after_bytes == manifest.operators_bytes > 0
    for whole, chains, apart in (
        (total.before_bytes, total.chains_before_bytes, alone.before_bytes),
        (total.after_bytes, total.chains_after_bytes, alone.after_bytes),
    ):
        assert whole is not None
        assert chains is not None
        assert chains == apart
        assert whole == chains + total.operators_after_bytes
    assert total.saved_bytes == alone.saved_bytes
    assert alone.operators == alone.operators_after_bytes == 0


def test_operators_that_are_not_named_move_the_rest() -> None:
    sizes = {
        "Add": 500_000,
        "Concat": 40_000,
        "MaxPool": 3000,
        "Resize": 200,
        "Softmax": 10,
        "Tanh": 7,
        "Sqrt": 5,
        "Exp": 1,
    }
    with pytest.raises(ValidationError):
        OperatorEntry(node="Exp", op="Exp", reads_bytes=2**63, writes_bytes=0, elements=1)
    entries = [
        OperatorEntry(node=op, op=op, reads_bytes=size, writes_bytes=0, elements=1) for op, size in sizes.items()
    ]
    [line] = unfused_lines(entries)
    assert f"8 operators move {sum(sizes.values())} bytes a call" in line
    assert sum(int(size) for size in re.findall(r" (\d+)(?:,|$)", line)) == sum(sizes.values())
