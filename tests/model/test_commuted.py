"""Quantisers are commuted with what only moves or pads values, and quantised convs that stay floats are told."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from hexconv.model import Imported
from hexconv.model.onnx_file import load_model
from tests.model.answers import integer_errors, saved
from tests.model.quantised import Quantised

SHAPE = (4, 8, 3, 3)


def conv(net: Quantised, image: str, filter: str = "", name: str = "conv") -> str:
    codes = net.constant(net.integers(SHAPE, "int8"), "int8")
    filter = filter or net.node("DequantizeLinear", [codes, net.scale(0.03), net.zero(0, "int8")])
    return net.node("Conv", [image, filter], name)


def ones(net: Quantised) -> str:
    return net.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64")


def read(net: Quantised, *outputs: str, folder: Path) -> Imported:
    """What is imported of a model; the model as it is read is valid, and gives the same outputs."""
    model = net.model(*outputs)
    found, read = saved(model, folder), load_model(folder / "model.onnx")
    onnx.checker.check_model(read, full_check=True)
    shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
    feed = {"image": net.integers(tuple(shape), net.integer)}
    for one, two in zip(*(ReferenceEvaluator(each).run(None, feed) for each in (model, read)), strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(two))
    assert max(integer_errors(read, found), default=0) <= 1
    return found


@pytest.mark.parametrize("rescaled", [False, True])
def test_pads_between_convs_and_their_quantisers_are_padding(rescaled: bool, tmp_path: Path) -> None:
    net = Quantised("pads", (1, 8, 9, 9), "uint8")
    made = conv(net, net.node("Pad", [net.dequantize("image", 0.02, 7), ones(net)]))
    if rescaled:
        made = net.dequantize(net.quantize(made, 0.5, 3), 0.5, 3)
    other = net.quantize(net.node("Pad", [made, ones(net)]), 0.7, 9)
    codes = net.node("Pad", [other, ones(net), net.zero(9)])
    filter = net.node("DequantizeLinear", [net.constant(net.integers((2, 4, 3, 3), "int8"), "int8"), net.scale(0.03)])
    last = net.node("Conv", [net.dequantize(codes, 0.7, 9), filter], "last")
    [case] = read(net, net.quantize(last, 0.5, 3), folder=tmp_path).cases
    assert [(conv.padding.top, conv.padding.right) for conv in case.chain.conv] == [(1, 1), (2, 2)]
    assert [conv.activation for conv in case.chain.conv] == ["table" if rescaled else "none", "none"]


@pytest.mark.parametrize(
    ("value", "mode", "words"),
    [
        (0.51, "constant", "it fills with 0.51, and the conv pads with 0; export it with that value"),
        (0, "reflect", "its mode is reflect, and a conv pads with 0"),
        (0.5, "constant", "it fills with 32, and the conv pads with 7; export it with that value"),
    ],
)
def test_a_pad_that_is_no_padding_is_named(value: float, mode: str, words: str, tmp_path: Path) -> None:
    net = Quantised("pad", (1, 8, 9, 9), "uint8")
    padded = net.node("Pad", [net.dequantize("image", 0.02, 7), ones(net), net.scale(value)], "pad", mode=mode)
    found = read(net, net.quantize(conv(net, padded), 0.5, 3), folder=tmp_path)
    assert f"conv: Pad pad before it does not fold into its padding: {words}" in found.network.notes
    assert ("float32" in found.cases[0].chain.dtypes) == (value == 0.51)


@pytest.mark.parametrize("way", ["image", "filter", "both"])
def test_a_quantised_conv_that_computes_in_floats_is_told_with_the_node_that_makes_it(way: str, tmp_path: Path) -> None:
    net = Quantised("float", (1, 8, 9, 9), "uint8")
    image, filter = net.dequantize("image", 0.02, 7), ""
    if way == "image":
        filter = net.constant(net.random.uniform(-1, 1, SHAPE), "float32")
        words = f"its image is quantised: its filter {filter} is not; quantise it too"
    elif way == "filter":
        image = net.node("AveragePool", [image], "pool", kernel_shape=[2, 2])
        words = "its filter is quantised: AveragePool pool makes its image"
    else:
        codes = net.constant(net.integers(SHAPE, "int8"), "int8")
        filter = net.node("Mul", [net.node("DequantizeLinear", [codes, net.scale(0.03)]), net.scale(2)], "mul")
        words = "its image and its filter are quantised: Mul mul between DequantizeLinear and its filter does more"
    found = read(net, net.quantize(conv(net, image, filter), 0.5, 3), folder=tmp_path)
    [note] = found.network.notes
    assert note.startswith(f"conv: it computes in float32 though {words}")


def test_what_two_convs_read_is_moved_once(tmp_path: Path) -> None:
    net = Quantised("shared", (1, 9, 9, 8), "uint8")
    turned = net.node("Transpose", [net.dequantize("image", 0.02, 7)], "turn", perm=[0, 3, 1, 2])
    results = [
        net.quantize(conv(net, image, name=name), 0.5, 3)
        for name, image in (("one", turned), ("two", net.node("Identity", [turned])))
    ]
    found = read(net, *results, folder=tmp_path)
    assert [case.chain.dtypes for case in found.cases] == ["uint8xint8"] * 2
    assert sum(node.op == "Transpose" for node in found.graph.nodes) == 1
