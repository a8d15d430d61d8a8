"""What a library tells its platform of copies, and what it answers when one fails, here and on the simulator."""

import subprocess
from pathlib import Path

import pytest

from hexconv.run.simulator.qemu import find_qemu
from tests.build.test_build import CASES, ISA, ZIG, built

SOURCE = Path(__file__).with_name("copies.c")


def watched(folder: Path, name: str, compiler: list[str], run: list[str]) -> int:
    """How many copies a program of `copies.c` saw, if all of them were as the header says."""
    program = folder / "watched"
    sizes = f"-DOUTPUT_BYTES={name.upper()}_OUTPUT_BYTES"
    words = (f"-DCHAIN={name}", f'-DHEADER="{name}.h"', f'-DFILES="{name}"', sizes)
    files = [str(SOURCE), str(folder / f"{name}.o"), str(folder / "hexconv_posix.c"), "-lpthread", "-o", str(program)]
    flags = ["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", *words]
    subprocess.run([*compiler, *flags, *files], check=True)
    done = subprocess.run([*run, str(program)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.split()[1])


def test_copies_on_this_machine(tmp_path: Path) -> None:
    built(tmp_path, CASES["double"])
    assert watched(tmp_path, "double", ZIG.split(), []) > 0


@pytest.mark.simulator
@pytest.mark.parametrize("name", ["double", "planned"])
def test_copies_on_the_simulator(tmp_path: Path, name: str) -> None:
    built(tmp_path, CASES[name], target="hexagon")
    compiler = [*ZIG.split(), "-target", "hexagon-linux-musl", f"-mcpu=hexagon{ISA}", "-static"]
    assert watched(tmp_path, name, compiler, [str(find_qemu().path)]) > 0
