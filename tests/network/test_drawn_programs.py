"""Drawn programs: each step by numpy means what ONNX says; C on both targets gives numpy's bytes."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hexconv.model import import_model
from hexconv.network import Wanted
from hexconv.network.answer import answer
from hexconv.network.built_network import read_network
from hexconv.network.operator_table import OPERATORS as COMPUTED
from hexconv.network.operator_table import TABLE
from hexconv.network.program_steps import Operation, Step, Window, moved_bytes
from hexconv.verify import Asked, verify_network
from tests.network.drawn_programs import OPERATORS, Programs, draw_program
from tests.network.judged_programs import Apart, judged_program
from tests.quantisers.tensors import Real
from tests.quantisers.verified import unplanned

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

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


SHAPE: tuple[int, ...] = (1, 3, 20, 20)
SELECTS = ("Transpose", "Slice", "Split", "Gather", "SpaceToDepth", "MaxPool", "joined")


class Floats(Programs):
    """A builder on an image of floats, quantised."""

    FORMS, FLOAT_IMAGES = ("qdq",), 1.0

    def __init__(self, index: int) -> None:
        super().__init__(np.random.default_rng([SEED, index]))
        self.inputs = [onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, SHAPE)]
        self.codes_of_image = self.quantised(Real("image", SHAPE))

    def planned(self, made: Real, path: Path) -> tuple[Step, ...]:
        """The steps of the program, with this result quantised."""
        onnx.save(self.ended_by([self.real(self.quantised(made))]), path)
        return unplanned(import_model(path), Wanted(1 << 20, "llvm").question).open_program.steps


@pytest.mark.parametrize("by", [None, (), (1, -1, 1, 1)], ids=["", "divided", "divided by channel"])
def test_numbers_that_are_selected_are_codes(by: tuple[int, ...] | None, tmp_path: Path) -> None:
    """Real numbers that move, or of which the largest are taken, before they are quantised: none lies in memory."""
    for index in range(8):
        net = Floats(index)
        at, sizes = net.real(net.codes_of_image).name, list(SHAPE)
        if by is not None:
            numbers = net.random.uniform(0.5, 2, 3 if by else ()).reshape(by)
            at = net.node("Div", [at, net.constant(numbers, "float32")])
        for how in net.random.choice(SELECTS, net.upto(3)):
            at, sizes = net.selected(str(how), at, sizes)
        steps = net.planned(Real(at, tuple(sizes)), tmp_path / "program.onnx")
        between = [operand.dtype for step in steps for operand in (*step.sources[:1], step.result)]
        assert between.count("float32") == 2, f"{index}: {between}"


@pytest.mark.parametrize(
    ("pool", "is_read"), [("GlobalAveragePool", False), ("AveragePool", False), ("AveragePool", True)]
)
def test_sums_that_are_averaged_alone_are_averaged_at_once(pool: str, is_read: bool, tmp_path: Path) -> None:
    net = Floats(0)
    one = net.real(net.codes_of_image)
    other = net.real(net.quantised(net.relu(one)))
    sums = net.relu(Real(net.node("Add", [one.name, other.name]), SHAPE))
    told: dict[str, Any] = {"kernel_shape": SHAPE[2:]} if pool == "AveragePool" else {}
    mean = net.node(pool, [sums.name], **told)
    if is_read:
        mean = net.node("Mul", [sums.name, mean])
    steps = net.planned(Real(mean, SHAPE if is_read else (*SHAPE[:2], 1, 1)), tmp_path / "program.onnx")
    names = [step.operator for step in steps if isinstance(step, Operation)]
    assert ("average_of_sum" in names, "add" in names) == (not is_read, is_read)


@pytest.mark.parametrize("kernels", [(13, 9, 5), (5, 13, 9), (9, 5, 4)])
def test_maxima_of_larger_windows_are_found_among_those_of_smaller_ones(kernels: Sequence[int], tmp_path: Path) -> None:
    """Held against ONNX Runtime, node by node; a window of an even size has more padding at one side."""
    net = Floats(0)
    codes = net.real(net.codes_of_image).name
    made = []
    for kernel in kernels:
        first, last = (kernel - 1) // 2, kernel // 2
        made.append(net.node("MaxPool", [codes], kernel_shape=[kernel] * 2, pads=[first, first, last, last]))
    shape = (SHAPE[0], len(kernels) * SHAPE[1], *SHAPE[2:])
    path = tmp_path / "program.onnx"
    steps = net.planned(Real(net.node("Concat", made, axis=1), shape), path)
    taps = [step.told(Window).kernel for step in steps if isinstance(step, Operation) and step.operator == "max_pool"]
    whole = sorted((kernel, kernel) for kernel in kernels)
    assert taps == [whole[0], *((b - a + 1, b - a + 1) for (a, _), (b, _) in itertools.pairwise(whole))]
    image = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    [found] = answer(read_network(path, Wanted(1 << 20, "llvm")), {"image": image}).values()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    [wanted] = onnxruntime.InferenceSession(str(path), options).run(None, {"image": image})
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("is_in_order", [True, False], ids=["in order", "in another order"])
@pytest.mark.parametrize("is_used_apart", [True, False], ids=["used apart", ""])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_parts_of_a_split_side_by_side_are_the_whole(
    axis: int, is_in_order: bool, is_used_apart: bool, tmp_path: Path
) -> None:
    """A concat of all parts in their order reads what was split; a part that is read elsewhere is copied, too."""
    net = Floats(axis)
    real = net.real(net.codes_of_image)
    parts = net.parts(real, axis)
    pooled = net.node("MaxPool", [real.name], kernel_shape=[1, 1])
    more = [net.node("Neg", [parts[0].name])] if is_used_apart else []
    names = [pooled, *(part.name for part in (parts if is_in_order else parts[::-1])), *more]
    sizes = list(SHAPE)
    sizes[axis] = 2 * SHAPE[axis] + (parts[0].shape[axis] if more else 0)
    steps = net.planned(Real(net.node("Concat", names, axis=axis), tuple(sizes)), tmp_path / "program.onnx")
    copies = [step for step in steps if isinstance(step, Operation) and step.operator == "view"]
    assert len(copies) == (0 if is_in_order else len(parts)) + (is_in_order and is_used_apart)


@pytest.mark.parametrize("operator", ["add", "map", "average_pool", "matmul"])
def test_an_operator_that_is_wrong_is_found(operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = COMPUTED[operator]

    def off(right: Callable[..., Any], *told: Any) -> np.ndarray:
        return right(*told) * np.float32(1.02)

    monkeypatch.setitem(COMPUTED, operator, replace(right, reals=partial(off, right.reals)))
    assert any(wrong(range(index, index + 1), tmp_path) for index in range(60))


@pytest.mark.parametrize(
    ("target", "indices"),
    [
        ("llvm", range(1)),
        pytest.param("llvm", range(1, 40), marks=pytest.mark.deep),
        pytest.param("hexagon", range(40, 44), marks=[pytest.mark.deep, pytest.mark.simulator]),
    ],
)
def test_code_gives_numpys_bytes(target: Any, indices: range, tmp_path: Path) -> None:
    for index in indices:
        onnx.save(draw_program(SEED, index).model, tmp_path / "program.onnx")
        verdict = verify_network(tmp_path / "program.onnx", Asked(Wanted(1 << 20, target, isa="v67"), workers=1))
        runs = [step.run for step in verdict.steps if step.run]
        assert runs, f"draw_program({SEED}, {index})"
        assert [run for run in runs if not run.holds] == [], f"draw_program({SEED}, {index})"
