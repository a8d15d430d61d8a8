"""What a library tells its platform of copies, and what it answers when one fails, here and on the simulator."""

import ctypes
import subprocess
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.structures import COPIES
from hexconv.run.simulator.toolchain import zig
from hexconv.written import scratch
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


class Copy(ctypes.Structure):
    """`struct hexconv_copy`."""

    _fields_ = (
        ("target", ctypes.c_void_p),
        ("source", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("rows", ctypes.c_int),
        ("target_step", ctypes.c_ssize_t),
        ("source_step", ctypes.c_ssize_t),
        ("queue", ctypes.c_int),
        ("group", ctypes.c_uint32),
        ("thread", ctypes.c_int),
    )


@lru_cache(1)
def platform() -> ctypes.CDLL:
    """Compile the simulator's platform and its copy engine for this machine."""
    build, harness = resources.files("hexconv.build"), resources.files("hexconv.run.simulator") / "harness"
    include = (build / "simulator", build / "platform", harness.joinpath(".."), tvm_ffi.libinfo.find_include_path())
    flags = [f"-I{folder}" for folder in (*include, tvm_ffi.libinfo.find_dlpack_include_path())]
    units = (SOURCE.with_name("platform_on_host.c"), harness / "copies.c", harness / "host" / "counters.c")
    with scratch() as folder:
        zig(
            "cc",
            "-O1",
            "-shared",
            "-fPIC",
            "-fno-sanitize=all",
            *flags,
            *map(str, units),
            "-o",
            str(folder / "made.so"),
        )
        return ctypes.CDLL(str(folder / "made.so"))


@pytest.mark.parametrize("seed", range(6))
def test_groups_of_calls_after_one_another(seed: int) -> None:
    """A wait is for the groups of its own call, whatever calls before did on the queue: those, none after them."""
    random, found = np.random.default_rng(seed), np.zeros((), COPIES)
    found["moment"] = 1  # as late as possible: at the wait
    platform().copies_open(ctypes.c_void_p(found.ctypes.data))
    sources = random.integers(1, 200, (4096, 8), np.uint8)
    targets = np.zeros_like(sources)
    used, pending = 0, list[tuple[int, int, int]]()
    for _ in range(40):
        groups = [0, 0]
        copying = random.random()
        for last in [*[False] * random.integers(1, 12), True]:
            queue = int(random.integers(2))
            if not last:
                groups[queue] += 1
            for _ in range(0 if last or random.random() > copying else random.integers(1, 3)):
                copy = Copy(targets[used].ctypes.data, sources[used].ctypes.data, 8, 1, 0, 0, queue, groups[queue], 0)
                platform().copy(ctypes.byref(copy))
                pending.append((queue, groups[queue], used))
                used += 1
            for waiting in range(2) if last else [queue] * int(random.integers(2)):
                group = groups[waiting] - (0 if last else int(random.integers(3)))
                if group > 0:
                    platform().wait_for_group(waiting, group)
                    pending = [each for each in pending if each[0] != waiting or each[1] > group]
            late = [number for _, _, number in pending]
            done = np.setdiff1d(np.arange(used), late)
            assert (targets[done] == sources[done]).all()
            assert not (targets[late] == sources[late]).all(1).any()
    platform().copies_close()
    assert found["fault"] == 0
