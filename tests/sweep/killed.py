"""A sweep of many rows, killed again and again at random, beside one that nobody disturbs: `make sweep-killed`.

    python -m tests.sweep.killed --rows 1000 --kills 10

The rows are hexconv's own, half of them `cache`, half of them `llvm`. Each kill hits the program or one of its workers,
the one as likely as the other.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pandas as pd

from tests.sweep.sweeping import ROOT, SECONDS, Sweeping, alive, descendants, grid_text, kill, wait_until


class Command(Sweeping):
    """`hexconv sweep GRID --out OUT`."""

    def started(self, **_: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hexconv", "sweep", str(self.folder / "grid.toml"), "--out", str(self.out)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def done(self) -> int:
        """Whole lines of the journal."""
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0


def undisturbed(folder: Path) -> tuple[pd.DataFrame, float]:
    """The table, and how long it took."""
    started = time.monotonic()
    sweep = Command(folder)
    with sweep.started() as driver:
        said = driver.communicate()
    assert driver.returncode == 0, said
    return sweep.table(), time.monotonic() - started


def killed(folder: Path, rows: int, kills: int, draw: random.Random) -> tuple[pd.DataFrame, Counter[str]]:
    """The table of a sweep that was killed so often, after so many rows each time; and who was hit."""
    sweep, hit = Command(folder), Counter[str]()
    driver = sweep.started()
    for after in sorted(draw.sample(range(1, rows), kills)):
        wait_until(lambda: sweep.done() >= after or driver.poll() is not None, 3600)  # noqa: B023
        assert driver.poll() is None, driver.communicate()
        others = descendants(driver.pid)
        victim = draw.choice([driver.pid, draw.choice(others)])
        hit["the driver" if victim == driver.pid else "a worker"] += 1
        kill(victim)
        if victim == driver.pid:
            driver.communicate()
            wait_until(lambda: not any(map(alive, others)), 10)  # noqa: B023
            driver = sweep.started()
    out, err = driver.communicate()
    assert driver.returncode == 0, out + err
    keys = sweep.keys()
    assert len(keys) == rows, f"{len(keys)} rows in the journal"
    assert set(keys.values()) == {1}, "a row twice"
    return sweep.table(), hit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as base:
        folders = [Path(base) / name for name in ("undisturbed", "killed")]
        for folder in folders:
            folder.mkdir()
            (folder / "grid.toml").write_text(grid_text(options.rows // 2, '["cache", "llvm"]'))
        expected, seconds = undisturbed(folders[0])
        print(f"undisturbed: {len(expected)} rows in {seconds:.0f} s", flush=True)
        started = time.monotonic()
        found, hit = killed(folders[1], options.rows, options.kills, random.Random(options.seed))
        print(f"killed {options.kills} times {dict(hit)}: {len(found)} rows in {time.monotonic() - started:.0f} s")
    pd.testing.assert_frame_equal(found, expected)
    print(f"the same tables, but for {' and '.join(SECONDS)}")


if __name__ == "__main__":
    main()
