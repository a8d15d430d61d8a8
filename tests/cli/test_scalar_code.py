"""A conv that falls to scalar code on Hexagon: every command says the same line of it, with its cost and its cure."""

import csv
from pathlib import Path

import onnx
import pytest

from hexconv.cli.app import exit_code
from hexconv.spec.kernel_choice import HVX_MACS_PER_PACKET, OF_FLOAT16, SCALAR_MACS_PER_PACKET
from tests.model.builder import Builder

FALLS = {
    "left": (
        'dtype = "uint8"',
        "requantize = { multiplier = 1073741824, shift = 2 }",
        "hvx serves requantisation with a shift of 0 or less; that of chain.conv[0] is 2",
        "hvx serves it with an output scale 4 times as large, which has a shift of 0",
    ),
    "floats": (
        'dtype = "float32"',
        "",
        "hvx serves uint8, int8 and int16 chains, this one is float32",
        "hvx serves it quantised to 8 or 16 bits",
    ),
}
CURED = {
    "left": ('dtype = "uint8"', "requantize = { multiplier = 1073741824, shift = 0 }"),
    "floats": ('dtype = "uint8"', "requantize = { multiplier = 1073741824, shift = -8 }"),
}
REPORTS = Path(__file__).parents[2] / "reports"


def written(path: Path, dtype: str, requantize: str) -> Path:
    """A chain of one conv as a file."""
    path.write_text(
        f'[chain]\ninput = [1, 4, 5, 8]\n{dtype}\noutput_layout = "NHWC"\n'
        f"[[chain.conv]]\nout_channels = 6\n{requantize}\n"
    )
    return path


@pytest.mark.parametrize("name", FALLS)
def test_commands_say_the_same_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *text, why, cure = FALLS[name]
    file, said = written(tmp_path / f"{name}.toml", *text), []
    commands = ("cache", f"tir -o {tmp_path}", "best --vtcm 1MiB", f"build -o {tmp_path / 'lib'}")
    for command in (*commands, "run --target hexagon"):
        assert exit_code([*command.split(), str(file)]) == 0
        said.append([line for line in capsys.readouterr().err.splitlines() if "scalar code" in line])
    (line,) = said[0]
    assert f"{name}: kernel plain, none asked: {why}" in line
    assert f"about {4 * 5 * 6 * 8 / SCALAR_MACS_PER_PACKET:.2g} packets" in line
    assert line.endswith(f"; {cure})")
    assert said == [[line]] * len(said)
    for served in (["cache", file, "--target", "llvm"], ["cache", written(tmp_path / "cured.toml", *CURED[name])]):
        assert exit_code([*map(str, served)]) == 0
        assert "scalar code" not in capsys.readouterr().err


def test_import_says_it_of_a_float_conv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = Builder("floats", [1, 8, 4, 5])
    onnx.save(net.model(net.conv("image", (6, 8, 1, 1))), tmp_path / "floats.onnx")
    assert exit_code(["import", str(tmp_path / "floats.onnx"), "-o", str(tmp_path / "net")]) == 0
    assert "this one is float32 (scalar code: about " in capsys.readouterr().err


def rates(table: str, column: str, kernel: str, case: str = "") -> list[float]:
    """The MACs per packet of the cases in a table whose convs all have one kernel, and whose name begins so."""
    with (REPORTS / table).open() as file:
        rows = [row for row in csv.DictReader(file) if row[column] == kernel and row["case"].startswith(case)]
    return [float(row["macs_per_packet"]) for row in rows]


def test_what_is_said_of_rates_is_what_the_tables_say() -> None:
    scalar = rates("simulator.csv", "kernel_used", "plain")
    vectors = rates("hvx.csv", "kernel", "hvx")
    assert min(scalar) < SCALAR_MACS_PER_PACKET < max(scalar)
    assert rates("simulator.csv", "kernel_used", "plain", "float16") == [pytest.approx(OF_FLOAT16, rel=0.05)]
    least, most = HVX_MACS_PER_PACKET
    assert least <= min(vectors)
    assert max(vectors) <= most
