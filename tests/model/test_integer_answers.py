"""Imported integer chains give ONNX's numbers, or their neighbours where the sum was rescaled."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexconv.sweep.judging import judge
from tests.model.answers import chain_answer, integer_errors, nhwc, saved, tensors_of
from tests.model.quantised import Quantised


@pytest.mark.parametrize("filter_dtype", ["int8", "uint8"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_qlinear_convs_are_one_chain_within_one_of_onnx(dtype: str, filter_dtype: str, tmp_path: Path) -> None:
    net = Quantised("qlinear", (1, 8, 10, 12), dtype)
    one, two, three = {"int8": (-3, 17, -128), "uint8": (120, 3, 0)}[dtype]
    x = net.qlinear("image", (16, 8, 3, 3), (one, 5, two), pads=[1, 0, 1, 2], filter_dtype=filter_dtype)
    x = net.qlinear(x, (8, 16, 3, 3), (two, 7, three), strides=[2, 1], filter_dtype=filter_dtype)
    model = net.model(net.qlinear(x, (5, 8, 1, 1), (three, 0, one), filter_dtype=filter_dtype))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [3]
    assert (found.cases[0].chain.dtype, found.cases[0].chain.dtype_of_filters) == (dtype, filter_dtype)
    assert [conv.filter_zero_point for conv in found.cases[0].chain.conv] == [5, 7, 0]
    errors = integer_errors(model, found)
    assert max(errors) <= 1
    assert "within 1" in found.network.notes[0]


def test_filters_of_both_dtypes_are_one_chain_in_that_of_the_first(tmp_path: Path) -> None:
    net = Quantised("both", (1, 8, 10, 12), "uint8")
    x = net.qlinear("image", (16, 8, 3, 3), (120, -5, 3), filter_dtype="int8")
    model = net.model(net.qlinear(x, (8, 16, 3, 3), (3, 7, 0), filter_dtype="uint8"))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    chain = found.cases[0].chain
    assert (chain.filter_dtype, [conv.filter_zero_point for conv in chain.conv]) == ("int8", [-5, 7 - 128])
    assert max(integer_errors(model, found)) <= 1


def test_only_few_outputs_are_a_neighbour_and_the_sums_themselves_are_exact(tmp_path: Path) -> None:
    net = Quantised("rounding", (1, 32, 16, 16), "uint8")
    model = net.model(net.qlinear("image", (32, 32, 3, 3), (3, 128, 120)))
    found = saved(model, tmp_path)
    entry = found.network.chain[0]
    tensors = tensors_of(model, {entry.output})
    answer = chain_answer(found, 0, nhwc(tensors["image"])).astype(int)
    difference = Counter(np.abs(answer - nhwc(tensors[entry.output]).astype(int)).reshape(-1).tolist())
    assert set(difference) <= {0, 1}
    assert difference[1] < 0.01 * answer.size
    assert len(np.unique(answer)) > 100


def test_quantised_groups_are_within_one_of_onnx(tmp_path: Path) -> None:
    net = Quantised("groups", (1, 8, 10, 10), "uint8")
    x = net.qlinear("image", (16, 1, 3, 3), (120, 9, 130), group=8, filter_dtype="int8")
    model = net.model(net.qlinear(x, (12, 8, 3, 3), (130, 0, 120), group=2, filter_dtype="int8"))
    found = saved(model, tmp_path)
    assert [conv.groups for conv in found.cases[0].chain.conv] == [8, 2]
    assert max(integer_errors(model, found)) <= 1


def test_conv_integer_is_exact(tmp_path: Path) -> None:
    net = Quantised("sums", (1, 8, 9, 9), "uint8")
    filter = net.constant(net.integers((4, 8, 3, 3), "int8"), "int8")
    model = net.model(net.node("ConvInteger", ["image", filter, net.zero(7), net.zero(-3, "int8")]))
    found = saved(model, tmp_path)
    assert found.cases[0].chain.conv[0].requantize is None
    assert (found.cases[0].chain.zero_point, found.cases[0].chain.conv[0].filter_zero_point) == (7, -3)
    assert found.cases[0].chain.filter_dtype == "int8"
    assert integer_errors(model, found) == [0]


@pytest.mark.parametrize("bias", ["int32", "float32", "none"])
def test_qdq_convs_are_one_integer_chain(bias: str, tmp_path: Path) -> None:
    net = Quantised("qdq", (1, 8, 10, 10), "uint8")
    x = net.quantize(net.node("Relu", [net.qdq("image", (16, 8, 3, 3), 128, bias, pads=[1, 1, 1, 1])]), 0.5, 0)
    y = net.relu6(net.qdq(x, (8, 16, 3, 3), 0, bias))
    model = net.model(net.quantize(y, 6 / 255, 0))  # 255 stands for 6: saturation is the clamp
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    assert [conv.bias for conv in found.cases[0].chain.conv] == [bias != "none"] * 2
    assert max(integer_errors(model, found)) <= 1
    assert len(found.network.notes) == 1 + (bias == "float32")


@pytest.mark.parametrize("zero_point", [-128, -127, 0, 60, 126])
@pytest.mark.parametrize("clamp", ["Relu", "relu6"])
def test_a_clamp_wherever_the_range_ends_is_a_clamp_of_codes(clamp: str, zero_point: int, tmp_path: Path) -> None:
    net = Quantised("clamped", (1, 8, 6, 6), "int8")
    sums = net.qdq("image", (4, 8, 3, 3), 3)
    x = net.relu6(sums) if clamp == "relu6" else net.node("Relu", [sums])
    model = net.model(net.quantize(x, 0.1, zero_point))
    found = saved(model, tmp_path)
    how = found.cases[0].chain.conv[0].requantize
    most = min(zero_point + 60, 127) if clamp == "relu6" else 127
    assert how
    assert how.codes(-128, 127) == (zero_point, most)
    assert (how.clamp is None) == ((zero_point, most) == (-128, 127))
    assert max(integer_errors(model, found)) <= 1


@pytest.mark.parametrize("zeros", ["none", "equal", "near", "far"])
@pytest.mark.parametrize("spread", [1.5, 1e6])
def test_filters_of_a_scale_and_a_zero_point_a_channel(spread: float, zeros: str, tmp_path: Path) -> None:
    net = Quantised("channels", (1, 8, 9, 9), "uint8")
    stored = net.random.integers(100, 140, (16, 8, 3, 3), "uint8")
    points = {"none": [0] * 16, "equal": [117] * 16, "near": range(100, 116), "far": range(16)}[zeros]
    scales = net.constant(0.03 * spread ** np.linspace(-1, 0, 16), "float32")
    inputs = [net.constant(stored), scales, *([net.constant(points, "uint8")] if zeros != "none" else [])]
    filter = net.node("DequantizeLinear", inputs, axis=0)
    bias = net.constant(net.random.uniform(-2, 2, 16), "float32")
    x = net.quantize(net.node("Conv", [net.dequantize("image", 0.02, 7), filter, bias]), 2.0, 5)
    model = net.model(net.quantize(net.qdq(x, (8, 16, 1, 1), 5), 0.5, 0))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    how = found.cases[0].chain.conv[0].requantize
    assert how
    assert how.vectors == (("multiplier",) if spread < 128 else ("multiplier", "shift"))
    assert max(integer_errors(model, found)) <= 1
    assert len(found.network.notes) == 2


def test_int16_values_with_int8_filters_are_a_chain(tmp_path: Path) -> None:
    net = Quantised("wide", (1, 8, 9, 9), "int16")
    x = net.quantize(net.qdq("image", (16, 8, 3, 3), 0), 0.5, 0)
    model = net.model(net.quantize(net.qdq(x, (4, 16, 1, 1), 0), 0.5, 0))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    assert found.cases[0].chain.dtypes == "int16xint8"
    assert max(integer_errors(model, found)) <= 1


def test_long_sums_of_int16_saturate_where_no_output_shows_it(tmp_path: Path) -> None:
    net = Quantised("long", (1, 512, 4, 5), "int16")
    model = net.model(net.quantize(net.qdq("image", (4, 512, 3, 3), 0, "none"), 0.5, 0))
    found = saved(model, tmp_path)
    [case] = found.cases
    [how] = [conv.requantize for conv in case.chain.conv]
    assert how
    assert how.saturates_at == 2**30
    assert max(integer_errors(model, found)) <= 1
    assert judge(case).outcome == "agrees"


def test_types_behind_the_runtimes_own_operators_come_from_their_zero_points(tmp_path: Path) -> None:
    net = Quantised("own", (1, 8, 8, 8), "uint8")
    x = net.qlinear("image", (8, 8, 1, 1), (3, 5, 40), filter_dtype="int8")
    ends = [net.scale(0.1), net.zero(40)]
    added = net.node("QLinearAdd", [x, *ends, "image", *ends, *ends], domain="com.microsoft")
    halves: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pooled = net.node("QLinearAveragePool", [added, *ends, *ends], domain="com.microsoft", **halves)
    y = net.qlinear(pooled, (4, 8, 3, 3), (40, 5, 7), filter_dtype="int8")
    joined = net.node("QLinearConcat", [*ends, y, *ends, y, *ends], domain="com.microsoft", axis=1)
    model = net.model(net.qlinear(joined, (4, 8, 1, 1), (40, 5, 7), filter_dtype="int8"))
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [1, 1, 1]
    assert [case.chain.input for case in found.cases] == [(1, 8, 8, 8), (1, 4, 4, 8), (1, 2, 2, 8)]


def test_a_channel_whose_bias_int32_does_not_hold_is_constant_if_its_output_is(tmp_path: Path) -> None:
    net = Quantised("bias", (1, 4, 6, 6), "uint8")
    conv = net.qdq("image", (4, 4, 1, 1), 1, "none")
    [node] = [node for node in net.nodes if node.op_type == "Conv"]
    node.input.append(net.constant([0, 0, -1e9, 1e9], "float32"))
    model = net.model(net.quantize(conv, 0.5, 3))
    found = saved(model, tmp_path)
    assert not found.weights(0)["filter1"][2:].any()
    assert chain_answer(found, 0, np.zeros((1, 6, 6, 4), "uint8"))[0, 0, 0, 2:].tolist() == [0, 255]
    assert integer_errors(model, found) == [0]


@pytest.mark.parametrize("way", ["qlinear", "qdq"])
def test_imported_cases_run_as_numpy_says(way: str, tmp_path: Path) -> None:
    """The whole way: imported, lowered, compiled, run, compared."""
    net = Quantised("run", (1, 8, 10, 10), "uint8")
    if way == "qlinear":
        x = net.qlinear("image", (40, 8, 3, 3), (100, 9, 30), filter_dtype="int8")
        x = net.qlinear(x, (16, 40, 1, 1), (30, 0, 0), filter_dtype="int8")
    else:
        x = net.quantize(net.qdq("image", (40, 8, 3, 3), 128), 0.5, 20)
        x = net.quantize(net.qdq(x, (16, 40, 1, 1), 20), 0.5, 0)
    case = saved(net.model(x), tmp_path).cases[0]
    assert len(case.chain.conv) == 2
    assert judge(case).reasons == ()
