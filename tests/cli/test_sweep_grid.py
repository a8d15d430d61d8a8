"""`hexconv sweep GRID --out FILE` as a user meets it: the rows say what `cache` and `run` say."""

import errno
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from hexconv.cli.answers import VERSION
from hexconv.cli.app import exit_code
from hexconv.sweep.grid_file import Grid
from hexconv.sweep.journal import requests
from hexconv.sweep.survey import GOOD

GRID = """
targets = ["cache", "llvm"]
[chain]
input = [1, 12, 10, 32]
[[chain.conv]]
out_channels = 40
kernel = 3
[plan]
h_split = [1, 2, 3]
storage = "vtcm"
arch = ["v65", "v68"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid that was swept to CSV."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "grid.toml").write_text(GRID)
    (folder / "new").mkdir()
    assert (
        exit_code(["sweep", str(folder / "grid.toml"), "--out", str(folder / "new" / "table.csv"), "--workers", "1"])
        == 0
    )
    return folder


def test_every_combination_and_target_is_a_row(folder: Path) -> None:
    table = pd.read_csv(folder / "new" / "table.csv")
    assert list(zip(table["h_split"], table["arch"], table["target"], strict=True)) == [
        (h, arch, target) for h in (1, 2, 3) for arch in ("v65", "v68") for target in ("cache", "llvm")
    ]
    assert set(table["status"][table["h_split"] == 3]) == {"refused"}
    assert set(table["reason"][table["h_split"] == 3]) == {
        "plan.h_split: got 3; expected 1 to 2, the blocks of 8 rows of a conv"
    }
    assert set(table["status"][table["h_split"] < 3]) == {"holds"}


def test_the_rows_say_what_cache_and_run_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "case.toml").write_text(requests(Grid.parse(GRID), 0)[6].toml)
    exit_code(["cache", str(folder / "case.toml"), "--json"])
    (cached,) = json.loads(capsys.readouterr().out)
    exit_code(["run", str(folder / "case.toml"), "--json"])
    (ran,) = json.loads(capsys.readouterr().out)
    table = pd.read_csv(folder / "new" / "table.csv").loc[6:7].reset_index(drop=True)
    for name in ("peak_bytes", "agrees", "traffic_bytes", "needed_traffic_bytes", "macs", "needed_macs"):
        assert table.loc[0, name] == cached[name]
    for name in ("passed", "max_abs_error", "max_rel_error", "fringe_is_zero"):
        assert table.loc[1, name] == ran[name]
    for name in ("bytes", "traffic_bytes", "macs"):
        counted = {"bytes": "peak_bytes"}.get(name, name)
        assert table.loc[0, f"predicted_{name}"] == table.loc[0, counted]


def no_process(*_: object, **__: object) -> None:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def test_what_is_done_is_not_done_again_nor_is_another(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are taken from the journal: no process is started for them."""
    (folder / "new" / "table.csv.journal").rename(folder / "other.csv.journal")
    monkeypatch.setattr("subprocess.Popen", no_process)
    out = folder / "other.csv"
    assert exit_code(["sweep", str(folder / "grid.toml"), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": VERSION,
        "file": str(out),
        "rows": 12,
        "statuses": {"holds": 8, "refused": 4},
    }
    assert exit_code(["sweep", str(folder / "grid.toml"), "--out", str(out), "--fresh"]) == 2
    assert "can't be started: Resource temporarily unavailable" in capsys.readouterr().err
    assert out.read_text() == (folder / "new" / "table.csv").read_text()


def test_a_plan_that_does_not_fit_is_infeasible_by_so_much(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.replace("12, 10", "64, 256").replace('["v65", "v68"]', '"v65"'))
    assert exit_code(["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "t.csv"), "--workers", "1"]) == 0
    row = pd.read_csv(tmp_path / "t.csv").iloc[-1]
    assert row["status"] == "infeasible"
    assert f"{row['demand_bytes'] - row['capacity_bytes']:.0f} too many" in row["reason"]
    assert not row["fits"]


def test_a_terminal_sees_rate_estimate_and_failures(folder: Path) -> None:
    """Rows that run out of a tiny memory limit are failures."""
    text = GRID.replace('["v65", "v68"]', '"v68"').replace('["cache", "llvm"]', '["cache"]')
    (folder / "slow.toml").write_text(text)
    command = [sys.executable, "-m", "hexconv", "sweep", str(folder / "slow.toml"), "--out", str(folder / "slow.csv")]
    driver, terminal = pty.openpty()
    command += ["--memory", "30MiB", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, text=True) as sweep:
        os.close(terminal)
        seen = b""
        try:
            while part := os.read(driver, 1 << 16):
                seen += part
        except OSError:  # the other end of a terminal is gone
            pass
        assert sweep.stdout
        said = sweep.stdout.read()
        assert sweep.wait() == 1
        assert said == f"{folder / 'slow.csv'}: 3 rows: 2 out_of_memory, 1 refused\n"
    os.close(driver)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    last = text.split("\r")[-2] if text.endswith("\r\n") else text
    assert "3/3" in text
    assert "2 failures" in text
    assert re.search(r"\d\.\d (rows/s|s/row)", text)
    assert re.search(r"\d:\d\d:\d\d", last)

    # What a limit has ended is done again under another one; what was refused is not.
    assert exit_code(["sweep", str(folder / "slow.toml"), "--out", str(folder / "slow.csv"), "--workers", "1"]) == 0
    assert list(pd.read_csv(folder / "slow.csv")["status"]) == ["holds", "holds", "refused"]


def test_a_missing_simulator_stops_the_sweep_and_is_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "grid.toml").write_text('targets = "hexagon"' + GRID.replace('targets = ["cache", "llvm"]', ""))
    assert exit_code(["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "t.csv"), "--workers", "1"]) == 2
    assert "qemu-hexagon is not on PATH" in capsys.readouterr().err
    rows = [json.loads(line)["row"] for line in (tmp_path / "t.csv.journal").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"refused"}


def test_the_page_shows_a_grid_and_every_status() -> None:
    section = (Path(__file__).parents[2] / "hexconv" / "docs" / "how-to" / "sweep.md").read_text()
    assert len(Grid.parse(section.partition("```toml\n")[2].partition("```")[0])) == 48
    for status in (*GOOD, "differs", "failed", "crashed", "overran", "out_of_memory"):
        assert f"`{status}`" in section


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["{grid}"], "--out"),
        (["{grid}", "--out", "x.xlsx"], ".csv"),
        (["{grid}", "--out", "x.csv", "--memory", "much"], "--memory"),
        (["{grid}", "--out", "x.csv", "--memory", "0B"], "--memory"),
        (["{grid}", "--out", "x.csv", "--seconds", "0"], "seconds"),
        (["{grid}", "--random", "3"], "draws its cases"),
        (["no-such-grid.toml", "--out", "x.csv"], "no such file"),
        (["{grid}", "--out", "/proc/x/x.csv"], "no folder /proc/x; make it: mkdir -p"),
        (["{grid}", "--out", "x.csv", "--scheduler", "nonsense://x"], "--scheduler"),
    ],
)
def test_a_bad_command_line_is_one_line(
    arguments: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)
    assert exit_code(["sweep", *(word.format(grid="grid.toml") for word in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert part in captured.err
