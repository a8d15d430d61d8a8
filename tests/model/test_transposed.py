"""Transposed convs of codes are read as convs whose phases DepthToSpace spreads: the codes of the definition."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from hexconv.model import import_model
from hexconv.model.onnx_file import load_model
from hexconv.model.transposed import Phases
from tests.draws import LOWERED
from tests.model.answers import integer_errors
from tests.model.quantised import Quantised

SCALE, FILTER_SCALE, RESULT_SCALE, ZERO, RESULT_ZERO = 0.02, 0.03, 0.5, 7, 99
NEAR = 1e-3
"""Sums so near the middle between two codes may be rounded to either by float32."""


@st.composite
def axes(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Inputs, results, taps, stride and what is dropped at the beginning, along one axis."""
    size, taps, stride = draw(st.integers(1, 7)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    begin, end = draw(st.integers(0, taps - 1)), draw(st.integers(0, taps - 1))
    made = stride * (size - 1) + taps + draw(st.integers(0, stride - 1)) - begin - end
    assume(made > 0)
    return size, made, taps, stride, begin


@given(axes(), st.integers(0, 99))
def test_phases_make_what_a_transposed_conv_scatters(axis: tuple[int, int, int, int, int], seed: int) -> None:
    size, made, taps, stride, begin = axis
    random = np.random.default_rng(seed)
    inputs, filter = random.integers(-9, 9, size), random.integers(-9, 9, taps)
    scattered = np.zeros(begin + made + stride * size + taps, int)
    for at, value in enumerate(inputs):
        scattered[at * stride : at * stride + taps] += value * filter
    phases = Phases.of(*axis)
    padded = np.pad(inputs, phases.padding)
    frames = np.lib.stride_tricks.sliding_window_view(padded, phases.window)
    filters = np.array([[filter[tap] if tap >= 0 else 0 for tap in row] for row in phases.taps])
    assert len(frames) == phases.made
    result = (frames @ filters.T).reshape(-1)[phases.cut :][:made]
    assert np.array_equal(result, scattered[begin : begin + made])
    assert phases.window == -(-taps // stride), "no phase has more taps than it needs"


def transposed(net: Quantised, down: tuple, along: tuple, draw: st.DataObject) -> str:
    """A transposed conv of codes between its quantisers; the codes that it makes."""
    inputs, outputs = net.inputs[0].type.tensor_type.shape.dim[1].dim_value, draw.draw(st.integers(1, 5))
    codes = net.integers((inputs, outputs, down[2], along[2]), "int8")
    scales = np.float32(FILTER_SCALE)
    zeros = np.int8(draw.draw(st.integers(-3, 3)))
    if draw.draw(st.booleans()):
        scales, zeros = net.random.uniform(0.01, 0.05, outputs).astype(np.float32), np.zeros(outputs, np.int8)
    filter = net.node("DequantizeLinear", [net.constant(codes), net.constant(scales), net.constant(zeros)], axis=1)
    image = net.dequantize("image", SCALE, ZERO)
    bias = draw.draw(st.sampled_from(["none", "codes", "floats"]))
    names = [image, filter]
    units = (np.float32(SCALE) * scales).astype(np.float32)
    if bias == "codes":
        values = net.constant(net.random.integers(-900, 900, outputs), "int32")
        names.append(net.node("DequantizeLinear", [values, net.constant(units)], axis=0))
    elif bias == "floats":
        names.append(net.constant(net.random.uniform(-3, 3, outputs), "float32"))
    ends = [stride * (size - 1) + taps - made - begin for size, made, taps, stride, begin in (down, along)]
    told: dict[str, Any] = {"strides": [down[3], along[3]], "pads": [down[4], along[4], *(max(end, 0) for end in ends)]}
    made = net.node("ConvTranspose", names, "up", output_padding=[max(-end, 0) for end in ends], **told)
    if draw.draw(st.booleans()):
        made = net.node("Relu", [made])
    elif draw.draw(st.booleans()):
        made = net.node("Mul", [made, net.node("Sigmoid", [made])])
    return net.quantize(made, RESULT_SCALE, RESULT_ZERO)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # in the sigmoid of ONNX's evaluator
@LOWERED
@given(axes(), axes(), st.integers(1, 5), st.integers(1, 2), st.integers(0, 99), st.data())
def test_a_transposed_conv_of_codes_is_read_as_a_conv_of_its_phases(
    tmp_path_factory: pytest.TempPathFactory,
    down: tuple[int, int, int, int, int],
    along: tuple[int, int, int, int, int],
    channels: int,
    batch: int,
    seed: int,
    data: st.DataObject,
) -> None:
    folder: Path = tmp_path_factory.mktemp("transposed")
    net = Quantised("transposed", (batch, channels, down[0], along[0]), "uint8", seed)
    model = net.model(transposed(net, down, along, data))
    onnx.save(model, folder / "model.onnx")
    read = load_model(folder / "model.onnx")
    onnx.checker.check_model(read, full_check=True)
    is_padded = all(max(phases.padding) < phases.window for phases in (Phases.of(*down), Phases.of(*along)))
    is_padded = is_padded and down[3] <= down[2] and along[3] <= along[2]
    assert is_padded == ("ConvTranspose" not in {node.op_type for node in read.graph.node})
    if not is_padded:  # results beyond the last tap, or between taps: all bias
        return
    image = net.integers((batch, channels, down[0], along[0]), "uint8")
    [codes] = ReferenceEvaluator(read).run(None, {"image": image})
    reals = by_definition(model, image)
    apart = np.abs(np.asarray(codes).astype(int) - np.clip(np.rint(reals), 0, 255))
    assert not np.any(apart[np.abs(np.abs(reals % 1) - 0.5) > NEAR])
    assert apart.max() <= 1
    found = import_model(folder / "model.onnx")
    [case] = found.cases
    assert case.chain.conv[0].kernel == (Phases.of(*down).window, Phases.of(*along).window)
    assert max(integer_errors(read, found), default=0) <= 1


def by_definition(model: onnx.ModelProto, image: np.ndarray) -> np.ndarray:
    """The steps of the result before rounding, in float64: each input scattered over its results."""
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    [up] = (node for node in model.graph.node if node.op_type == "ConvTranspose")
    makers = {node.output[0]: node for node in model.graph.node}

    def dequantised(name: str, axis: int) -> np.ndarray:
        if name in stored:
            return stored[name].astype(float)
        codes, scale, *zero = (stored[each].astype(float) for each in makers[name].input)
        shape = [-1 if at == axis else 1 for at in range(codes.ndim)]
        return (codes - (zero[0].reshape(shape) if zero else 0)) * scale.reshape(shape)

    filter = dequantised(up.input[1], 1)
    told = {each.name: list(each.ints) for each in up.attribute}
    (down, along), (top, left, *_) = told["strides"], told["pads"]
    shape = [dim.dim_value for dim in read_shape(model)]
    reals = (image.astype(float) - ZERO) * float(np.float32(SCALE))
    rows, columns = filter.shape[2:]
    whole = np.zeros(
        (*shape[:2], top + shape[2] + down * image.shape[2] + rows, left + shape[3] + along * image.shape[3] + columns)
    )
    for y in range(image.shape[2]):
        for x in range(image.shape[3]):
            whole[:, :, y * down : y * down + rows, x * along : x * along + columns] += np.einsum(
                "nc,cokl->nokl", reals[:, :, y, x], filter
            )
    made = whole[:, :, top : top + shape[2], left : left + shape[3]]
    if len(up.input) > 2:
        made = made + dequantised(up.input[2], 0).reshape(1, -1, 1, 1)
    ops = {node.op_type for node in model.graph.node}
    if "Relu" in ops:
        made = np.maximum(made, 0)
    if "Sigmoid" in ops:
        made = made / (1 + np.exp(-made))
    return made / float(np.float32(RESULT_SCALE)) + RESULT_ZERO


def read_shape(model: onnx.ModelProto) -> list:
    return list(onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim)


@pytest.mark.parametrize("way", ["groups", "dilations", "floats", "behind", "two readers", "dtypes", "strides"])
def test_other_transposed_convs_stay(way: str, tmp_path: Path) -> None:
    net = Quantised("stays", (1, 4, 5, 1 if way == "strides" else 5), "uint8")
    own = 2 if way == "groups" else 3
    filter = net.node(
        "DequantizeLinear", [net.constant(net.integers((4, own, 2, 2), "int8")), net.scale(0.03), net.zero(0, "int8")]
    )
    if way == "floats":
        filter = net.constant(net.random.uniform(-1, 1, (4, own, 2, 2)), "float32")
    told = {"groups": {"group": 2}, "dilations": {"dilations": [2, 2]}}.get(way, {})
    strides = [1, 1 << 40] if way == "strides" else [2, 2]  # of one column no result is large
    made = net.node("ConvTranspose", [net.dequantize("image", 0.02, 7), filter], "up", strides=strides, **told)
    outputs = [made] if way == "two readers" else []
    ended = net.node("MaxPool", [made], kernel_shape=[2, 2]) if way == "behind" else made
    zero = net.zero(3, "int8" if way == "dtypes" else "uint8")  # no chain of uint8 makes int8
    codes = net.node("QuantizeLinear", [ended, net.scale(0.5), zero])
    onnx.save(net.model(codes, *outputs), tmp_path / "model.onnx")
    read = load_model(tmp_path / "model.onnx")
    assert "ConvTranspose" in {node.op_type for node in read.graph.node}
