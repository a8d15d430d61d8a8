"""Packets that the assembler refuses cost a kernel its improvement, and nothing else."""

from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import HexconvWarning
from hexconv.lower import lower_case, object_file
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.object_file import Refused, assembled
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize

CASE = """
[chain]
input = [1, 8, 8, 4]
dtype = "uint8"
[[chain.conv]]
out_channels = 32
requantize = { multiplier = 131072 }
[plan]
kernel = "hvx"
"""
SMALL = Case(
    "small",
    Chain(input=(1, 8, 8, 4), dtype="uint8", conv=(Conv2d(out_channels=32, requantize=Requantize(multiplier=131072)),)),
    Plan(kernel="hvx"),
)


def with_a_fifth(text: str, _arch: str) -> str:
    """Assembly with one load too many in its first packet of vectors."""
    return (
        text.replace("\t\tv0 = ", "\t\tv30 = vmem(r0+#0)\n\t\tv31 = vmem(r0+#1)\n\t\tv0 = ", 1)
        + "\t{ no such thing }\n"
    )


def test_the_assembler_says_what_it_refuses_and_where() -> None:
    with pytest.raises(Refused, match=r"^invalid instruction packet, at line 4$"):
        assembled("main:\n\t{\n\t\tv0 = vmem(r0+#0)\n\t\tv1 = vmem(r0+#1) }\n\t{ jumpr r31 }\n", hexagon_target("v68"))


def test_a_kernel_whose_packets_are_refused_is_llvms_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = lower_case(SMALL).module
    monkeypatch.setattr(object_file, "with_fewer_stalls", with_a_fifth)
    with pytest.warns(HexconvWarning, match=r"refuses the packets .* for v68 \(.* line \d+\); its own are used"):
        kernel = compile_for_hexagon(module, "v68")
    assert kernel.elf[:4] == b"\x7fELF"
    assert kernel.has_vectors


@pytest.mark.simulator
def test_a_run_goes_on_with_it_and_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(CASE)
    monkeypatch.setattr(object_file, "with_fewer_stalls", with_a_fifth)
    assert exit_code(["run", str(path), "--target", "hexagon"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("hexconv: LLVM's assembler refuses")] == said
