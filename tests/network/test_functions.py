"""Functions of codes: of one number or one a channel, as ONNX Runtime has them; what is no such function is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexconv.errors import Unsupported
from hexconv.network import Wanted
from hexconv.network.answer import answer
from hexconv.network.built_network import read_network
from hexconv.verify import Asked, verify_network
from tests.network.models import SHAPE, OneOperator, saved
from tests.network.test_operators import WANTED, node_by_node

Build = Callable[[OneOperator, str], str]


def by(op: str, shape: tuple[int, ...], first: bool = False) -> Build:
    """An operator of a tensor and a constant of this shape."""

    def built(net: OneOperator, read: str) -> str:
        numbers = net.constant(net.random.uniform(-1, 1, shape), "float32")
        return net.ended(net.node(op, [numbers, read] if first else [read, numbers]))

    return built


def own(op: str, step: float = 0.0041, **told: Any) -> Build:
    """One of ONNX Runtime's own, of codes, with a result of codes of this scale."""

    def built(net: OneOperator, read: str) -> str:
        scale = np.float32(0.02)
        ends = [net.quantised(read, scale, 120), *net.ends(scale, 120), *net.ends(step, 60)]
        return net.real(net.node(op, ends, domain="com.microsoft", **told), step, 60)

    return built


def of_tensors(op: str) -> Build:
    return lambda net, read: net.node(op, [read, net.ended(net.node("Neg", [read]))])


def in_training(net: OneOperator, read: str) -> str:
    return net.node("Dropout", [read, net.constant(0.5, "float32"), net.constant(True, "bool")])


def normalised(**told: Any) -> Build:
    def built(net: OneOperator, read: str) -> str:
        ones = net.constant(np.ones(3), "float32")
        return net.node("BatchNormalization", [read, *[ones] * 4], outputs=1 + 2 * len(told), **told)

    return built


COMPUTED = {
    "PRelu of channels": by("PRelu", (3, 1, 1)),
    "PRelu of channels and a batch": by("PRelu", (1, 3, 1, 1)),
    "PRelu of one number": by("PRelu", (1, 1, 1)),
    "Max of channels": by("Max", (3, 1, 1)),
    "Min of channels": by("Min", (1, 3, 1, 1), first=True),
    "QLinearSigmoid": own("QLinearSigmoid"),
    "QLinearLeakyRelu": own("QLinearLeakyRelu", alpha=-0.2),
    "QLinearSoftmax": own("QLinearSoftmax", axis=1, opset=13),
    "QLinearSoftmax along the last axis": own("QLinearSoftmax", opset=13),
    "QLinearSoftmax of an old opset": own("QLinearSoftmax", axis=3, opset=11),
    "QLinearSoftmax of an old opset along the last axis": own("QLinearSoftmax", opset=12),
    "QLinearSoftmax of an old opset over all": own("QLinearSoftmax", 0.00023, axis=1, opset=12),
    "QLinearSoftmax of an old opset over rows and columns": own("QLinearSoftmax", 0.00023, axis=2, opset=12),
}
REFUSED = {
    "Max": (of_tensors("Max"), "it reads .* and .*; it takes one tensor here, and constants beside it"),
    "Min": (of_tensors("Min"), "it takes one tensor here, and constants beside it"),
    "Pow": (of_tensors("Pow"), "it takes one tensor here, and constants beside it"),
    "PRelu": (of_tensors("PRelu"), "it takes one tensor here, and constants beside it"),
    "PRelu of columns": (by("PRelu", (1, 1, 20)), "20] .*it takes one number, or one a channel, here"),
    "Max of pixels": (by("Max", (20, 20)), "it takes one number, or one a channel, here"),
    "Dropout": (in_training, "training mode"),
    "BatchNormalization": (normalised(training_mode=1), "training mode"),
}


def network(build: Build, path: Path, seed: int = 0) -> Path:
    net = OneOperator(seed)
    return saved(net, [build(net, net.image()[0])], path)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_function_of_each_channel_is_what_onnx_says(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        path = network(COMPUTED[name], tmp_path / "one.onnx", seed)
        image = np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)
        [expected] = node_by_node(path, image)
        [found] = answer(read_network(path, WANTED), {"image": image}).values()
        steps = np.abs(found - expected) / np.min(np.diff(np.unique(expected)))
        assert steps.max() < 1.5
        assert np.count_nonzero(steps > 0.5) <= 0.002 * found.size + 1


def test_a_function_of_each_channel_is_numpys_in_c(tmp_path: Path) -> None:
    path = network(COMPUTED["PRelu of channels"], tmp_path / "one.onnx")
    assert verify_network(path, Asked(Wanted(1 << 20, "llvm"), workers=1)).answer == "holds"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_of_one_number_is_refused_in_a_line_or_left_to_the_caller(
    name: str, tmp_path: Path
) -> None:
    build, told = REFUSED[name]
    path = network(build, tmp_path / "one.onnx")
    with pytest.raises(Unsupported, match=told) as refusal:
        read_network(path, WANTED)
    assert "\n" not in str(refusal.value)
    assert len(read_network(path, Wanted(1 << 20, "llvm", stubs=True)).others) == 1
