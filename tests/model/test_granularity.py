"""Scales and zero points of every granularity, dtype and opset, against ONNX's own evaluator where float32 is exact."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hexconv.model import Imported, import_model
from hexconv.model.constants import fold
from hexconv.model.granularity import spread
from hexconv.model.refused import Refused
from tests.model.answers import unit_answer

CODES = {"int8": 10, "uint8": 10, "int16": 21, "uint16": 21, "int4": 21, "uint4": 21, "int2": 25, "uint2": 25}
"""Dtypes of codes, and the first opset whose quantisers have them."""
NEWEST = 25
Array = np.ndarray


def np_dtype(name: str) -> np.dtype[Any]:
    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(name.upper()))


@st.composite
def quantised_weights(draw: st.DrawFn, rank: int = 4) -> dict[str, Any]:
    """Codes with scales and zero points by ONNX's definition; scales are powers of 2, so that float32 is exact."""
    dtype = draw(st.sampled_from(sorted(CODES)))
    opset = draw(st.integers(CODES[dtype], NEWEST))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    kind = draw(st.sampled_from(["tensor", *["axis"] * (opset >= 13), *["blocks"] * 2 * (opset >= 21)]))
    axis = draw(st.integers(-rank, rank - 1))
    attributes: dict[str, int] = {} if kind == "tensor" else {"axis": axis}
    values_shape: tuple[int, ...] = draw(st.sampled_from([(), (1,)]))
    if kind == "axis":
        values_shape = (shape[axis],)
    if kind == "blocks":
        attributes["block_size"] = block = draw(st.integers(1, shape[axis] + 1))
        at = axis % rank
        values_shape = (*shape[:at], -(-shape[at] // block), *shape[at + 1 :])
    random = np.random.default_rng(draw(st.integers(0, 999)))
    alike = draw(st.booleans())  # the same for all, or for each slice along axis 0
    each = random.integers(0, 4, (values_shape[0], *[1] * (len(values_shape) - 1)) if alike and values_shape else ())
    powers = np.broadcast_to(each, values_shape) if alike else random.integers(0, 4, values_shape)
    middle = {"int8": 0, "uint8": 100, "int16": 0, "uint16": 2**15, "uint4": 5, "uint2": 1}.get(dtype, 0)
    wide = dtype in ("int8", "uint8")
    zeros = np.full(values_shape, middle) + (np.where(powers % 2, 7, -7) if wide else 0)
    ends = {"int8": (-100, 100), "uint8": (10, 200), "int16": (-99, 99), "uint16": (32000, 33000), "int4": (-8, 7)}
    low, high = {**ends, "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}[dtype]
    return {
        "opset": opset,
        "attributes": attributes,
        "codes": random.integers(low, high + 1, shape).astype(np_dtype(dtype)),
        "scales": np.ldexp(np.ones(values_shape), powers - 8).astype(np.float32),
        "zeros": zeros.astype(np_dtype(dtype)),
    }


def dequantised(codes: Array, drawn: dict[str, Any], scales: Array, zeros: Array) -> Array:
    """The real numbers of codes as ONNX's evaluator of opset 21 or newer has them, which knows every granularity."""
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], **drawn["attributes"])
    infos = [onnx.ValueInfoProto(name=name) for name in ("x", "s", "z")]
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name="y")])
    opset = [helper.make_opsetid("", max(drawn["opset"], 21))]
    session = ReferenceEvaluator(helper.make_model(graph, opset_imports=opset))
    [real] = session.run(None, {"x": codes, "s": scales, "z": zeros})
    return np.asarray(real)


@given(quantised_weights() | quantised_weights(rank=1) | quantised_weights(rank=2))
def test_constants_dequantise_and_quantise_as_onnx_s_evaluator_has_them(drawn: dict[str, Any]) -> None:
    opsets = [helper.make_opsetid("", drawn["opset"])]
    codes, scales, zeros = (drawn[name] for name in ("codes", "scales", "zeros"))
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], **drawn["attributes"])
    real = fold(node, opsets, {"x": codes, "s": scales, "z": zeros})["y"]
    assert np.array_equal(real, dequantised(codes, drawn, scales, zeros))
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **drawn["attributes"])
    back = fold(node, opsets, {"x": real, "s": scales, "z": zeros})["y"]
    assert back.dtype == codes.dtype
    assert np.array_equal(back, codes)


def qdq_model(drawn: dict[str, Any]) -> onnx.ModelProto:
    """A quantised conv with these weights; the scale of its sums is that of its filter."""
    wide = drawn["codes"].dtype.name in ("int16", "uint16")
    image = TensorProto.INT16 if wide else TensorProto.UINT8
    codes, channels = drawn["codes"], drawn["codes"].shape[1]
    stored = {
        "one": np.ones((), np.float32),
        "none": np.zeros((), helper.tensor_dtype_to_np_dtype(image)),
        "w": codes,
        "ws": drawn["scales"],
        "wz": drawn["zeros"],
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "one", "none"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], **drawn["attributes"]),
        helper.make_node("Conv", ["xd", "wd"], ["y"], "conv"),
        helper.make_node("QuantizeLinear", ["y", "one", "none"], ["yq"]),
    ]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()]
    image_info = helper.make_tensor_value_info("x", image, [1, channels, 6, 7])
    output = helper.make_tensor_value_info("yq", image, [1, codes.shape[0], 7 - codes.shape[2], 8 - codes.shape[3]])
    graph = helper.make_graph(nodes, "weights", [image_info], [output], tensors)
    opsets = [helper.make_opsetid("", drawn["opset"])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


def imported(model: onnx.ModelProto) -> Imported:
    with TemporaryDirectory() as folder:
        onnx.save(model, Path(folder) / "m.onnx")
        return import_model(Path(folder) / "m.onnx")


@given(quantised_weights())
def test_a_filter_is_taken_where_each_output_channel_has_one_scale_and_else_refused(drawn: dict[str, Any]) -> None:
    if drawn["codes"].dtype.name in ("int16", "uint16") and drawn["opset"] < 21:
        drawn["opset"] = 21
    ones, shape = np.ones_like(drawn["codes"]), drawn["codes"].shape
    whole = dequantised(drawn["codes"], drawn, drawn["scales"], drawn["zeros"])
    scales = dequantised(ones, drawn, drawn["scales"], np.zeros_like(drawn["zeros"])).reshape(shape[0], -1)
    zeros = dequantised(np.zeros_like(ones), drawn, np.ones_like(drawn["scales"]), drawn["zeros"]).reshape(shape[0], -1)
    per_channel = all(np.all(each == each[:, :1]) for each in (scales, zeros))
    found = imported(qdq_model(drawn))
    if not per_channel:
        [refused] = found.network.not_taken
        assert "differ within an output channel" in refused.reason
        return
    [unit], chain = found.runs[0].units, found.cases[0].chain
    folded = unit.weights.folded(found.graph)
    apart = folded.filter.astype(np.int64) - chain.conv[0].filter_zero_point
    assert np.array_equal(apart * scales[:, :1].reshape(-1, 1, 1, 1), whole)
    image = np.random.default_rng(0).integers(0, 100, chain.input).astype(chain.dtype)
    sums = np.zeros(chain.shapes[-1])
    for row, column in np.ndindex(*shape[2:]):
        window = image[:, row : row + sums.shape[1], column : column + sums.shape[2]].astype(np.float64)
        sums += np.einsum("nhwi,oi->nhwo", window, whole[:, :, row, column].astype(np.float64))
    ends = np.iinfo(chain.dtype)
    assert np.array_equal(unit_answer(found, unit, image), np.clip(np.rint(sums), ends.min, ends.max))


@given(st.data())
def test_values_of_no_granularity_are_refused(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 5), min_size=2, max_size=4)))
    axis, block_size = data.draw(st.integers(-6, 6)), data.draw(st.integers(-1, 4))
    values = np.ones(tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))))
    try:
        grid = spread(values, shape, (axis, block_size))
    except Refused:
        if block_size >= 0 and -len(shape) <= axis < len(shape):
            sizes = [
                -(-size // max(block_size, 1)) if at == axis % len(shape) else size for at, size in enumerate(shape)
            ]
            assert values.shape != (tuple(sizes) if block_size else (shape[axis],))
    else:
        assert np.broadcast_shapes(grid.shape, shape) == shape


@pytest.mark.parametrize("what", ["scale", "zero point"])
@pytest.mark.parametrize("values", [7, 1])
def test_a_qlinear_conv_of_8_channels_takes_one_or_8_even_if_all_are_equal(what: str, values: int) -> None:
    stored = {
        "s": np.float32(0.5),
        "z": np.uint8(3),
        "w": np.ones((8, 2, 1, 1), np.int8),
        "ws": np.full(values, 0.25, np.float32) if what == "scale" else np.float32(0.25),
        "wz": np.zeros(values, np.int8) if what == "zero point" else np.int8(0),
    }
    node = helper.make_node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "s", "z"], ["y"], "conv")
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()]
    infos = [helper.make_tensor_value_info(name, TensorProto.UINT8, [1, c, 4, 4]) for name, c in (("x", 2), ("y", 8))]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], tensors)
    found = imported(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    assert [conv.reason for conv in found.network.not_taken] == [
        f"its {what} has the shape [7]; a tensor of [8, 2, 1, 1] takes one for all, or [8] along axis 0"
    ] * (values == 7)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"scales": np.full(3, np.nan)}, "its scale ws is nan, which is no positive number"),
        ({"scales": np.array([1, -1, 1])}, "its scale ws is -1, which is no positive number"),
        ({"scales": np.array([0, 1, 1])}, "its scale ws is 0, which is no positive number"),
        ({"scales": np.array([1, np.inf, 1])}, "its scale ws is inf, which is no positive number"),
        ({"zeros": np.zeros((), np.int8)}, "its scale ws and its zero point wz have the shapes [3] and []"),
        ({"zeros": np.zeros(3, np.uint8)}, "its zero point wz is uint8, where int8 is quantised"),
        ({"attributes": {"axis": 4}}, "its scale lies along axis 4 of a tensor of [3, 2, 1, 1], which has 4 axes"),
        (
            {"attributes": {"axis": 1}},
            "its scale has the shape [3]; a tensor of [3, 2, 1, 1] takes one for all, or [2]",
        ),
        ({"attributes": {"axis": 0, "block_size": 2}}, "or [2, 2, 1, 1] in blocks of 2 along axis 0"),
    ],
)
def test_a_filter_without_scales_by_the_definition_is_refused(changed: dict[str, Any], reason: str) -> None:
    scales = np.asarray(changed.pop("scales", np.ones(3)), np.float32)
    plain = {"attributes": {"axis": 0}, "codes": np.ones((3, 2, 1, 1), np.int8), "zeros": np.zeros(3, np.int8)}
    found = imported(qdq_model({"opset": 21, **plain, "scales": scales, **changed}))
    assert [reason in conv.reason for conv in found.network.not_taken] == [True]
