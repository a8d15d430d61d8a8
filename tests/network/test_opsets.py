"""Operators whose meaning depends on the opset of the model: numpy held against ONNX Runtime, which computes each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexconv.network.answer import answer
from hexconv.network.built_network import read_network
from tests.network.models import SHAPE, OneOperator, saved
from tests.network.test_operators import WANTED, node_by_node

Build = Callable[[OneOperator], str]


def softmax(shape: tuple[int, ...], reals: bool = False, **told: Any) -> Build:
    """A softmax of an image that is pooled, reshaped and quantised; followed by a quantiser, or read as floats."""

    def built(net: OneOperator) -> str:
        image = net.node("MaxPool", [net.image()[0]], kernel_shape=[5, 5], strides=[5, 5])
        read = net.ended(net.node("Reshape", [image, net.constant(shape, "int64")]))
        made = net.node("Softmax", [read], **told)
        return made if reals else net.real(net.quantised(made, np.float32(2**-10), 0), np.float32(2**-10), 0)

    return built


IN_OLD_MODELS = {
    "softmax of all": (12, softmax((1, 3, 4, 4))),
    "softmax of all, as floats": (11, softmax((1, 3, 4, 4), reals=True)),
    "softmax of images": (10, softmax((3, 2, 2, 4), axis=1)),
    "softmax from the first axis on": (12, softmax((2, 3, 2, 4), axis=0)),
    "softmax of rows and columns": (12, softmax((2, 3, 2, 4), axis=2)),
    "softmax of columns": (12, softmax((2, 3, 2, 4), axis=-1)),
    "softmax of channels of one pixel": (12, softmax((4, 12, 1, 1))),
    "softmax of three axes": (11, softmax((2, 6, 4))),
    "softmax of a row": (12, softmax((2, 24))),
    "softmax along channels": (13, softmax((1, 3, 4, 4), axis=1)),
    "softmax along the last axis": (13, softmax((1, 3, 4, 4))),
}
"""By name, an opset and an operator that means something else in another one."""


def of_opset(opset: int, build: Build, path: Path, seed: int = 0) -> Path:
    net = OneOperator(seed)
    net.opset = opset
    return saved(net, [build(net)], path)


@pytest.mark.parametrize("name", IN_OLD_MODELS)
def test_an_operator_means_what_its_opset_says(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        path = of_opset(*IN_OLD_MODELS[name], tmp_path / "one.onnx", seed)
        image = (np.random.default_rng(seed).standard_normal(SHAPE) * 1.5).astype(np.float32)
        [expected] = node_by_node(path, image)
        [found] = answer(read_network(path, WANTED), {"image": image}).values()
        assert found.shape == expected.shape
        assert len(np.unique(expected)) > 2
        steps = np.abs(found - expected) / np.min(np.diff(np.unique(expected)))
        if "floats" in name:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        else:
            assert steps.max() < 1.5
            assert np.count_nonzero(steps > 0.5) <= 0.002 * found.size + 1
