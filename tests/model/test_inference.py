"""Types that ONNX's inference misses: shapes that depend on constants, outputs without a shape, other domains."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hexconv.cli.app import exit_code
from hexconv.model import import_model
from hexconv.model.onnx_file import inferred
from tests.model.answers import chain_errors, integer_errors, saved
from tests.model.builder import Builder
from tests.model.quantised import Quantised

Capture = pytest.CaptureFixture[str]


def torch_pad(net: Builder, source: str, amounts: tuple[int, ...], rank: str = "constant") -> str:
    """Pad as PyTorch exports it: its amounts, which are for the last axes first, are turned into ONNX's order."""
    zeros = net.constant([8 - len(amounts)], "int64")
    if rank == "of the shape":
        axes = net.node("Gather", [net.node("Shape", [net.node("Shape", [source])]), net.constant([0], "int64")])
        twice = net.node("Mul", [axes, net.constant([2], "int64")])
        zeros = net.node("Sub", [twice, net.constant([len(amounts)], "int64")])
    rest = net.node("ConstantOfShape", [zeros], value=helper.make_tensor("value", TensorProto.INT64, [1], [0]))
    pairs = net.node(
        "Reshape", [net.node("Concat", [net.constant(amounts, "int64"), rest], axis=0), net.constant([-1, 2], "int64")]
    )
    ends = [net.constant([number], "int64") for number in (-1, -(2**63) + 1, 0, -1)]
    turned = net.node("Transpose", [net.node("Slice", [pairs, *ends])], perm=[1, 0])
    flat = net.node("Reshape", [turned, net.constant([-1], "int64")])
    return net.node("Pad", [source, net.node("Cast", [flat], to=TensorProto.INT64)])


@pytest.mark.parametrize("rank", ["constant", "of the shape"])
def test_the_amounts_of_pytorch_s_pad_are_folded_before_shapes_are_inferred(rank: str, tmp_path: Path) -> None:
    net = Builder("pad", (1, 3, 16, 18), seed=1, opset=17)
    x = torch_pad(net, net.conv("image", (4, 3, 3, 3), "first"), (0, 1, 2, 3), rank)
    model = net.model(net.conv(x, (2, 4, 3, 3), "second", strides=[2, 2], pads=[0] * 4))
    found = saved(model, tmp_path)
    assert [case.chain.shapes for case in found.cases] == [((1, 16, 18, 3), (1, 16, 18, 4), (1, 10, 9, 2))]
    assert max(chain_errors(model, found)) < 1e-5


def test_types_go_back_into_the_model_and_nothing_else(tmp_path: Path) -> None:
    net = Builder("pad", (1, 3, 16, 18), opset=17)
    model = net.model(torch_pad(net, "image", (1, 1)))
    found = inferred(model, tmp_path)
    assert [dim.dim_value for dim in found.graph.output[0].type.tensor_type.shape.dim] == [1, 3, 16, 20]
    assert list(found.graph.node) == list(model.graph.node)
    assert list(found.graph.initializer) == list(model.graph.initializer)


def test_large_constants_that_shapes_would_depend_on_are_left(tmp_path: Path) -> None:
    net = Builder("large", (1, 3, 8, 8))
    ones = net.node("ConstantOfShape", [net.constant([2**29], "int64")])
    most = net.node("Cast", [net.node("ReduceMax", [ones], keepdims=0)], to=TensorProto.INT64)
    x = net.node("Pad", ["image", net.node("Expand", [most, net.constant([8], "int64")])])
    found = saved(net.model(net.conv(x, (4, 3, 1, 1), "conv")), tmp_path)
    [refused] = found.network.not_taken
    assert refused.reason.endswith("is too large to fold, or of unknown size")


@pytest.mark.parametrize("data", ["inside", "beside", "elsewhere"])
def test_an_output_without_a_shape_is_inferred(data: str, tmp_path: Path, capsys: Capture) -> None:
    net = Builder("bare", (1, 3, 6, 6))
    model = net.model(net.conv("image", (4, 3, 3, 3), "conv"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    path, folder = tmp_path / "deep" / "m.onnx", str(tmp_path / "out")
    path.parent.mkdir()
    if data == "inside":
        onnx.save(model, path)
    else:
        onnx.save(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    if data == "elsewhere":
        changed = onnx.load(path, load_external_data=False)
        (path.parent / "m.bin").rename(tmp_path / "m.bin")
        changed.graph.initializer[0].external_data[0].value = "../m.bin"
        path.write_bytes(changed.SerializeToString())
        assert exit_code(["import", str(path), "-o", folder, "--weights"]) == 2
        assert "m.bin" in capsys.readouterr().err
        return
    assert exit_code(["import", str(path), "-o", folder, "--weights"]) == 0
    assert import_model(path).cases[0].chain.shapes[-1] == (1, 6, 6, 4)


def test_open_sizes_are_told_once_with_what_to_say(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("open", ("batch", 3, "height", 32))
    x = net.conv(net.conv("image", (4, 3, 3, 3), "one"), (4, 4, 3, 3), "two")
    onnx.save(net.model(net.conv(net.node("Sigmoid", [x]), (4, 4, 3, 3), "three")), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
    said = "".join(capsys.readouterr())
    assert (
        said.count("the model's input image [batch, 3, height, 32] has open sizes: say them, --shape image=1,3,224,32")
        == 1
    )
    shape = ["--shape", "image=1,3,224,32"]
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), *shape]) == 0


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8"])
def test_quantisers_of_onnx_runtime_s_domain_are_onnx_s_own(dtype: str, tmp_path: Path) -> None:
    """In a model of opset 17, whose own have no 16 bits; ONNX's evaluator gets one of opset 21, whose have."""
    net = Quantised("contributed", (1, 3, 8, 8), dtype)
    zero = {"uint16": 2**15}.get(dtype, 0)
    x = net.quantize(net.qdq("image", (8, 3, 3, 3), zero, "int32"), 0.02, zero)
    own = net.model(net.quantize(net.qdq(x, (4, 8, 3, 3), zero), 0.02, zero))
    model = onnx.ModelProto()
    model.CopyFrom(own)
    for node in model.graph.node:
        node.domain = "com.microsoft" if "Linear" in node.op_type else ""
    model.graph.ClearField("value_info")
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    found, same = saved(model, tmp_path), saved(own, tmp_path)
    assert [case.chain for case in found.cases] == [case.chain for case in same.cases]
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    assert all(np.array_equal(found.weights(0)[name], value) for name, value in same.weights(0).items())
    if dtype != "uint16":  # whose codes a chain has as int16
        assert max(integer_errors(own, found)) <= 1


def test_an_optimised_model_is_told_once_with_its_first_operator(tmp_path: Path, capsys: Capture) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    net = Builder("fused", (1, 3, 8, 8), opset=17)
    x = net.node("Relu", [net.conv("image", (4, 3, 3, 3), "one")])
    onnx.save(net.model(net.conv(x, (4, 4, 3, 3), "two")), tmp_path / "plain.onnx")
    for level in ("ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = runtime.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "m.onnx")
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
        options.log_severity_level = 4  # it warns that such a model is for this machine
        runtime.InferenceSession(str(tmp_path / "plain.onnx"), options, providers=["CPUExecutionProvider"])
        assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
        said = capsys.readouterr().out
        assert said.count("export the model without ONNX Runtime's optimisation") in (1, 2)  # once for each operator
        first = next(node for node in onnx.load(tmp_path / "m.onnx").graph.node if "Conv" in node.op_type)
        assert f"made {first.domain}.{first.op_type} {first.name}, the first of " in said
