"""Whole networks, with the chains that their papers' tables say."""

from collections import Counter
from pathlib import Path

import onnx
import pytest

from hexconv.model import Imported, import_model
from tests.model.networks import espcn, mobilenet_v2, resnet_18, resnet_50, vgg_16

Chain = tuple[tuple[int, ...], ...]


def imported(model: onnx.ModelProto, folder: Path) -> Imported:
    onnx.save(model, folder / "model.onnx")
    return import_model(folder / "model.onnx")


def shapes(found: Imported) -> list[Chain]:
    return [case.chain.shapes for case in found.cases]


def square(*sizes_and_channels: tuple[int, int]) -> Chain:
    return tuple((1, size, size, channels) for size, channels in sizes_and_channels)


def test_vgg_16_is_five_chains_between_pools(tmp_path: Path) -> None:
    found = imported(vgg_16(), tmp_path)
    assert shapes(found) == [
        square((224, 3), (224, 64), (224, 64)),
        square((112, 64), (112, 128), (112, 128)),
        square((56, 128), (56, 256), (56, 256), (56, 256)),
        square((28, 256), (28, 512), (28, 512), (28, 512)),
        square((14, 512), (14, 512), (14, 512), (14, 512)),
    ]
    assert {chain.ended_by for chain in found.network.chain} == {"MaxPool"}
    assert found.network.chain[2].convs == ("conv3_1", "conv3_2", "conv3_3")
    assert found.network.not_taken == ()
    convs = [conv for case in found.cases for conv in case.chain.conv]
    assert {(conv.kernel, conv.bias, conv.activation) for conv in convs} == {((3, 3), True, "relu")}


def test_resnet_18_is_its_stem_eight_blocks_and_three_shortcuts(tmp_path: Path) -> None:
    found = imported(resnet_18(), tmp_path)
    blocks = [square((size, channels), (size, channels), (size, channels)) for size, channels in SIZES]
    first = [square((2 * size, channels // 2), (size, channels), (size, channels)) for size, channels in SIZES[1:]]
    shortcuts = [square((2 * size, channels // 2), (size, channels)) for size, channels in SIZES[1:]]
    expected = [square((224, 3), (112, 64)), *blocks, blocks[0], *first, *shortcuts]
    assert Counter(shapes(found)) == Counter(expected)
    assert Counter(chain.ended_by for chain in found.network.chain) == {"MaxPool": 1, "Add": 11}
    assert found.network.taken == 20
    assert [conv.activation for conv in found.cases[1].chain.conv] == ["relu", "none"]


SIZES = ((56, 64), (28, 128), (14, 256), (7, 512))


def test_resnet_50_is_its_stem_sixteen_blocks_and_four_shortcuts(tmp_path: Path) -> None:
    found = imported(resnet_50(), tmp_path)
    expected = [square((224, 3), (112, 64))]
    channels = 64
    for (size, width), repeats in zip(SIZES, (3, 4, 6, 3), strict=True):
        before = size if width == 64 else 2 * size
        expected.append(square((before, channels), (before, width), (size, width), (size, 4 * width)))
        expected.append(square((before, channels), (size, 4 * width)))
        block = square((size, 4 * width), (size, width), (size, width), (size, 4 * width))
        expected += [block] * (repeats - 1)
        channels = 4 * width
    assert Counter(shapes(found)) == Counter(expected)
    assert len(found.cases) == 21
    assert found.network.taken == 53


def test_espcn_is_one_chain_up_to_its_rearrangement(tmp_path: Path) -> None:
    found = imported(espcn(), tmp_path)
    assert shapes(found) == [square((64, 1), (64, 64), (64, 32), (64, 9))]
    assert [conv.kernel for conv in found.cases[0].chain.conv] == [(5, 5), (3, 3), (3, 3)]
    assert [conv.activation for conv in found.cases[0].chain.conv] == ["relu", "relu", "none"]
    assert found.network.chain[0].ended_by == "DepthToSpace"


def test_mobilenet_v2_is_parted_by_its_shortcuts_alone(tmp_path: Path) -> None:
    found = imported(mobilenet_v2(), tmp_path)
    # 17 blocks of up, depthwise and down, the first without an up; a stem and a last conv besides.
    assert (found.network.taken, found.network.not_taken) == (52, ())
    # 10 blocks end in a shortcut's sum. The first block of a stage is read twice if the stage has a second one: 5 are.
    assert Counter(chain.ended_by for chain in found.network.chain) == {"Add": 10, "branch": 5, "GlobalAveragePool": 1}
    assert [len(chain.convs) for chain in found.network.chain] == [6, *[3] * 14, 4]
    up, depthwise, down = found.cases[1].chain.conv
    assert (up.groups, depthwise.groups, down.groups) == (1, 144, 1)
    assert [conv.activation for conv in (up, depthwise, down)] == ["relu6", "relu6", "none"]
    assert found.cases[2].chain.shapes == ((1, 56, 56, 24), (1, 56, 56, 144), (1, 28, 28, 144), (1, 28, 28, 32))


@pytest.mark.parametrize("network", [vgg_16, resnet_18, mobilenet_v2], ids=lambda network: network.__name__)
def test_every_conv_is_in_one_chain_or_not_taken(network, tmp_path: Path) -> None:
    model = network()
    found = imported(model, tmp_path).network
    names = [name for chain in found.chain for name in chain.convs] + [conv.node for conv in found.not_taken]
    assert Counter(names) == Counter(node.name for node in model.graph.node if node.op_type == "Conv")
