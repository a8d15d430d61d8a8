"""Kernels and simulators that fail: one clear line each, nothing left behind, the next run unharmed."""
# TVMScript states a buffer's shape where Python states a type.
# pyright: reportInvalidTypeForm=false

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tvm
from hypothesis import example, given
from hypothesis import strategies as st
from tvm import tirx
from tvm.script import tirx as T  # noqa: N812 -- TVMScript is written with this name

from hexconv.errors import RunFailed, ToolMissing
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.measurement import Measurement
from hexconv.run.simulator.image import laid_out
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.structures import HEADER
from hexconv.written import temporary_folder
from tests.draws import RUN

pytestmark = pytest.mark.simulator

PATIENT = Simulator(seconds=60)
INPUT = np.linspace(1, 1.5, 1024, dtype=np.float32)


def word_of(field: str) -> int:
    """The word of the header at which a field starts."""
    assert HEADER.fields
    return HEADER.fields[field][1] // 4


@T.prim_func(s_tir=True)
def copying(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    for i in range(1024):
        b[i] = a[i]


@T.prim_func(s_tir=True)
def trapping(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    b[0] = a[300000000]


@T.prim_func(s_tir=True)
def endless(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    while a[0] < T.float32(2):
        b[0] = a[0]


@T.prim_func(s_tir=True)
def behind_output(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    for i in range(1025):
        b[i] = a[0]


@T.prim_func(s_tir=True)
def before_output(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    for i in range(1025):
        b[i - 1] = a[0]


@T.prim_func(s_tir=True)
def anywhere(a: T.Buffer((1024,), "int32"), b: T.Buffer((1024,), "int32")):
    for i in range(1024):
        b[i] = a[i]
    for i in range(a[1]):
        b[a[0] + i] = a[2]


@T.prim_func(s_tir=True)
def into_input(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    b[0] = a[0]
    a[7] = T.float32(0)


@T.prim_func(s_tir=True)
def behind_workspace(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((1000,), "float32")
    for i in range(1001):
        cache[i] = a[i]
    for i in range(1000):
        b[i] = cache[i]


@T.prim_func(s_tir=True)
def before_workspace(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((1000,), "float32")
    for i in range(1000):
        cache[i - 2] = a[i]
    for i in range(1000):
        b[i] = cache[i]


@T.prim_func(s_tir=True)
def behind_vtcm(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((512,), "float32", scope="global.vtcm")
    for i in range(513):
        cache[i] = a[i]
    for i in range(512):
        b[i] = cache[i]


@T.prim_func(s_tir=True)
def large_vtcm(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((75000,), "float32", scope="global.vtcm")
    for i in range(1024):
        cache[i * 70] = a[i]
    for i in range(1024):
        b[i] = cache[i * 70]


@T.prim_func(s_tir=True)
def leaking(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    for i in range(100):
        cache = T.decl_buffer((1024,), data=T.TVMBackendAllocWorkspace(1, 0, T.uint64(4096), 2, 32))
        if T.isnullptr(cache.data):
            T.tvm_throw_last_error()
        cache[0] = a[i]
        b[i] = cache[0]


@T.prim_func(s_tir=True)
def refusing(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    assert a[0] < T.float32(0), "the first element has to be negative"
    b[0] = a[0]


@T.prim_func(s_tir=True)
def greedy(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((1 << 29,), "float32")
    for i in range(1024):
        cache[i * 500000] = a[i]
    for i in range(1024):
        b[i] = cache[i * 500000]


def attempt(kernel: tirx.PrimFunc, simulator: Simulator | None = None) -> Measurement:
    module = tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    return (simulator or Simulator()).run(module, [INPUT], [((1024,), "float32")])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (trapping, "trapped: SIGSEGV at address 0x.*, outside of all buffers"),
        (behind_output, "wrote behind output 0, 0 bytes past its end"),
        (before_output, "wrote in front of output 0, 1 bytes before its start"),
        (into_input, "wrote to input 0"),
        (behind_workspace, "wrote behind workspace 0 of 4000 bytes in the heap, 0 bytes past its end"),
        (
            before_workspace,
            "wrote in front of workspace 0 of 4000 bytes in the heap, 1 bytes before its start",
        ),
        (behind_vtcm, "wrote behind workspace 0 of 2048 bytes in the VTCM, 0 bytes past its end"),
        (leaking, "workspace 1 of 4096 bytes in the heap does not fit: 4096 of 6144 bytes are in use"),
        (refusing, "RuntimeError: the first element has to be negative"),
        (greedy, "needs 1953.1 MiB .* may have 1024.0 MiB, 929.1 MiB less"),
    ],
)
def test_a_wrong_kernel_is_named_and_the_next_run_is_unharmed(kernel: tirx.PrimFunc, message: str) -> None:
    with pytest.raises(RunFailed, match=message):
        attempt(kernel)
    np.testing.assert_array_equal(attempt(copying).outputs[0], INPUT)


@given(st.integers(0, HEADER.itemsize // 4 - 1), st.sampled_from([1, 40, 5000]), st.sampled_from([0, 1, 77, -1]))
@RUN
@example(word_of("complaint") + 1, 1, 7)
@example(word_of("copies") + 2, 1, 99)
def test_a_kernel_that_writes_over_the_header_fails_or_does_no_harm(first: int, count: int, value: int) -> None:
    """Words of 4 bytes from the start of the image; what else the harness then does, the run fails in a line."""
    layout = laid_out(compiled_anywhere(), [((1024,), "int32")] * 2, 0)
    output = int(layout.header["arguments"][1]["data"]["offset"]) // 4
    given_ = np.arange(1024, dtype=np.int32)
    given_[:3] = first - output, min(count, HEADER.itemsize // 4 - first), value
    with contextlib.suppress(RunFailed):
        run = PATIENT.run_object(compiled_anywhere(), [given_], [((1024,), "int32")])
        np.testing.assert_array_equal(run.outputs[0], given_)


@cache
def compiled_anywhere() -> HexagonObject:
    return PATIENT.compiled(tvm.IRModule({"main": anywhere.with_attr("global_symbol", "main")}))


def test_an_endless_kernel_ends_with_its_time() -> None:
    with pytest.raises(RunFailed, match=r"took longer than 0.5 s"):
        attempt(endless, Simulator(seconds=0.5))
    assert not simulators_of(os.getpid())


def test_a_vtcm_that_is_too_small_is_named() -> None:
    with pytest.raises(
        RunFailed, match="workspace 0 of 286444 bytes in the VTCM does not fit: 0 of 262144 bytes are in use"
    ):
        attempt(large_vtcm, Simulator(arch="v66"))
    assert attempt(large_vtcm, Simulator(arch="v68")).outputs[0][0] == INPUT[0]


def test_a_simulator_that_is_killed_half_way_is_named() -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(attempt, endless, PATIENT)
        os.kill(first_simulator_of(os.getpid()), signal.SIGKILL)
        with pytest.raises(RunFailed, match="ended inside the kernel: killed by SIGKILL"):
            running.result()


def test_no_simulator_outlives_a_killed_program() -> None:
    folder = str(Path(__file__).parent)
    script = f"import sys; sys.path.insert(0, {folder!r}); from test_failures import *; attempt(endless, PATIENT)"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as program:
        try:
            simulator = first_simulator_of(program.pid)
        finally:
            program.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{simulator}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{simulator}").exists()


def test_a_missing_simulator_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="not on PATH; install it: apt-get install qemu-user"):
        attempt(copying)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo qemu-hexagon version 6.0.0; exit 1",
            "6.0.0 runs no Hexagon program with HVX; install QEMU 7.2 or newer",
        ),
        ("exit 0", "does not answer --version as QEMU does"),
    ],
)
def test_a_simulator_that_is_too_old_or_none_at_all_is_named(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "qemu-hexagon"
    old.write_text(f"#!/bin/sh\n{script}\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ToolMissing, match=message):
        attempt(copying)


def test_no_temporary_file_stays() -> None:
    before = set(temporary_folder().iterdir())
    attempt(copying)
    with pytest.raises(RunFailed):
        attempt(endless, Simulator(seconds=0.5))
    assert set(temporary_folder().iterdir()) == before


def simulators_of(process: int) -> list[int]:
    """Children of a process, by any of its threads, that run a program of ours."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    children = [int(child) for task in tasks for child in read(task / "children").split()]
    return [child for child in children if "qemu-hexagon" in read(Path(f"/proc/{child}/cmdline"))]


def first_simulator_of(process: int) -> int:
    """Wait for the simulator of a run that doesn't end, until its kernel runs."""
    deadline = time.monotonic() + PATIENT.seconds
    while time.monotonic() < deadline:
        for child in simulators_of(process):
            if in_its_kernel(child):
                return child
        time.sleep(0.01)
    raise AssertionError("no simulator came up")


def in_its_kernel(child: int) -> bool:
    """Whether it has the image mapped and has spent 0.2 s since: the kernel is what takes any."""
    spent = read(Path(f"/proc/{child}/stat")).rpartition(")")[2].split()[11:13]
    return "hexconv-image" in read(Path(f"/proc/{child}/maps")) and sum(map(int, spent)) >= 20


def read(path: Path) -> str:
    """A file of /proc; empty when its process has just gone."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
