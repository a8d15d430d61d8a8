"""A conv that falls to scalar code on Hexagon: every command says the same line of it, with an estimate of its cost."""

import csv
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.spec.kernel import HVX_MACS_PER_PACKET, SCALAR_MACS_PER_PACKET

CASE = """
[chain]
input = [1, 4, 5, 8]
dtype = "uint8"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 6
requantize = { multiplier = 1073741824, shift = 2 }
"""
REPORTS = Path(__file__).parents[2] / "reports"


def test_commands_say_the_same_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, said = tmp_path / "left.toml", []
    file.write_text(CASE)
    for command in ("cache", "tir -o " + str(tmp_path), "best --vtcm 1MiB", "build -o " + str(tmp_path / "lib")):
        assert exit_code([*command.split(), str(file)]) == 0
        said.append([line for line in capsys.readouterr().err.splitlines() if "scalar code" in line])
    (line,) = said[0]
    assert "left: kernel plain, none asked: hvx serves requantisation with a shift of 0 or less" in line
    assert f"about {4 * 5 * 6 * 8 / SCALAR_MACS_PER_PACKET:.2g} packets" in line
    assert said == [[line]] * len(said)
    assert exit_code(["cache", str(file), "--target", "llvm"]) == 0  # on this machine nothing falls
    assert "scalar code" not in capsys.readouterr().err


def rates(table: str, column: str, kernel: str) -> list[float]:
    """The MACs per packet of the cases in a table whose convs all have one kernel."""
    with (REPORTS / table).open() as file:
        return [float(row["macs_per_packet"]) for row in csv.DictReader(file) if row[column] == kernel]


def test_what_is_said_of_rates_is_what_the_tables_say() -> None:
    scalar = rates("simulator.csv", "kernel_used", "plain")
    vectors = rates("hvx.csv", "kernel", "hvx")
    assert min(scalar) < SCALAR_MACS_PER_PACKET < max(scalar)
    least, most = HVX_MACS_PER_PACKET
    assert least <= min(vectors)
    assert max(vectors) <= most
