"""`hexconv verify`: small quantised networks, on both targets, right and broken on purpose."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import RunFailed
from hexconv.model import import_model
from hexconv.verify import network
from hexconv.verify.difference import Difference
from hexconv.verify.parts import Whole
from hexconv.verify.passes import computed
from hexconv.verify.taps import tapped
from hexconv.verify.verdict import ChainVerdict, ConvVerdict, NetworkVerdict
from tests.deep import DEEP
from tests.model.builder import Builder
from tests.verify.networks import IMAGE, residual

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

Verify = Callable[..., dict[str, Any]]
CONVS = 4
"""Of `residual`: in three chains, since Add stands between."""


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """`hexconv verify` of a network in a file; what it says, and its exit code."""

    def run(model: onnx.ModelProto, *options: str) -> dict[str, Any]:
        onnx.save(model, tmp_path / "net.onnx")
        code = exit_code(["verify", str(tmp_path / "net.onnx"), "--workers", "1", "--json", *options])
        said = capsys.readouterr()
        return {**(json.loads(said.out) if said.out else {}), "code": code, "error": said.err}

    return run


def assert_whole(said: dict[str, Any]) -> None:
    """Every chain equals numpy, every conv ONNX Runtime's own arithmetic."""
    assert said["error"] == ""
    convs = [conv for chain in said["chains"] for conv in chain["convs"]]
    assert len(convs) == CONVS
    assert all(chain["against_numpy"]["differing"] == 0 for chain in said["chains"])
    assert all(conv["not_float32"] == 0 for conv in convs)
    assert said["convs_alone"]["values"] == sum(conv["against_runtime"]["values"] for conv in convs) > 0


@pytest.mark.parametrize(("form", "per_channel"), [("qdq", True), ("qlinear", False)])
def test_a_network_equals_onnx_runtime_on_the_host(form: str, per_channel: bool, verify: Verify) -> None:
    net, output = residual(form, per_channel)
    said = verify(net.model(output), "--target", "llvm")
    assert_whole(said)
    assert (said["code"], said["holds"], said["packets"]) == (0, True, None)
    assert [one["top5_same"] for one in said["outputs"]] == [True]


@DEEP
@pytest.mark.simulator
def test_a_network_equals_onnx_runtime_on_the_simulator(verify: Verify) -> None:
    net, output = residual("qlinear", per_channel=True)
    said = verify(net.model(output), "--vtcm", "1MiB", "--isa", "v66")
    assert_whole(said)
    assert said["code"] == 0
    assert said["packets"] == sum(chain["packets"] for chain in said["chains"]) > 0


def test_a_wrong_weight_is_seen(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain equals numpy with it, and neither equals ONNX Runtime."""
    right = network.write_network

    def wrong(imported: Any, folder: Path, weights: bool) -> None:
        right(imported, folder, weights)
        path = next(folder.glob("02-*.npz"))
        arrays = dict(np.load(path))
        arrays["filter2"][0] //= 2
        np.savez(path, **arrays)

    monkeypatch.setattr(network, "write_network", wrong)
    net, output = residual()
    said = verify(net.model(output), "--target", "llvm")
    assert said["code"] == 1
    broken = [conv["against_runtime"]["largest"] > 1 for chain in said["chains"] for conv in chain["convs"]]
    assert broken == [False, False, True, False]
    assert [chain["holds"] for chain in said["chains"]] == [True, False, True]
    assert said["chains"][2]["in_network"]["differing"] > 0
    assert said["chains"][2]["against_runtime"]["differing"] == 0


def test_the_rest_of_a_network_is_onnx_runtimes_own(tmp_path: Path) -> None:
    """With its own results in the place of the chains', its outputs are what they were."""
    net, output = residual()
    onnx.save(net.model(output), tmp_path / "net.onnx")
    imported, whole = import_model(tmp_path / "net.onnx"), Whole.load(tmp_path / "net.onnx", None)
    inputs = {"image": np.random.default_rng(1).standard_normal(IMAGE).astype(np.float32)}
    ends = [(run.units[0].source, run.units[-1].result) for run in imported.runs]
    found = tapped(whole, [name for pair in ends for name in pair], inputs)
    known = dict(inputs)
    for source, result in ends:
        known |= computed(whole, [source], known)
        assert np.array_equal(known[source], found.tensors[source])
        known[result] = found.tensors[result]
    assert np.array_equal(computed(whole, whole.outputs, known)[output], found.outputs[output])


def test_a_tap_that_keeps_onnx_runtime_from_fusing_is_refused(tmp_path: Path) -> None:
    net, output = residual()
    model = net.model(output)
    inside = next(node.output[0] for node in model.graph.node if node.op_type == "Conv")
    onnx.save(model, tmp_path / "net.onnx")
    inputs = {"image": np.zeros(IMAGE, np.float32)}
    with pytest.raises(RunFailed, match="fuses other nodes"):
        tapped(Whole.load(tmp_path / "net.onnx", None), [inside], inputs)


def test_a_model_of_floats_and_inputs_that_do_not_fit_are_told_in_a_line(verify: Verify, tmp_path: Path) -> None:
    floats = Builder("floats", IMAGE)
    said = verify(floats.model(floats.conv("image", (8, 3, 3, 3))))
    assert said["code"] == 2
    assert "float32" in said["error"]
    net, output = residual()
    np.savez(tmp_path / "image.npz", image=np.zeros((1, 3, 8, 8), np.float32))
    said = verify(net.model(output), "--input", str(tmp_path / "image.npz"))
    assert (said["code"], said["error"].count("\n")) == (2, 1)
    assert "[1, 3, 20, 20]" in said["error"]
    assert verify(net.model(output), "--target", "llvm", "--isa", "v68")["code"] == 2


def test_onnx_runtime_is_asked_for_by_its_extra(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    net, output = residual()
    said = verify(net.model(output))
    assert said["code"] == 2
    assert said["error"].count("\n") == 1
    assert "pip install 'hexconv[verify]'" in said["error"]


@pytest.mark.parametrize(
    ("numpy", "differing", "largest", "holds"),
    [(0, 0, 0, True), (0, 1, 1, True), (1, 0, 0, False), (0, 1, 2, False), (0, 200, 1, False)],
)
def test_a_chain_holds_that_equals_numpy_and_keeps_the_limits(
    numpy: int, differing: int, largest: int, holds: bool
) -> None:
    values = 10**5
    conv = ConvVerdict("conv", "uint8", Difference(values, differing, largest), 0)
    chain = ChainVerdict("chain", against_numpy=Difference(values, numpy, numpy), convs=(conv,))
    assert NetworkVerdict("net", "llvm", (chain,), ()).holds == holds


def test_a_chain_that_was_not_run_does_not_hold() -> None:
    assert not ChainVerdict("chain", reason="nothing fits").holds


def test_convs_that_each_keep_their_limit_may_not_keep_that_of_all() -> None:
    conv = ConvVerdict("conv", "uint8", Difference(10**6, 60, 1), 0)
    chain = ChainVerdict("chain", against_numpy=Difference(1, 0, 0), convs=(conv,))
    assert chain.holds
    assert not NetworkVerdict("net", "llvm", (chain, chain), ()).holds


@pytest.mark.parametrize(("dtype", "most"), [("uint8", 10), ("int8", 20), ("int16", 1000)])
def test_the_limit_is_that_of_the_dtype_that_the_runtime_sums_in_integers_or_floats(dtype: str, most: int) -> None:
    for differing, holds in ((most, True), (most + 1, False)):
        conv = ConvVerdict("conv", dtype, Difference(10**6, differing, 1), 0)
        chain = ChainVerdict("chain", against_numpy=Difference(1, 0, 0), convs=(conv,))
        assert NetworkVerdict("net", "llvm", (chain,), ()).holds == holds
