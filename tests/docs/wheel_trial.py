"""The wheel as a user meets it: a new environment for each Python, no checkout, and README's way as printed.

`python -m tests.docs.wheel_trial python3.10 python3.13` names the Pythons; one that is not here is told as not tried.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE, STDOUT

from tests.docs.console import PROGRESS, matches, play

ROOT = Path(__file__).parents[2]


def trial(python: str, wheel: Path, folder: Path) -> str:
    """Install a wheel for one Python and do what README says; returns size, commands and seconds, or what failed."""
    started, venv = time.monotonic(), folder / "venv"
    subprocess.run([python, "-m", "venv", venv], check=True)
    before = _size(venv)
    install = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, wheel], check=True)
    installed = _size(venv) - before
    subprocess.run([*install, f"{wheel}[verify]"], check=True)
    work = folder / "work"
    work.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEXCONV"))}
    environment["COLUMNS"] = "80"

    def hexconv(arguments: list[str]) -> tuple[int, str]:
        command = [venv / "bin" / "hexconv", *arguments]
        ran = subprocess.run(command, cwd=work, env=environment, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        return ran.returncode, PROGRESS.sub("", ran.stdout)

    commands = 0
    for command, shown, got in play((ROOT / "README.md").read_text(), work, hexconv):
        if not matches(shown, got):
            return f"$ {command}\n{got}\n--- but README shows\n{shown}"
        commands += 1
    took = f"{time.monotonic() - started:.0f} s from the empty environment to the last answer"
    return f"{installed / 1e9:.2f} GB installed; {commands} commands of README, each as printed; {took}"


def _size(folder: Path) -> int:
    """Return the bytes of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def main(pythons: list[str]) -> int:
    """Try each Python; returns 1 where one fails."""
    failed = False
    with tempfile.TemporaryDirectory() as kept:
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*build, "--wheel-dir", kept, ROOT], check=True)
        (wheel,) = Path(kept).glob("*.whl")
        for number, python in enumerate(pythons):
            if not shutil.which(python):
                print(f"{python}: not tried, it is not here")
                continue
            folder = Path(kept) / str(number)
            folder.mkdir()
            said = trial(python, wheel, folder)
            failed |= said.startswith("$")
            print(f"{python}: {said}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
