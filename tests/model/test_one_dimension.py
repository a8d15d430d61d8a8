"""1-D convs, which chains have as convs over images of height 1, against ONNX's own evaluator."""

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto

from tests.model.answers import chain_errors, integer_errors, saved
from tests.model.builder import Builder
from tests.model.quantised import Quantised

WINDOWS: list[dict[str, Any]] = [
    {},
    {"pads": [2, 1], "kernel_shape": [4]},
    {"strides": [3], "dilations": [2], "pads": [0, 3]},
    {"auto_pad": "SAME_UPPER", "strides": [2]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID", "dilations": [3]},
    {"group": 2, "pads": [1, 1]},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_float_convs_fold_what_has_one_value_a_channel(window: dict[str, Any], tmp_path: Path) -> None:
    net = Builder("wave", (2, 6, 19))
    groups = window.get("group", 1)
    x = net.node("Conv", ["image", net.weights(6, 6 // groups, 4), net.weights(6)], **window)
    x = net.node("Mul", [net.batch_norm(x, 6), net.constant(net.random.uniform(1, 2, (6, 1)), "float32")])
    x = net.node("PRelu", [x, net.constant(net.random.uniform(-1, 1, (6, 1)), "float32")])
    model = net.model(net.node("Conv", [x, net.weights(3, 6, 1)]))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    assert found.cases[0].chain.input == (2, 1, 19, 6)
    assert max(chain_errors(model, found)) < 1e-5


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("form", ["qdq", "qlinear", "integer"])
def test_quantised_convs_are_within_one_of_onnx(form: str, window: dict[str, Any], tmp_path: Path) -> None:
    net = Quantised("wave", (1, 8, 23), "uint8")
    shape = (6, 8 // window.get("group", 1), 4)
    if form == "qdq":
        x = net.quantize(net.node("Relu", [net.qdq("image", shape, 7, **window)]), 0.3, 5)  # pyright: ignore[reportArgumentType]
    elif form == "qlinear":
        x = net.qlinear("image", shape, (7, 3, 5), filter_dtype="int8", **window)  # pyright: ignore[reportArgumentType]
    else:
        filter = net.constant(net.integers(shape, "int8"), "int8")
        x = net.node("ConvInteger", ["image", filter, net.zero(7), net.zero(-3, "int8")], **window)
    model = net.model(x)
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [1]
    assert max(integer_errors(model, found)) <= (form != "integer")


@pytest.mark.parametrize("shape", [(6, 1, 1), (1, 6, 1, 1), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("op", ["Add", "Mul", "Max"])
def test_what_another_axis_of_constants_broadcasts_to_is_no_chain_s_result(
    op: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Constants for NCHW behind a 1-D conv make another tensor of its result."""
    net = Builder("wide", (1, 4, 9))
    x = net.node("Conv", ["image", net.weights(6, 4, 3)], "conv")
    model = net.model(net.node(op, [x, net.constant(net.random.uniform(1, 2, shape), "float32")]))
    found = saved(model, tmp_path)
    assert [entry.output for entry in found.network.chain] == ["conv_out"]
    assert max(chain_errors(model, found)) < 1e-5


def test_a_1_d_conv_runs_into_a_2_d_one_through_other_chains(tmp_path: Path) -> None:
    net = Builder("both", (1, 4, 9))
    x = net.node("Conv", ["image", net.weights(6, 4, 3)], "flat")
    x = net.node("Unsqueeze", [x, net.constant([2], "int64")])
    model = net.model(net.node("Conv", [x, net.weights(2, 6, 1, 3)], "deep"))
    found = saved(model, tmp_path)
    assert [chain.convs for chain in found.network.chain] == [("flat",), ("deep",)]
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert max(chain_errors(model, found)) < 1e-5
