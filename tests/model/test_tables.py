"""Elementwise operators behind a quantised conv: one table of 256 codes, or a clamp, and the chain goes on."""

from pathlib import Path

import numpy as np
import pytest

from tests.model.answers import integer_errors, saved
from tests.model.quantised import Quantised

SHAPE = (8, 8, 3, 3)
STEP = 0.05
ZERO = {"uint8": 120, "int8": -8}
MADE_ZERO = {"uint8": 100, "int8": -28}


def function(net: Quantised, kind: str, codes: str) -> str:
    """What a kind of function makes of codes, in floats."""

    def floats() -> str:
        return net.dequantize(codes, STEP, ZERO[net.integer])

    def number(value: float) -> str:
        return net.constant(np.full((1, 1, 1), value, "float32"))

    if kind == "silu":
        least = int(net.bits.min)
        gate = net.quantize(net.node("Sigmoid", [floats()]), 1 / 256, least)
        return net.node("Mul", [floats(), net.dequantize(gate, 1 / 256, least)])
    if kind == "gelu":
        erf = net.node("Erf", [net.node("Div", [floats(), number(np.sqrt(2))])])
        return net.node("Mul", [net.node("Mul", [floats(), number(0.5)]), net.node("Add", [erf, number(1)])])
    return net.node(kind, [floats(), *([number(0.25)] if kind == "PRelu" else [])])


KINDS = ["Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "PRelu", "Softplus", "silu", "gelu"]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_codes_is_a_table_within_a_chain(kind: str, dtype: str, tmp_path: Path) -> None:
    net = Quantised(kind, (1, 8, 12, 12), dtype)
    first = net.quantize(net.qdq("image", SHAPE, 5, name="first"), 30, ZERO[dtype])
    codes = net.quantize(function(net, kind, first), 0.04, MADE_ZERO[dtype])
    model = net.model(net.quantize(net.qdq(codes, SHAPE, MADE_ZERO[dtype], name="second"), 30, 3))
    found = saved(model, tmp_path)
    [chain] = [case.chain for case in found.cases]
    assert [conv.activation for conv in chain.conv] == ["table", "none"]
    assert chain.conv[0].table_zero_point == MADE_ZERO[dtype]
    assert found.weights(0)["table1"].shape == (256,)
    assert integer_errors(model, found) == [0, 0]


def test_a_relu_behind_a_quantiser_is_a_clamp_where_its_codes_stay(tmp_path: Path) -> None:
    net = Quantised("relu", (1, 8, 12, 12), "int8")
    first = net.quantize(net.qdq("image", SHAPE, 5, name="first"), 30, -8)
    relu = net.quantize(net.node("Relu", [net.dequantize(first, STEP, -8)]), STEP, -8)
    model = net.model(net.quantize(net.qdq(relu, SHAPE, -8, name="second"), 30, 3))
    found = saved(model, tmp_path)
    [chain] = [case.chain for case in found.cases]
    assert chain.conv[0].activation == "none"
    assert chain.conv[0].requantize
    assert chain.conv[0].requantize.clamp == (-8, 127)
    assert integer_errors(model, found) == [0, 0]


@pytest.mark.parametrize(("kind", "convs", "clamp"), [("Relu", [2], (0, 32767)), ("Tanh", [1, 1], None)])
def test_codes_of_16_bits_are_clamped_and_not_looked_up(
    kind: str, convs: list[int], clamp: tuple[int, int] | None, tmp_path: Path
) -> None:
    """As ONNX Runtime's tool writes them: a quantiser before the Relu and one behind it, of one scale."""
    net = Quantised("halves", (1, 8, 12, 12), "int16")
    first = net.quantize(net.qdq("image", SHAPE, 0, name="first"), 0.01, 0)
    made = net.quantize(net.node(kind, [net.dequantize(first, 0.01, 0)]), 0.01, 0)
    model = net.model(net.quantize(net.qdq(made, SHAPE, 0, name="second"), 0.01, 0))
    found = saved(model, tmp_path)
    assert [len(case.chain.conv) for case in found.cases] == convs
    how = found.cases[0].chain.conv[0].requantize
    assert how
    assert how.clamp == clamp
    assert max(integer_errors(model, found)) <= 1  # sums of floats are rounded


@pytest.mark.parametrize("reader", ["output", "branch", "slopes"])
def test_what_is_no_function_of_one_code_ends_the_chain(reader: str, tmp_path: Path) -> None:
    net = Quantised("ends", (1, 8, 12, 12), "uint8")
    first = net.quantize(net.qdq("image", SHAPE, 5, name="first"), 30, 120)
    floats = net.dequantize(first, STEP, 120)
    slopes = net.constant(np.linspace(0, 1, 8).reshape(8, 1, 1), "float32")
    made = net.node("PRelu", [floats, slopes]) if reader == "slopes" else net.node("Tanh", [floats])
    last = net.quantize(net.qdq(net.quantize(made, 0.02, 7), SHAPE, 7, name="second"), 30, 3)
    more = {"output": [floats], "branch": [net.node("MaxPool", [floats], kernel_shape=[1, 1])], "slopes": []}[reader]
    model = net.model(last, *more)
    found = saved(model, tmp_path)
    assert [len(case.chain.conv) for case in found.cases] == [1, 1]
    assert [conv.activation for case in found.cases for conv in case.chain.conv] == ["none", "none"]
    assert integer_errors(model, found) == [0, 0]
