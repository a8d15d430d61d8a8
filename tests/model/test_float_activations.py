"""Activations behind float convs, by operators of their own and as models spell them: they fold, and are ONNX's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from hexconv.model.floating import PLACES, _named
from hexconv.spec import Conv2d
from hexconv.spec.activations import CURVES, Activation
from hexconv.spec.curves import activated
from tests.model.answers import chain_errors, saved
from tests.model.builder import Builder

SHAPE = (8, 8, 3, 3)
Spelt = Callable[[Builder, str], str]


def number(net: Builder, value: float) -> str:
    return net.constant(value, "float16" if net.dtype == TensorProto.FLOAT16 else "float32")


def silu(net: Builder, x: str) -> str:
    return net.node("Mul", [net.node("Sigmoid", [x]), x])


def silu_divided(net: Builder, x: str) -> str:
    return net.node("Div", [x, net.node("Add", [number(net, 1), net.node("Exp", [net.node("Neg", [x])])])])


def hardswish_clipped(net: Builder, x: str) -> str:
    raised = net.node("Add", [x, number(net, 3)])
    held = net.node("Clip", [raised, number(net, 0), number(net, 6)])
    return net.node("Div", [net.node("Mul", [x, held]), number(net, 6)])


def hardswish_gated(net: Builder, x: str) -> str:
    return net.node("Mul", [x, net.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])


def hardsigmoid_clipped(net: Builder, x: str) -> str:
    """It begins as a shift of each channel, which would fold into a bias."""
    raised = net.node("Add", [x, number(net, 3)])
    return net.node("Mul", [net.node("Clip", [raised, number(net, 0), number(net, 6)]), number(net, 1 / 6)])


def gelu_erf(net: Builder, x: str) -> str:
    erf = net.node("Erf", [net.node("Div", [x, number(net, np.sqrt(2))])])
    return net.node("Mul", [net.node("Mul", [x, net.node("Add", [erf, number(net, 1)])]), number(net, 0.5)])


def gelu_tanh(net: Builder, x: str) -> str:
    cubed = net.node("Mul", [net.node("Pow", [x, number(net, 3)]), number(net, 0.044715)])
    inside = net.node("Mul", [net.node("Add", [x, cubed]), number(net, np.sqrt(2 / np.pi))])
    outside = net.node("Add", [net.node("Tanh", [inside]), number(net, 1)])
    return net.node("Mul", [net.node("Mul", [x, number(net, 0.5)]), outside])


def alone(op: str, **attributes: Any) -> Spelt:
    return lambda net, x: net.node(op, [x], **attributes)


def leaky_as_max(net: Builder, x: str) -> str:
    return net.node("Max", [x, net.node("Mul", [x, number(net, 0.1)])])


def prelu(*slopes: float) -> Spelt:
    return lambda net, x: net.node("PRelu", [x, net.constant(np.reshape(slopes, (-1, 1, 1)), "float32")])


def clamps(net: Builder, x: str) -> str:
    held = net.node("Clip", [net.node("Dropout", [net.node("Relu", [x])]), "", number(net, 6)])
    return net.node("Identity", [held])


SPELLINGS: tuple[tuple[str, Spelt, Activation, float | None, float | None], ...] = (
    ("Sigmoid", alone("Sigmoid"), "sigmoid", None, None),
    ("Tanh", alone("Tanh"), "tanh", None, None),
    ("HardSwish", alone("HardSwish"), "hardswish", None, None),
    ("HardSigmoid", alone("HardSigmoid"), "hardsigmoid", 0.2, None),
    ("HardSigmoid, both", alone("HardSigmoid", alpha=0.25, beta=-0.5), "hardsigmoid", 0.25, -0.5),
    ("LeakyRelu", alone("LeakyRelu"), "leaky_relu", None, None),
    ("LeakyRelu, steep", alone("LeakyRelu", alpha=-1.5), "leaky_relu", -1.5, None),
    ("Elu", alone("Elu", alpha=0.75), "elu", 0.75, None),
    ("Gelu", alone("Gelu"), "gelu", None, None),
    ("Gelu, tanh", alone("Gelu", approximate="tanh"), "gelu_tanh", None, None),
    ("PRelu", prelu(0.3), "leaky_relu", 0.3, None),
    ("PRelu, slopes", prelu(*np.linspace(-1, 2, 8)), "prelu", None, None),
    ("silu", silu, "silu", None, None),
    ("silu, divided", silu_divided, "silu", None, None),
    ("hardswish, clipped", hardswish_clipped, "hardswish", None, None),
    ("hardswish, gated", hardswish_gated, "hardswish", None, None),
    ("hardsigmoid, clipped", hardsigmoid_clipped, "hardsigmoid", None, None),
    ("gelu, erf", gelu_erf, "gelu", None, None),
    ("gelu, tanh", gelu_tanh, "gelu_tanh", None, None),
    ("leaky, max", leaky_as_max, "leaky_relu", 0.1, None),
    ("clamps", clamps, "relu6", None, None),
)
SPELT: dict[str, tuple[Spelt, Conv2d]] = {
    name: (spelt, Conv2d(out_channels=1, activation=activation, activation_slope=slope, activation_offset=offset))
    for name, spelt, activation, slope, offset in SPELLINGS
}


def same(found: Conv2d, wanted: Conv2d) -> bool:
    return (found.activation, found.slope, found.offset) == (
        wanted.activation,
        pytest.approx(wanted.slope, 1e-6),
        pytest.approx(wanted.offset, 1e-6),
    )


@pytest.mark.parametrize("name", SPELT)
def test_an_activation_folds_into_its_conv(name: str, tmp_path: Path) -> None:
    spelt, wanted = SPELT[name]
    net = Builder("activation", (1, 8, 12, 10))
    scales = net.constant(np.linspace(2, 4, 8).reshape(8, 1, 1), "float32")
    x = net.node("Mul", [net.conv("image", SHAPE, "first"), scales])
    model = net.model(net.conv(spelt(net, x), SHAPE, "second"))
    found = saved(model, tmp_path)
    [chain] = [case.chain for case in found.cases]
    assert [conv.activation for conv in chain.conv] == [wanted.activation, "none"]
    assert same(chain.conv[0], wanted)
    assert max(chain_errors(model, found)) < 2e-5


@pytest.mark.parametrize("name", ["silu", "hardswish, clipped", "gelu, erf", "gelu, tanh"])
def test_constants_of_float16_are_rounded(name: str, tmp_path: Path) -> None:
    spelt, wanted = SPELT[name]
    net = Builder("half", (1, 8, 12, 10), TensorProto.FLOAT16)
    model = net.model(net.conv(spelt(net, net.conv("image", SHAPE, "first")), SHAPE, "second"))
    found = saved(model, tmp_path)
    assert [conv.activation for case in found.cases for conv in case.chain.conv] == [wanted.activation, "none"]
    assert max(chain_errors(model, found)) < 1e-2


@pytest.mark.parametrize("name", sorted(set(CURVES) - {"none", "prelu"}))
def test_results_name_the_activation_that_they_are_of(name: str) -> None:
    conv = Conv2d(out_channels=1, activation=name)  # pyright: ignore[reportArgumentType]
    with np.errstate(all="ignore"):
        made = activated(PLACES, conv)
    found = _named(made, 1e-5)
    assert found
    assert same(found, conv)
    assert _named(made + 1e-3, 1e-5) is None


def _quick_gelu(net: Builder, x: str) -> str:
    return net.node("Mul", [x, net.node("Sigmoid", [net.node("Mul", [x, number(net, 1.702)])])])


def _half_clipped(net: Builder, x: str) -> str:
    return net.node("Clip", [x, number(net, 0), number(net, 50)])


def _mish(net: Builder, x: str) -> str:
    return net.node("Mish", [x])


@pytest.mark.parametrize(("spelt", "op"), [(_quick_gelu, "branch"), (_half_clipped, "Clip"), (_mish, "Mish")])
def test_other_functions_end_a_chain(spelt: Spelt, op: str, tmp_path: Path) -> None:
    net = Builder("others", (1, 8, 12, 10))
    model = net.model(net.conv(spelt(net, net.conv("image", SHAPE, "first")), SHAPE, "second"))
    found = saved(model, tmp_path)
    assert [entry.ended_by for entry in found.network.chain] == [op, "output"]
    assert found.network.chain[0].reason
    assert max(chain_errors(model, found)) < 2e-5


@pytest.mark.parametrize("inside", ["gate", "sums"])
def test_what_another_node_reads_is_no_part_of_a_function(inside: str, tmp_path: Path) -> None:
    """As the gate of a squeeze and excitation, or sums that are also an output."""
    net = Builder("read", (1, 8, 12, 10))
    x = net.conv("image", SHAPE, "first")
    gate = net.node("Sigmoid", [x])
    made = net.conv(net.node("Mul", [gate, x]), SHAPE, "second")
    model = net.model(made, gate if inside == "gate" else x)
    found = saved(model, tmp_path)
    assert [case.chain.conv[0].activation for case in found.cases] == ["none", "none"]
    assert max(chain_errors(model, found)) < 2e-5
