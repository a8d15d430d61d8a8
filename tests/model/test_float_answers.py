"""Imported float chains give ONNX's own numbers, weights and all."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.model.answers import chain_errors, saved
from tests.model.builder import Builder
from tests.model.networks import espcn, mobilenet_v2, resnet_18

NEAR = 2e-5


@pytest.mark.parametrize("model", [espcn(16), resnet_18(32), mobilenet_v2(32)], ids=["espcn", "resnet", "mobilenet"])
def test_networks_are_onnx_s_own_numbers(model: onnx.ModelProto, tmp_path: Path) -> None:
    assert max(chain_errors(model, saved(model, tmp_path))) < NEAR


@pytest.mark.parametrize("seed", range(4))
def test_strides_dilations_and_every_way_of_padding(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    net = Builder("geometry", (2, 3, 61, 67), seed=seed)
    x, channels = "image", 3
    for way in ("VALID", "SAME_UPPER", "SAME_LOWER", "pads"):
        kernel, strides, dilations = (random.integers(1, 4, 2).tolist() for _ in range(3))
        padding: dict[str, Any] = {"pads": random.integers(0, 4, 4).tolist()} if way == "pads" else {"auto_pad": way}
        out = int(random.integers(1, 9))
        strides = strides if way != "VALID" else [1, 1]
        x = net.conv(x, (out, channels, *kernel), strides=strides, dilations=dilations, **padding)
        channels = out
    model = net.model(x)
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [4]
    assert max(chain_errors(model, found)) < NEAR


def test_all_that_folds_into_a_conv(tmp_path: Path) -> None:
    """Pad, batch norm, scale and shift by constants, identities, clamps that make relu6."""
    net = Builder("folds", (1, 4, 11, 9))
    x = net.node("Pad", ["image", net.constant([0, 0, 1, 2, 0, 0, 3, 0], "int64")])
    x = net.conv(x, (6, 4, 3, 3), pads=[0, 1, 0, 1], bias=False)
    x = net.node("Mul", [x, net.constant(np.linspace(-20, 20, 6).reshape(1, 6, 1, 1), "float32")])
    x = net.batch_norm(x, 6)
    x = net.node("Add", [net.constant(np.linspace(-1, 1, 6).reshape(6, 1, 1), "float32"), x])
    x = net.node("Relu", [net.node("Identity", [net.node("Dropout", [x])])])
    x = net.node("Clip", [x, "", net.constant(6, "float32")])
    x = net.node("Mul", [net.conv(x, (5, 6, 1, 1), bias=False), net.constant(3, "float32")])
    model = net.model(x)
    found = saved(model, tmp_path)
    assert [len(chain.convs) for chain in found.network.chain] == [2]
    first, second = found.cases[0].chain.conv
    assert (first.bias, first.activation, second.bias, second.activation) == (True, "relu6", False, "none")
    assert (first.padding.top, first.padding.left, first.padding.bottom, first.padding.right) == (1, 3, 3, 1)
    assert max(chain_errors(model, found)) < NEAR


@pytest.mark.parametrize(("groups", "channels"), [(8, 8), (8, 16), (2, 12), (4, 4)])
def test_groups(groups: int, channels: int, tmp_path: Path) -> None:
    net = Builder("groups", (1, 8, 12, 10))
    x = net.relu6(net.conv("image", (channels, 8 // groups, 3, 3), group=groups))
    model = net.model(net.conv(x, (6, channels // 2, 1, 1), group=2))
    found = saved(model, tmp_path)
    assert [conv.groups for conv in found.cases[0].chain.conv] == [groups, 2]
    assert max(chain_errors(model, found)) < NEAR


def test_float16_chains(tmp_path: Path) -> None:
    net = Builder("half", (1, 8, 12, 12), TensorProto.FLOAT16)
    x = net.node("Relu", [net.conv("image", (8, 8, 3, 3))])
    model = net.model(net.conv(x, (4, 8, 3, 3)))
    found = saved(model, tmp_path)
    assert [case.chain.dtype for case in found.cases] == ["float16"]
    assert found.weights(0)["filter1"].dtype == np.float16
    assert max(chain_errors(model, found)) < 4e-3
