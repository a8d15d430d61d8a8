"""Chains of floats that read codes: what a quantiser made, what was only moved since, and what a chain wrote."""

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from hexconv.errors import Unsupported
from hexconv.network import Wanted
from hexconv.network.built_network import read_network
from hexconv.network.program import Reading
from hexconv.verify import Asked, verify_network
from tests.network.test_drawn_programs import Floats
from tests.quantisers.tensors import Real

WANTED = Wanted(1 << 20, "llvm")


class Floating(Floats):
    """A builder whose convs have floats as filters."""

    def of_floats(self, name: str, shape: tuple[int, ...], outputs: int = 4) -> Real:
        """A conv of 3x3 that keeps rows and columns."""
        filters = self.constant(self.random.standard_normal((outputs, shape[1], 3, 3)) / 5, "float32")
        conv = self.node("Conv", [name, filters], pads=[1, 1, 1, 1])
        return Real(conv, (shape[0], outputs, *shape[2:]))

    def kept(self, *results: Real, path: Path) -> Path:
        """The model of these results in a file."""
        onnx.save(self.ended_by(results), path)
        return path


def direct(net: Floating) -> Real:
    """Behind a DequantizeLinear; a conv of codes and an Add read the same tensor."""
    source = net.real(net.codes_of_image)
    conv = net.of_floats(source.name, source.shape, 3)
    return replace(conv, name=net.node("Add", [conv.name, source.name]))


def twice(net: Floating) -> Real:
    """Two convs read the same tensor."""
    source = net.real(net.codes_of_image)
    one, other = (net.of_floats(source.name, source.shape) for _ in range(2))
    return replace(one, name=net.node("Add", [one.name, other.name]))


def between(net: Floating) -> Real:
    """A layer that is left in floats between two quantised ones."""
    codes = net.conv8(net.codes_of_image, 4)
    source = net.real(codes)
    return net.real(net.conv8(net.quantised(net.of_floats(source.name, source.shape)), 5))


def split(net: Floating) -> Real:
    source = net.real(net.codes_of_image)
    part = net.parts(source, 1)[-1]
    return net.of_floats(part.name, part.shape)


def sliced(net: Floating) -> Real:
    """Each second row and column, side by side."""
    source = net.real(net.codes_of_image)
    ends, axes, steps = ([9999, 9999], [2, 3], [2, 2])
    parts = []
    for row, column in ((0, 0), (1, 1)):
        told = [net.held(each, "int64") for each in ([row, column], ends, axes, steps)]
        parts.append(net.node("Slice", [source.name, *told]))
    n, c, h, w = source.shape
    return net.of_floats(net.node("Concat", parts, axis=1), (n, 2 * c, h // 2, w // 2))


def shuffled(net: Floating) -> Real:
    """Channels in another order."""
    codes = net.conv8(net.codes_of_image, 6)
    source = net.real(codes)
    n, c, h, w = source.shape
    apart = net.node("Reshape", [source.name, net.held([n, 2, c // 2, h, w], "int64")])
    turned = net.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
    return net.of_floats(net.node("Reshape", [turned, net.held(list(source.shape), "int64")]), source.shape)


WAYS = (direct, twice, between, split, sliced, shuffled)


def test_a_chain_of_floats_reads_floats(tmp_path: Path) -> None:
    """Whatever was codes: numpy gives what ONNX Runtime does, and code gives numpy's bytes."""
    net = Floating(1)
    path = net.kept(*(way(net) for way in WAYS), path=tmp_path / "floats.onnx")
    verdict = verify_network(path, Asked(WANTED, workers=1))
    assert verdict.answer == "holds", str(verdict)
    assert [output.answer for output in verdict.outputs] == ["holds"] * len(WAYS)


def test_two_chains_read_one_conversion(tmp_path: Path) -> None:
    net = Floating(1)
    program = read_network(net.kept(twice(net), path=tmp_path / "floats.onnx"), WANTED)
    one, other = (call.sources for call in program.calls)
    assert one == other


def test_what_a_chain_reads_as_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Floating(1)
    path = net.kept(direct(net), path=tmp_path / "floats.onnx")
    [call] = read_network(path, WANTED).calls
    for wrong in (
        {"dtype": "uint8"},
        {"layout": "NCHW"},
        {"extents": (1, 3, 20, 20)},
        {"scale": 0.5},
        {"zero_point": 128},
    ):
        with pytest.raises(Unsupported, match=f"{call.node} reads .*, and its chain reads float32 1x20x20x3 in NHWC"):
            replace(call, sources=(replace(call.sources[0], **wrong),))
        with pytest.raises(Unsupported, match=f"{call.node} writes .*, and its chain writes float32 1x20x20x3 in"):
            replace(call, result=replace(call.result, **wrong))
    monkeypatch.setattr(Reading, "_read_by", lambda self, _, source: self.dense(source))
    with pytest.raises(Unsupported, match=f"chain {call.node}: .* reads .* as int8 .*; quantise what its convs read"):
        read_network(path, WANTED)
