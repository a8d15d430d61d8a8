"""What ends a chain, what is not taken, and the reason that is given for it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from hexconv.model import Imported, import_model
from tests.draws import LOWERED
from tests.model.answers import saved
from tests.model.builder import OPSET, Builder
from tests.model.quantised import Quantised
from tests.verify.networks import residual


def two_convs(between: str, **attributes) -> onnx.ModelProto:
    net = Builder("pair", (1, 4, 8, 8))
    x = net.node(between, [net.conv("image", (4, 4, 3, 3), "first")], "between", **attributes)
    return net.model(net.conv(x, (4, 4, 3, 3), "second"))


def runs(found: Imported) -> list[tuple[tuple[str, ...], str]]:
    return [(chain.convs, chain.ended_by) for chain in found.network.chain]


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("MaxPool", {"kernel_shape": [1, 1]}, "pools it"),
        ("AveragePool", {"kernel_shape": [1, 1]}, "pools it"),
        ("Softplus", {}, "is no conv, and folds into none"),
        ("Selu", {}, "is no conv, and folds into none"),
        ("LpNormalization", {}, "is no conv, and folds into none"),
    ],
)
def test_other_ops_end_a_chain(op: str, attributes: dict, words: str, tmp_path: Path) -> None:
    found = saved(two_convs(op, **attributes), tmp_path)
    assert runs(found) == [(("first",), op), (("second",), "output")]
    assert found.network.chain[0].reason == f"{op} between {words}"


@pytest.mark.parametrize("op", ["Add", "Mul", "Concat"])
def test_two_tensors_that_join_end_both_chains(op: str, tmp_path: Path) -> None:
    net = Builder("join", (1, 4, 8, 8))
    one, two = net.conv("image", (4, 4, 1, 1), "one"), net.conv("image", (4, 4, 3, 3), "two")
    found = saved(net.model(net.node(op, [one, two], "join", **({"axis": 1} if op == "Concat" else {}))), tmp_path)
    assert runs(found) == [(("one",), op), (("two",), op)]
    assert found.network.chain[0].reason == f"{op} join joins it with another tensor"


def test_a_tensor_that_is_read_twice_or_given_back_ends_a_chain(tmp_path: Path) -> None:
    net = Builder("branches", (1, 4, 8, 8))
    x = net.conv("image", (4, 4, 1, 1), "stem")
    left, right = net.conv(x, (4, 4, 3, 3), "left"), net.conv(x, (4, 4, 1, 1), "right")
    end = net.conv(net.node("Relu", [left]), (4, 4, 1, 1), "end")
    found = saved(net.model(left, right, end), tmp_path)
    assert runs(found) == [(("stem",), "branch"), (("left",), "output"), (("right",), "output"), (("end",), "output")]
    assert found.network.chain[0].reason == "stem_out is read by 2 nodes: Conv left, Conv right"
    # What the model gives back is the sums before the relu, which is no part of the chain then.
    assert found.cases[1].chain.conv[0].activation == "none"


@given(st.sampled_from(["qdq", "qlinear"]), st.booleans(), st.integers(0, 99))
@LOWERED
def test_what_no_output_needs_ends_no_chain(
    tmp_path_factory: pytest.TempPathFactory, form: str, projected: bool, seed: int
) -> None:
    """As what is left of a head that somebody took off a model: a conv of the image, and readers of inner tensors."""
    net, output = residual(form, projected=projected)
    codes, scale, zero = net.nodes[0].output[0], np.float32(0.021), 128
    known = [net.model(output)]
    made = [name for node in net.nodes for name in node.output]
    for name in np.random.default_rng(seed).choice(made, 3):
        net.node("Identity", [net.node("Identity", [name])])
    net.conv8((codes, scale, zero), (4, 3, 3, 3))
    known.append(net.model(output))
    folder = tmp_path_factory.mktemp("dead")
    one, other = (saved(model, folder).joining() for model in known)
    assert [run.tensors for run in one.runs] == [run.tensors for run in other.runs]
    assert one.network.chain == other.network.chain
    assert one.network.operator == other.network.operator
    [left] = other.network.not_taken
    assert left.reason == "no output of the model needs it"


def test_a_chain_of_more_convs_than_a_case_has_goes_on_in_the_next(tmp_path: Path) -> None:
    net, x = Builder("long", (1, 2, 4, 4)), "image"
    for _ in range(75):
        x = net.conv(x, (2, 2, 1, 1))
    found = saved(net.model(x), tmp_path)
    assert [(len(convs), end) for convs, end in runs(found)] == [(64, "limit"), (11, "output")]
    assert found.network.chain[1].input == found.network.chain[0].output


def test_a_pad_that_reflects_is_no_padding(tmp_path: Path) -> None:
    net = Builder("reflect", (1, 4, 8, 8))
    x = net.conv("image", (4, 4, 1, 1), "first")
    x = net.node("Pad", [x, net.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64")], "pad", mode="reflect")
    found = saved(net.model(net.conv(x, (4, 4, 3, 3), "second", pads=[0, 0, 0, 0])), tmp_path)
    assert runs(found) == [(("first",), "Pad"), (("second",), "output")]
    assert found.cases[1].chain.input == (1, 10, 10, 4)


def not_taken(model: onnx.ModelProto, folder: Path) -> str:
    found = saved(model, folder).network
    assert found.chain == ()
    assert len(found.not_taken) == 1
    return found.not_taken[0].reason


@pytest.mark.parametrize(
    ("image", "filter", "attributes", "words"),
    [
        ((1, 4, 9), (4, 4, 3), {"pads": [1, 1], "strides": [1, 1]}, "strides [1, 1]"),
        ((1, 4, 5, 5, 5), (4, 4, 3, 3, 3), {"pads": [1] * 6}, "a 3-D conv, over [1, 4, 5, 5, 5]"),
        (
            ("N", 4, 8, 8),
            (4, 4, 3, 3),
            {},
            "the model's input image [N, 4, 8, 8] has open sizes: say them, --shape image=1,4,8,8",
        ),
        (
            (0, 4, 8, 8),
            (4, 4, 3, 3),
            {},
            "the model's input image [0, 4, 8, 8] has a size of 0: say sizes of 1 or more, --shape image=1,4,8,8",
        ),
        ((1, 4, 8, 8), (4, 4, 3, 3), {"pads": [0, -1, 0, 0]}, "its padding is [0, -1, 0, 0]"),
        ((1, 4, 8, 8), (4, 3, 3, 3), {}, "1 groups of 3 channels over an input of 4"),
        ((1, 4, 8, 8), (3, 2, 3, 3), {"group": 2}, "2, which leaves 1 of the 3 channels of its output"),
        ((1, 4, 2, 2), (4, 4, 5, 5), {"pads": [0] * 4}, "reads 5 rows"),
    ],
)
def test_convs_that_are_not_taken(image, filter, attributes, words: str, tmp_path: Path) -> None:
    net = Builder("refused", image)
    assert words in not_taken(net.model(net.conv("image", filter, "conv", **attributes)), tmp_path)


def test_a_filter_that_the_model_computes_is_no_filter(tmp_path: Path) -> None:
    net = Builder("dynamic", (3, 3, 3, 3))
    reason = not_taken(net.model(net.node("Conv", ["image", "image"])), tmp_path)
    assert reason == "its filter image depends on the model's input; filters are constants here"


@pytest.mark.parametrize("op", ["ConvTranspose", "com.example.FusedConv"])
def test_other_convolutions_are_named(op: str, tmp_path: Path) -> None:
    net = Builder("other", (1, 4, 8, 8))
    domain, _, kind = op.rpartition(".")
    made = net.node(kind, ["image", net.weights(4, 4, 3, 3)], "conv", domain=domain)
    outputs = [helper.make_tensor_value_info(made, TensorProto.FLOAT, list("nchw"))]
    graph = helper.make_graph(net.nodes, "g", net.inputs, outputs, net.initializers)
    versions = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(domain, 1)] if domain else [])]
    reason = not_taken(helper.make_model(graph, opset_imports=versions), tmp_path)
    assert reason.startswith(f"{op} is no conv2d that a chain can have")


def test_convs_in_the_body_of_a_branch_are_named(tmp_path: Path) -> None:
    inner = Builder("then", (1, 4, 8, 8))
    result = inner.conv("image", (4, 4, 1, 1), "hidden")
    info = helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, 4, 8, 8])
    body = helper.make_graph(inner.nodes, "then", [], [info], inner.initializers)
    net = Builder("branching", (1, 4, 8, 8))
    x = net.conv("image", (4, 4, 1, 1), "outside")
    net.node("Identity", [x])
    choice = net.node("If", [net.constant(True)], "if", then_branch=body, else_branch=body)
    found = saved(net.model(choice, x), tmp_path)
    assert runs(found) == [(("outside",), "output")]
    assert [conv.reason for conv in found.network.not_taken] == [
        "it is inside of If if; chains are found in the graph itself"
    ] * 2


def test_what_a_body_reads_from_outside_is_read(tmp_path: Path) -> None:
    net = Builder("captured", (1, 4, 8, 8))
    x = net.conv("image", (4, 4, 1, 1), "first")
    info = helper.make_tensor_value_info("copy", TensorProto.FLOAT, [1, 4, 8, 8])
    body = helper.make_graph([helper.make_node("Identity", [x], ["copy"])], "then", [], [info])
    choice = net.node("If", [net.constant(True)], "if", then_branch=body, else_branch=body)
    found = saved(net.model(net.conv(x, (4, 4, 1, 1), "second"), choice), tmp_path)
    assert runs(found)[0] == (("first",), "branch")


def test_functions_of_the_model_are_looked_into(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["y"])]
    function = helper.make_function("local", "Block", ["x", "w"], ["y"], nodes, [helper.make_opsetid("", OPSET)])
    net = Builder("functions", (1, 4, 8, 8))
    net.node("Block", ["image", net.weights(4, 4, 3, 3)], "block", domain="local")
    output = helper.make_tensor_value_info("block_out", TensorProto.FLOAT, ["a", "b", "c", "d"])
    graph = helper.make_graph(net.nodes, "g", net.inputs, [output], net.initializers)
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    found = saved(helper.make_model(graph, opset_imports=versions, functions=[function]), tmp_path)
    assert [case.chain.conv[0].activation for case in found.cases] == ["relu"]


def test_an_open_batch_is_closed_by_a_shape(tmp_path: Path) -> None:
    net = Builder("open", ("N", 3, "H", 9))
    onnx.save(net.model(net.conv("image", (4, 3, 3, 3))), tmp_path / "m.onnx")
    found = import_model(tmp_path / "m.onnx", {"image": [2, 3, 7, 9]})
    assert [case.chain.shapes for case in found.cases] == [((2, 7, 9, 3), (2, 7, 9, 4))]


def test_filters_may_be_computed_from_constants(tmp_path: Path) -> None:
    net = Builder("folded", (1, 4, 8, 8))
    half = net.node("Cast", [net.weights(3, 3, 4, 4)], to=TensorProto.FLOAT16)
    filter = net.node("Transpose", [net.node("Cast", [half], to=TensorProto.FLOAT)], perm=[2, 3, 0, 1])
    found = saved(net.model(net.node("Conv", ["image", filter], pads=[1, 1, 1, 1])), tmp_path)
    assert found.weights(0)["filter1"].shape == (4, 4, 3, 3)


def test_scales_along_another_axis_than_that_of_outputs_are_named(tmp_path: Path) -> None:
    net = Quantised("channels", (1, 4, 6, 6), "uint8")
    filter = net.constant(net.integers((4, 4, 1, 1), "int8"), "int8")
    scales = net.constant([0.1, 0.2, 0.3, 0.4], "float32")
    weights = net.node("DequantizeLinear", [filter, scales], axis=1)
    x = net.node("Conv", [net.dequantize("image", 0.1, 3), weights], "conv")
    reason = not_taken(net.model(net.quantize(x, 0.1, 0)), tmp_path)
    assert reason == (
        "its filter of [4, 4, 1, 1] has scales that differ within an output channel, along axis 1; a chain has one for "
        "each output channel: quantise it per channel"
    )


def test_integer_convs_that_disagree_on_a_zero_point_are_two_chains(tmp_path: Path) -> None:
    net = Quantised("zeros", (1, 8, 6, 6), "uint8")
    x = net.qlinear("image", (8, 8, 1, 1), (3, 128, 40), name="first")
    found = saved(net.model(net.qlinear(x, (8, 8, 1, 1), (41, 128, 0), name="second")), tmp_path)
    assert runs(found) == [(("first",), "QLinearConv"), (("second",), "output")]
    assert "reads first_out with the zero point 41; it is written with 40" in found.network.chain[0].reason


def test_a_dequantised_tensor_that_is_read_twice_ends_a_chain(tmp_path: Path) -> None:
    net = Quantised("shared", (1, 8, 6, 6), "uint8")
    x = net.dequantize(net.quantize(net.qdq("image", (8, 8, 1, 1), 3, name="first"), 0.5, 0), 0.5, 0)
    filter = net.node("DequantizeLinear", [net.constant(net.integers((8, 8, 1, 1), "int8")), net.scale(0.1)])
    y = net.node("Conv", [x, filter], "second")
    found = saved(net.model(net.node("Add", [y, x], "add")), tmp_path)
    assert runs(found) == [(("first",), "branch"), (("second",), "Add")]
    assert found.cases[1].chain.dtype == "uint8"


@pytest.mark.parametrize("is_quantised", [True, False])
def test_only_of_what_leads_to_a_quantiser_it_is_said_why_it_does_not_fold(is_quantised: bool, tmp_path: Path) -> None:
    net = Quantised("pooled", (1, 8, 6, 6), "uint8")
    pooled = net.node("MaxPool", [net.qdq("image", (8, 8, 1, 1), 3)], "pool", kernel_shape=[2, 2])
    found = saved(net.model(net.quantize(pooled, 0.5, 0) if is_quantised else pooled), tmp_path)
    assert ("is no scale, shift or clamp" in found.network.chain[0].reason) == is_quantised


def test_a_float_conv_before_a_quantised_one_ends_at_the_quantisation(tmp_path: Path) -> None:
    net = Quantised("mixed", (1, 8, 6, 6), "uint8")
    net.inputs[0].type.tensor_type.elem_type = net.dtype = TensorProto.FLOAT
    x = net.quantize(net.conv("image", (8, 8, 1, 1), "float"), 0.5, 0)
    found = saved(net.model(net.quantize(net.qdq(x, (8, 8, 1, 1), 0, name="integer"), 0.5, 0)), tmp_path)
    assert [case.chain.dtype for case in found.cases] == ["float32", "uint8"]
    assert found.network.chain[0].reason.endswith("makes it uint8")
