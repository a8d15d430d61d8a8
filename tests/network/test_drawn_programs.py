"""Drawn programs: each step by numpy means what ONNX says; C on both targets gives numpy's bytes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hexconv.model import import_model
from hexconv.network import Wanted, answer
from hexconv.network.nodes import TABLE
from hexconv.network.program_steps import Operation, moved_bytes
from hexconv.verify import Asked, verify_network
from tests.network.drawn_programs import OPERATORS, draw_program
from tests.network.judged_programs import Apart, judged_program
from tests.quantisers.verified import unplanned

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

SEED, FEW, MANY = 5, 24, 600


def wrong(indices: range, folder: Path) -> list[tuple[int, Apart]]:
    found = ((index, each) for index in indices for each in judged_program(draw_program(SEED, index), folder))
    return [(index, each) for index, each in found if each.wrong]


def test_each_step_of_drawn_programs_is_what_onnx_says(tmp_path: Path) -> None:
    assert wrong(range(FEW), tmp_path) == []


@pytest.mark.deep
def test_each_step_of_many_drawn_programs_is_what_onnx_says(tmp_path: Path) -> None:
    assert wrong(range(FEW, MANY), tmp_path) == []


def test_each_operator_is_drawn() -> None:
    assert set(TABLE) == {*OPERATORS, "Upsample"}
    models = [draw_program(SEED, index).model for index in range(300)]
    drawn = {f"{node.domain}.{node.op_type}".strip(".") for model in models for node in model.graph.node}
    assert set(TABLE) <= drawn
    assert max(len(model.graph.output) for model in models) > 2 < max(len(model.graph.input) for model in models)


def test_import_tells_the_bytes_that_steps_move(tmp_path: Path) -> None:
    """Of operators; a Gather and its quantiser are two steps."""
    held = 0
    for index in range(FEW):
        onnx.save(draw_program(SEED, index).model, tmp_path / "program.onnx")
        imported = import_model(tmp_path / "program.onnx")
        program = unplanned(imported, Wanted(1 << 20, "llvm").question).as_read
        moved = {step.node: moved_bytes(step) for step in program.computed if isinstance(step, Operation)}
        for entry in imported.network.operator:
            if entry.node in moved and entry.op != "Gather":
                reads, writes = moved[entry.node]
                assert (entry.writes_bytes, entry.reads_bytes >= reads) == (writes, True), f"{index}: {entry}"
                held += 1
    assert held > 4 * FEW


@pytest.mark.parametrize("operator", ["add", "map", "average_pool", "matmul"])
def test_an_operator_that_is_wrong_is_found(operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = answer.OPERATORS[operator]

    def off(right: Callable[..., Any], *told: Any) -> np.ndarray:
        return right(*told) * np.float32(1.02)

    monkeypatch.setitem(answer.OPERATORS, operator, partial(off, right))
    assert any(wrong(range(index, index + 1), tmp_path) for index in range(60))


@pytest.mark.parametrize(
    ("target", "indices"),
    [
        ("llvm", range(2)),
        pytest.param("llvm", range(2, 40), marks=pytest.mark.deep),
        pytest.param("hexagon", range(40, 44), marks=[pytest.mark.deep, pytest.mark.simulator]),
    ],
)
def test_code_gives_numpys_bytes(target: Any, indices: range, tmp_path: Path) -> None:
    for index in indices:
        onnx.save(draw_program(SEED, index).model, tmp_path / "program.onnx")
        verdict = verify_network(tmp_path / "program.onnx", Asked(Wanted(1 << 20, target), workers=1))
        runs = [step.run for step in verdict.steps if step.run]
        assert runs, f"draw_program({SEED}, {index})"
        assert [run for run in runs if not run.holds] == [], f"draw_program({SEED}, {index})"
