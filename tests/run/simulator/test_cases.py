"""Whole chains on the simulator: right results, VTCM as predicted, cases of one command independent."""

import json
from pathlib import Path

import pytest

from hexconv.analyze import vtcm_fit
from hexconv.cli.app import exit_code
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from tests.deep import one_in

pytestmark = pytest.mark.simulator

REQUANTIZE = "{ multiplier = 1518500250, shift = -9, zero_point = 12 }"
CHAINS = {
    "float32-mixed-kernels": """
        [chain]
        input = [1, 9, 10, 33]
        [[chain.conv]]
        out_channels = 40
        kernel = 3
        bias = true
        activation = "relu"
        [[chain.conv]]
        out_channels = 8
        """,
    "float16-three-convs": """
        [chain]
        input = [1, 8, 8, 8]
        dtype = "float16"
        [[chain.conv]]
        out_channels = 8
        padding = 1
        kernel = 3
        [[chain.conv]]
        out_channels = 8
        [[chain.conv]]
        out_channels = 4
        stride = 2
        """,
    "uint8-requantised": f"""
        [chain]
        input = [2, 12, 9, 20]
        dtype = "uint8"
        zero_point = 7
        [[chain.conv]]
        out_channels = 40
        kernel = 3
        padding = 1
        bias = true
        filter_zero_point = 3
        requantize = {REQUANTIZE}
        [[chain.conv]]
        out_channels = 8
        stride = 2
        requantize = {REQUANTIZE}
        """,
    "int8-ties-up-and-int32-result": f"""
        [chain]
        input = [1, 9, 8, 16]
        dtype = "int8"
        [[chain.conv]]
        out_channels = 8
        kernel = [1, 3]
        dilation = 2
        requantize = {REQUANTIZE.replace("}", ', rounding = "up" }')}
        [[chain.conv]]
        out_channels = 8
        """,
}


@pytest.mark.parametrize("storage", ["global", "vtcm"])
@pytest.mark.parametrize("name", one_in(4, CHAINS))
def test_a_chain_on_the_simulator_equals_the_reference_and_takes_the_vtcm_that_is_predicted(
    name: str, storage: str
) -> None:
    case = Case.parse(f'{CHAINS[name]}\n[plan]\nstorage = "{storage}"', name)
    ran = run_case(case, lower_case(case), Simulator(slots=False))
    assert ran.check.passed, ran.check
    assert ran.vtcm_bytes == (vtcm_fit(case.chain, case.plan).demand_bytes if storage == "vtcm" else 0)


def test_cases_of_one_command_are_independent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = CHAINS["float16-three-convs"]
    wide = "[chain]\ninput = [1, 64, 64, 64]\n[[chain.conv]]\nout_channels = 64"
    files = {
        "a-good": small,
        "b-too-large-for-vtcm": f'{wide}\n[plan]\nh_split = 8\nstorage = "vtcm"\narch = "v66"',
        "c-sums-too-long": "[chain]\ninput = [1, 4, 4, 64]\ndtype = 'int16'\n[[chain.conv]]\nout_channels = 4",
        "d-too-large-for-memory": "[chain]\ninput = [8, 1024, 1024, 1]\n[[chain.conv]]\nout_channels = 1",
        "e-good": small,
    }
    paths = [tmp_path / f"{name}.toml" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    assert exit_code(["run", *map(str, paths), "--target", "hexagon", "--json"]) == 2
    rows = {row["case"]: row for row in json.loads(capsys.readouterr().out)}
    assert [name for name, row in rows.items() if row["passed"]] == ["a-good", "e-good"]
    assert rows["a-good"]["packets"] == rows["e-good"]["packets"]
    assert rows["b-too-large-for-vtcm"]["vtcm"]["gap_bytes"] > 0
    assert "int32" in rows["c-sums-too-long"]["error"]
    assert "may have 1024.0 MiB" in rows["d-too-large-for-memory"]["error"]


def test_a_run_that_takes_too_long_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.toml"
    path.write_text("[chain]\ninput = [1, 64, 64, 128]\n[[chain.conv]]\nout_channels = 128\nkernel = 3")
    assert exit_code(["run", str(path), "--target", "hexagon", "--seconds", "0.3"]) == 2
    assert "took longer than 0.3 s" in capsys.readouterr().err


def test_an_instruction_set_that_nothing_here_runs_is_not_run_and_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CHAINS["float16-three-convs"])
    assert exit_code(["run", str(path), "--target", "hexagon", "--isa", "v81", "--json"]) == 2
    told = capsys.readouterr()
    (row,) = json.loads(told.out)
    assert row["passed"] is None
    assert "packets" not in row
    assert "not v81" in told.err
    assert "trixie-backports" in told.err
    assert exit_code(["run", str(path), "--isa", "v68"]) == 2
    assert "--target hexagon" in capsys.readouterr().err


def test_the_newest_instruction_set_that_runs_here_may_be_asked_for() -> None:
    qemu = find_qemu()
    assert qemu.isa_for(qemu.isa) == qemu.isa_for(None) == qemu.isa
