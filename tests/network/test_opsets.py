"""Operators whose meaning depends on the opset of the model: numpy held against ONNX Runtime, which computes each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hexconv.errors import Unsupported
from hexconv.model.constants import fold
from hexconv.network import Wanted
from hexconv.network.answer import answer
from hexconv.network.built_network import read_network
from hexconv.verify import Asked, verify_network
from tests.network.models import SHAPE, OneOperator, saved
from tests.network.test_operators import WANTED, node_by_node

Build = Callable[[OneOperator], str]
FIRST_QUANTISERS = 10


def softmax(shape: tuple[int, ...], reals: bool = False, **told: Any) -> Build:
    """A softmax of an image that is pooled, reshaped and quantised; followed by a quantiser, or read as floats."""

    def built(net: OneOperator) -> str:
        image = net.node("MaxPool", [net.image()[0]], kernel_shape=[5, 5], strides=[5, 5])
        read = net.ended(net.node("Reshape", [image, net.constant(shape, "int64")]))
        made = net.node("Softmax", [read], **told)
        return made if reals else net.real(net.quantised(made, np.float32(2**-10), 0), np.float32(2**-10), 0)

    return built


def resize(scales: tuple[float, ...] = (), op: str = "Resize", stated: str = "scales", **told: Any) -> Build:
    """A resize by scales of all axes, or of those that it names; as `stated`: an input, an attribute, or as sizes."""

    def built(net: OneOperator) -> str:
        image = "image" if net.reals else net.image()[0]
        own = {"scales": scales} if stated == "attribute" else {}
        if stated == "sizes":
            numbers = ["", "", net.constant([7, 13], "int64")]
        else:
            regions = [net.constant([], "float32")] if net.opset > FIRST_QUANTISERS else []
            numbers = [] if own else [*regions, net.constant(scales, "float32")]
        return net.ended(net.node(op, [image, *numbers], **own, **told))

    return built


def resize_of_two(axes: list[int], policy: str = "stretch") -> Build:
    told: dict[str, Any] = {"axes": axes, "keep_aspect_ratio_policy": policy, "mode": "linear"}
    told["coordinate_transformation_mode"] = "asymmetric"
    return resize(**told, scales=(1.37, 0.73), stated="scales" if policy == "stretch" else "sizes")


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
    "resize, nearest": (10, resize((1, 1, 1.37, 2))),
    "resize, nearest, to fewer": (10, resize((1, 1, 0.73, 0.37))),
    "resize, linear": (10, resize((1, 1, 2, 1.37), mode="linear")),
    "resize, linear, to fewer": (10, resize((1, 1, 0.73, 1), mode="linear")),
    "resize of opset 11, linear": (11, resize((1, 1, 1.37, 0.73), mode="linear")),
    "resize of some axes": (18, resize_of_two([2, -1])),
    "resize of some axes in another order": (18, resize_of_two([3, 2])),
    "resize to no larger sizes": (18, resize_of_two([2, 3], "not_larger")),
    "resize to no smaller sizes": (18, resize_of_two([2, 3], "not_smaller")),
    "upsample by an input": (9, resize((1, 1, 1.37, 2), "Upsample", mode="nearest")),
    "upsample by an attribute": (8, resize((1, 1, 1.37, 2), "Upsample", "attribute", mode="linear")),
}
"""By name, an opset and an operator that means something else in another one."""


def of_opset(opset: int, build: Build, path: Path, seed: int = 0) -> Path:
    net = OneOperator(seed, reals=opset < FIRST_QUANTISERS)
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
        if "floats" in name or "upsample" in name:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        else:
            assert steps.max() < 1.5
            assert np.count_nonzero(steps > 0.5) <= 0.002 * found.size + 1


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("llvm", "softmax of images"),
        pytest.param("hexagon", "softmax of all", marks=[pytest.mark.deep, pytest.mark.simulator]),
        pytest.param("hexagon", "resize, nearest, to fewer", marks=[pytest.mark.deep, pytest.mark.simulator]),
    ],
)
def test_an_operator_of_an_old_opset_is_numpys_in_c(target: Any, name: str, tmp_path: Path) -> None:
    path = of_opset(*IN_OLD_MODELS[name], tmp_path / "one.onnx")
    assert verify_network(path, Asked(Wanted(1 << 20, target, isa="v67"), workers=1)).answer == "holds"


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_constants_are_folded_as_their_opset_says(op: str, opset: int, axis: int | None, tmp_path: Path) -> None:
    """Of an image: what ONNX Runtime makes of it is what is folded of a constant."""
    net = OneOperator()
    net.opset = opset
    told: dict[str, Any] = {} if axis is None else {"axis": axis}
    path = saved(net, [net.node(op, ["image"], **told)], tmp_path / "one.onnx")
    image = np.random.default_rng(opset).standard_normal(SHAPE).astype(np.float32)
    folded = fold(net.nodes[-1], [helper.make_opsetid("", opset)], {"image": image})
    np.testing.assert_allclose(folded[net.nodes[-1].output[0]], node_by_node(path, image)[0], rtol=1e-5)


def test_a_resize_that_smooths_what_it_makes_smaller_is_refused(tmp_path: Path) -> None:
    for name, scales in (("smaller", (1, 1, 1, 0.5)), ("larger", (1, 1, 2, 1))):
        path = of_opset(18, resize(scales, mode="linear", antialias=1), tmp_path / f"{name}.onnx")
        if name == "larger":
            image = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
            [expected], [found] = (
                node_by_node(path, image),
                answer(read_network(path, WANTED), {"image": image}).values(),
            )
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            continue
        with pytest.raises(Unsupported, match="it sets antialias where it makes a side smaller"):
            read_network(path, WANTED)


def test_a_pair_that_names_the_axis_of_its_constant_is_refused(tmp_path: Path) -> None:
    """Of opset 6, which ONNX Runtime doesn't have: numbers for rows, which later opsets take for columns."""
    net = OneOperator(reals=True)
    net.opset = 6
    added = net.node("Add", ["image", net.constant(np.arange(SHAPE[2]), "float32")], broadcast=1, axis=2)
    path = saved(net, [added], tmp_path / "one.onnx")
    with pytest.raises(Unsupported, match="convert it to opset 7 or newer"):
        read_network(path, WANTED)
