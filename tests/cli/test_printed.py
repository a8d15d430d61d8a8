"""What a command prints as the next one to run does what it says, where it is printed."""

import re
import subprocess
from pathlib import Path

import onnx
import pytest

from hexconv.cli.app import exit_code
from hexconv.run.simulator.qemu import Qemu
from tests.deep import DEEP
from tests.model.builder import Builder
from tests.verify.networks import Network

CASE = """
[chain]
input = [1, 9, 9, 4]
dtype = "uint8"
[[chain.conv]]
out_channels = 8
kernel = [3, 3]
requantize = { multiplier = 1073741824, shift = -9 }
"""


@pytest.fixture(params=["a case.toml", "network.onnx"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A case, whose name has a blank, or a model."""
    path = tmp_path / request.param
    if path.suffix == ".toml":
        path.write_text(CASE)
    else:
        network = Network(seed=3)
        onnx.save(network.model(network.conv8(network.start(), (8, 3, 3, 3), strides=[2, 2])[0]), path)
    return path


@pytest.mark.simulator
@pytest.mark.parametrize("target", ["llvm", pytest.param("hexagon", marks=DEEP)])
def test_the_commands_that_build_and_its_library_print_work(
    source: Path, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand, by a shell; the environment states no compiler."""
    monkeypatch.delenv("CC", raising=False)
    folder = tmp_path / "my lib"
    assert exit_code(["build", str(source), "-o", str(folder), "--target", target]) == 0
    [printed] = re.findall(r"^(make -C .* run): compiles and runs the example", capsys.readouterr().out, re.M)
    told = [*re.findall(r"`(make[^`]*)`", (folder / "README.md").read_text())]
    told += re.findall(r": (make.*)", (folder / "Makefile").read_text())
    assert told
    for command in (printed, *(f"cd '{folder}' && make clean && {command}" for command in told)):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(r": 0 of \d+ elements", done.stdout)


@pytest.mark.parametrize(
    ("runs_up_to", "asked", "compiled", "said"),
    [
        (
            "v67",
            [],
            "v67",
            r"compiled for v67, which QEMU 7 can check here; .*\nmake -C \S+ run: ",
        ),
        ("v73", [], "v68", r"^make -C \S+ run: "),
        ("v67", ["--isa", "v66"], "v66", r"^make -C \S+ run: "),
        ("v67", ["--isa", "v73"], "v73", r"^make -C \S+: compiles .* for v73, and can't run it here: .* up to v67"),
    ],
)
def test_code_is_for_what_this_machine_can_check(
    runs_up_to: str,
    asked: list[str],
    compiled: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hexconv.cli.wanted_model.find_qemu", lambda: Qemu(Path("qemu-hexagon"), "7", runs_up_to))
    (tmp_path / "one.toml").write_text(CASE)
    assert exit_code(["build", str(tmp_path / "one.toml"), "-o", str(tmp_path / "lib"), *asked]) == 0
    assert re.search(said, capsys.readouterr().out, re.M)
    assert f"-mcpu=hexagon{compiled} " in (tmp_path / "lib" / "machine.mk").read_text()


@pytest.mark.parametrize("pool", ["p", "a pool", "MaxPool p reads"])
def test_chains_that_end_for_one_reason_are_told_in_one_line(
    pool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, tensor = Builder("pooled", (1, 8, 64, 64)), "image"
    for number in range(5):
        tensor = net.node(
            "MaxPool", [net.conv(tensor, (8, 8, 3, 3), f"c{number}")], f"{pool}{number}", kernel_shape=[2, 2]
        )
    onnx.save(net.model(net.conv(tensor, (8, 8, 3, 3), "last")), tmp_path / "pooled.onnx")
    assert exit_code(["import", str(tmp_path / "pooled.onnx"), "-o", str(tmp_path / "out")]) == 0
    ends = [line for line in capsys.readouterr().out.splitlines() if "the chain ends because" in line]
    assert ends == [
        "01-c0, 02-c1, 03-c2 and 2 more: the chain ends because MaxPool pools it",
        "06-last: the chain ends because last_out is an output of the model",
    ]
