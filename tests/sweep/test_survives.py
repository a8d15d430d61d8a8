"""Nothing is lost: whatever ends a sweep, the same command goes on where it stopped, no row twice and none missing."""

import contextlib
import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from hexconv.apart import Limits, cores
from hexconv.errors import InputError, ToolMissing
from hexconv.sweep import survey
from hexconv.sweep.grid_file import Grid
from hexconv.sweep.journal import Journal, requests
from tests.deep import DEEP
from tests.sweep.faults import FAULTS, FIRST_BATCH
from tests.sweep.sweeping import Sweeping, alive, descendants, grid_text, kill, wait_until

ROWS = 60
LIMITS = Limits(seconds=5, memory_bytes=600 << 20)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    sweeping = prepared(tmp_path_factory.mktemp("undisturbed"))
    code, out, err = sweeping.ran()
    assert (code, err) == (0, "")
    assert json.loads(out) == {"holds": ROWS}
    return sweeping.table()


@pytest.fixture
def sweeping(tmp_path: Path) -> Sweeping:
    return prepared(tmp_path)


def prepared(folder: Path, job: str = "quick") -> Sweeping:
    (folder / "grid.toml").write_text(grid_text(ROWS))
    return Sweeping(folder, job)


def assert_whole(sweeping: Sweeping, undisturbed: pd.DataFrame) -> None:
    """The table of an undisturbed sweep, and every row in the journal once."""
    assert set(sweeping.keys().values()) == {1}
    assert len(sweeping.keys()) == ROWS
    pd.testing.assert_frame_equal(sweeping.table(), undisturbed)


@DEEP
def test_a_driver_and_its_processes_killed_at_random_lose_nothing(
    sweeping: Sweeping, undisturbed: pd.DataFrame
) -> None:
    rng = random.Random(1)
    for _ in range(2):
        with sweeping.started() as driver:
            enough = sum(sweeping.keys().values()) + rng.randrange(3, 20)
            wait_until(lambda: sum(sweeping.keys().values()) >= enough)  # noqa: B023
            kill(rng.choice(descendants(driver.pid)))
            wait_until(lambda: sum(sweeping.keys().values()) >= enough + 3)  # noqa: B023
            children = descendants(driver.pid)
            kill(driver.pid)
        wait_until(lambda: not any(map(alive, children)), 10)  # noqa: B023
        assert not sweeping.out.exists()
    assert len(sweeping.keys()) < ROWS
    code, _, err = sweeping.ran()
    assert (code, err) == (0, "")
    assert_whole(sweeping, undisturbed)


def test_a_loop_without_end_ends_with_its_driver(tmp_path: Path) -> None:
    hanging = FIRST_BATCH + list(FAULTS).index("hangs")
    text = f"[chain]\ninput = [{hanging}, 1, 1, 4]\n[[chain.conv]]\nout_channels = 8\n"
    (tmp_path / "grid.toml").write_text(text)
    with Sweeping(tmp_path, "row").started() as driver:
        wait_until(lambda: any(busy(pid) for pid in descendants(driver.pid)))
        children = descendants(driver.pid)
        kill(driver.pid)
    wait_until(lambda: not any(map(alive, children)), 3)


def busy(pid: int) -> bool:
    """Whether a process has computed for half a second."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) > 0.5 * os.sysconf(
            "SC_CLK_TCK"
        )
    return False


def test_ctrl_c_leaves_a_table_of_what_is_done_and_a_line_cut_off_is_done_again(
    sweeping: Sweeping, undisturbed: pd.DataFrame
) -> None:
    with sweeping.started() as driver:
        wait_until(lambda: len(sweeping.keys()) >= 5)
        driver.send_signal(signal.SIGSTOP)  # or on a busy machine it is done before it is interrupted
        with pytest.raises(InputError, match="a sweep that is still running"), Journal.opened(sweeping.journal, LIMITS):
            pass
        children = descendants(driver.pid)
        driver.send_signal(signal.SIGINT)
        driver.send_signal(signal.SIGCONT)
        out, err = driver.communicate(timeout=30)
    assert driver.returncode == 130
    assert out == ""
    done = len(sweeping.keys())
    assert err == f"interrupted: {sweeping.out} has {done} of {ROWS} rows; the same command goes on from there\n"
    assert 5 <= len(sweeping.table()) == done < ROWS
    assert not any(map(alive, children))
    lines = sweeping.journal.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 40 + b"\n"  # as a loss of power may leave it
    sweeping.journal.write_bytes(b"".join(lines)[:-30])
    assert sweeping.ran()[0] == 0
    pd.testing.assert_frame_equal(sweeping.table(), undisturbed)
    assert sweeping.journal.read_bytes().count(b"\n") == ROWS + 1  # that line, which nobody minds


def test_a_file_that_may_not_grow_stops_the_sweep_and_no_more(sweeping: Sweeping, undisturbed: pd.DataFrame) -> None:
    code, out, err = sweeping.ran(largest_file_bytes=4000)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "File too large" in err
    assert f"its {len(sweeping.keys())} rows are kept" in err
    assert sweeping.journal.read_bytes().endswith(b"\n")
    assert 0 < len(sweeping.keys()) < ROWS
    assert sweeping.ran()[0] == 0
    assert_whole(sweeping, undisturbed)


@pytest.fixture
def full_disk(tmp_path: Path):
    """A real disk of 16 KiB: room for some rows, not for all."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems can't be mounted here; the test above has a file that can't grow")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@DEEP
def test_a_full_disk_stops_the_sweep_and_room_lets_it_go_on(full_disk: Path, undisturbed: pd.DataFrame) -> None:
    sweeping = prepared(full_disk)
    subprocess.run(["mount", "-o", "remount,size=12k", str(full_disk)], check=True)
    code, _, err = sweeping.ran()
    assert code == 2
    assert err.count("\n") == 1
    assert "No space left on device" in err
    assert 0 < len(sweeping.keys()) < ROWS
    subprocess.run(["mount", "-o", "remount,size=1m", str(full_disk)], check=True)
    assert sweeping.ran()[0] == 0
    assert_whole(sweeping, undisturbed)
    before = sweeping.out.read_bytes()
    fill(full_disk / "ballast")
    code, _, err = sweeping.ran()  # with nothing to do but to write the table
    assert code == 2
    assert "all rows are in the journal" in err
    assert sweeping.out.read_bytes() == before
    assert not list(full_disk.glob("*.unfinished"))


def fill(ballast: Path) -> None:
    """With as much as there is room for."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 512)


def test_what_a_case_does_to_its_process_is_its_row(tmp_path: Path) -> None:
    batches = [1, *(FIRST_BATCH + index for index in range(len(FAULTS))), 2]
    text = "[chain]\n[[chain.conv]]\nout_channels = 8\n[grid]\ninput = " + str([[n, 1, 1, 4] for n in batches])
    (tmp_path / "grid.toml").write_text(text)
    sweeping = Sweeping(tmp_path, "row")
    code, out, err = sweeping.ran()
    assert (code, err) == (1, "")
    assert sum(json.loads(out).values()) == len(batches)
    table = sweeping.table()
    verdicts = zip(table["status"], table["reason"].fillna(""), strict=True)
    found = dict(zip(["first", *FAULTS, "last"], verdicts, strict=True))
    assert found == {
        "first": ("holds", ""),
        "crashes": ("crashed", "its process ended with SIGSEGV"),
        "aborts": ("crashed", "its process ended with SIGABRT: last words"),
        "hangs": ("overran", "it took longer than 5 s"),
        "hogs": ("out_of_memory", "it took more than 629145600 bytes of memory"),
        "asks for too much": ("out_of_memory", "it asked for more memory than there is"),
        "is killed": ("crashed", "its process was killed 3 times, as a system short of memory does"),
        "leaves": ("crashed", "its process ended with exit code 3"),
        "raises": ("failed", "ValueError: line one"),
        "last": ("holds", ""),
    }
    assert len(requests(Grid.parse(text), 0)) == len(batches)
    hung = 1 + list(FAULTS).index("hangs")
    assert 5 <= pd.read_csv(sweeping.out)["elapsed_seconds"][hung] < 30


def test_other_code_than_what_started_the_sweep_adds_no_rows(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes start while a sweep goes on: on machines that join late, or after the source was edited."""
    asked = requests(Grid.load(sweeping.folder / "grid.toml"), 0)
    monkeypatch.setattr(survey, "provenance", lambda: "as it was")
    with Journal.opened(sweeping.journal, LIMITS, False) as journal, cores(1) as executor:
        with pytest.raises(ToolMissing, match="other code"):
            list(survey.add_rows(asked, journal, LIMITS, executor))
        assert not journal.rows
