"""Networks as quantisers write them: each conv gives ONNX's numbers, or says why not."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from hexconv.cli.app import exit_code
from hexconv.model import imported
from hexconv.model.integer import IntegerWeights
from tests.model.drawn import Drawn
from tests.quantisers.draw import draw_quantised
from tests.quantisers.judge import Finding, findings
from tests.quantisers.tensors import NEWEST
from tests.quantisers.tool import draw_by_tool
from tests.quantisers.verified import verify_findings
from tests.verify.saturation import WITNESSED

FEW, MANY, BY_TOOL = 120, 3000, 200
SEED = 7


def _told(indices: range, folder: Path, draw: Callable[[int, int], Drawn] = draw_quantised) -> list[str]:
    found = ((index, each) for index in indices for each in findings(draw(SEED, index), folder))
    return [f"{draw.__name__}({SEED}, {index}): {each}" for index, each in found]


def test_each_conv_gives_onnx_s_numbers_or_says_why_not(tmp_path: Path) -> None:
    assert _told(range(FEW // 2), tmp_path) == []


@pytest.mark.deep
def test_each_conv_of_many_networks_gives_onnx_s_numbers_or_says_why_not(tmp_path: Path) -> None:
    assert _told(range(FEW // 2, MANY), tmp_path) == []


@pytest.mark.deep
def test_each_conv_that_onnx_runtimes_tool_quantises_gives_onnx_s_numbers_or_says_why_not(tmp_path: Path) -> None:
    assert _told(range(BY_TOOL), tmp_path, draw_by_tool) == []


@WITNESSED
def test_verify_finds_no_right_network_wrong(tmp_path: Path) -> None:
    for index in range(0, FEW, 6):
        onnx.save(draw_quantised(SEED, index).model, tmp_path / "model.onnx")
        assert verify_findings(tmp_path / "model.onnx") == [], f"draw_quantised({SEED}, {index})"


def test_what_quantisers_write_is_drawn() -> None:
    models = [draw_quantised(SEED, index).model for index in range(FEW)]
    nodes = [node for model in models for node in model.graph.node]
    ops = Counter(node.op_type for node in nodes)
    wanted = (
        "BatchNormalization Pad Identity Reshape Transpose Sigmoid HardSwish LeakyRelu PRelu Max Min Mul Add Sub Div"
    )
    wanted += " GlobalAveragePool MaxPool Concat QLinearConv QLinearAdd Gemm MatMul ConstantOfShape"
    assert set(wanted.split()) <= ops.keys()
    opsets = {entry.version for model in models for entry in model.opset_import if not entry.domain}
    assert (min(opsets), max(opsets)) >= (10, NEWEST - 2)
    assert any(attribute.name == "block_size" for node in nodes for attribute in node.attribute)
    assert any(node.domain for node in nodes if node.op_type == "DequantizeLinear")
    stored = [tensor for model in models for tensor in model.graph.initializer]
    assert {"INT4", "INT8", "UINT8", "UINT16", "INT16"} <= {
        name for tensor in stored for name, number in type(tensor).DataType.items() if number == tensor.data_type
    }
    biases = [np.frombuffer(tensor.raw_data, "int32") for tensor in stored if tensor.data_type == tensor.INT32]
    assert any(np.abs(bias.astype(np.int64)).max(initial=0) > 2**30 for bias in biases)


def test_one_weight_that_is_another_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees a filter of which one element is off."""
    whole = IntegerWeights.folded

    def off(weights: IntegerWeights, graph: imported.Graph) -> object:
        folded = whole(weights, graph)
        folded.filter[0, 0, 0, 0] ^= 64
        return folded

    monkeypatch.setattr(IntegerWeights, "folded", off)
    found: list[Finding] = [each for index in range(12) for each in findings(draw_quantised(SEED, index), tmp_path)]
    assert sum(each.kind == "wrong" for each in found) >= 5


def _runnable(folder: Path, wanted: int) -> list[str]:
    """Case files of drawn networks: of integers, half of them with a bias that fills int32."""
    plain: list[str] = []
    full: list[str] = []
    for index in range(FEW):
        made = folder / str(index)
        made.mkdir()
        if findings(draw_quantised(SEED, index), made):
            continue
        for weights in sorted((made / "out").glob("*.npz")):
            with np.load(weights) as arrays:
                biases = [arrays[name].astype(np.float64) for name in arrays if name.startswith("bias")]
                is_integer = arrays["filter1"].dtype.kind in "iu"
            is_full = any(np.abs(bias).max() > 2**30 for bias in biases)
            (full if is_full else plain).extend([str(weights.with_suffix(".toml"))] if is_integer else [])
    return [*full[: wanted // 2], *plain[: wanted - wanted // 2]]


@pytest.mark.deep
@pytest.mark.parametrize(("target", "wanted"), [("llvm", 10), pytest.param("hexagon", 8, marks=pytest.mark.simulator)])
def test_code_computes_what_is_taken(target: str, wanted: int, tmp_path: Path) -> None:
    cases = _runnable(tmp_path, wanted)
    assert len(cases) == wanted
    assert [case for case in cases if exit_code(["run", case, "--target", target])] == []
