"""The simulator: find `qemu-hexagon`, probe what it can run, and run it within a time limit."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hexconv.errors import InputError, Overran, RunFailed, ToolMissing
from hexconv.lower.hexagon_target import isas
from hexconv.run.simulator.needs import (
    INSTALL_QEMU,
    MORE_ADDRESSES,
    NEWER_QEMU,
    QEMU,
    QEMU_ADDRESS_BYTES,
    WORDS_TRAP_FROM,
    short_of_addresses,
)
from hexconv.run.simulator.toolchain import probe_program
from hexconv.written import scratch

_ELF_FLAGS_OFFSET = 36  # e_flags of a 32-bit ELF header; its low byte is the instruction set, 0x67 for v67
_PROBE_SECONDS = 20


@dataclass(frozen=True)
class Qemu:
    """An installed simulator.

    Attributes:
        path: the program.
        version: the version that it prints, `7.2.22`.
        isa: the newest instruction set that it runs and that LLVM emits, `v67`.
    """

    path: Path
    version: str
    isa: str

    def isa_for(self, asked: str | None) -> str:
        """Return the instruction set that was asked for, or else the newest that runs here.

        Raises:
            InputError: there is no such instruction set with HVX.
            ToolMissing: the instruction set is newer than all that run here.
        """
        if asked is None:
            return self.isa
        known = isas()
        if asked not in known:
            raise InputError.no_such("--isa", asked, known)
        if known.index(asked) < known.index(self.isa):
            raise ToolMissing(
                f"{QEMU} {self.version} runs up to {self.isa}, not {asked}; {NEWER_QEMU}; or take {self.isa}"
            )
        return asked

    @property
    def lets_words_trap(self) -> bool:
        """Whether a word of the matrix engine raises a signal; an older simulator ends there."""
        return int(self.version.split(".")[0]) >= WORDS_TRAP_FROM

    def check_words(self) -> None:
        """Refuse a simulator that ends on words of the matrix engine.

        Raises:
            ToolMissing: it is older than QEMU 11.
        """
        if not self.lets_words_trap:
            raise ToolMissing(
                f"the matrix engine's own words trap on QEMU {WORDS_TRAP_FROM} or newer, this is {self.version}; "
                f"{NEWER_QEMU}; or leave --engine-words out"
            )


@dataclass(frozen=True)
class Ending:
    """How a simulator process ended: its exit status (negative: the signal) and what it printed."""

    status: int
    message: str


def find_qemu() -> Qemu:
    """Find the simulator on PATH, and probe what it can run.

    Raises:
        ToolMissing: there is no simulator, or it runs no instruction set with HVX.
    """
    found = shutil.which(QEMU)
    if found is None:
        raise ToolMissing(f"{QEMU} is not on PATH; install it: {INSTALL_QEMU}")
    return _probed(found, Path(found).stat().st_mtime_ns)


@lru_cache
def _probed(found: str, _modified: int) -> Qemu:
    path = Path(found)
    version = _version(path)
    newest = next((isa for isa in isas() if runs(path, isa)), None)
    if newest is None and (short := short_of_addresses(QEMU_ADDRESS_BYTES)):
        raise ToolMissing(f"{QEMU} can't run here: {short}; {MORE_ADDRESSES}")
    if newest is None:
        raise ToolMissing(
            f"{path} {version} runs no Hexagon program with HVX; install QEMU 7.2 or newer: {INSTALL_QEMU}"
        )
    return Qemu(path, version, newest)


def _version(path: Path) -> str:
    said = run([str(path), "--version"], _PROBE_SECONDS, stdin=subprocess.DEVNULL).message
    found = re.search(r"version (\d[\d.]*)", said)
    if found is None:
        raise ToolMissing(f"{path} does not answer --version as QEMU does ({said[:80]!r}); install it: {INSTALL_QEMU}")
    return found[1]


def relabelled(elf: bytes, isa: str) -> bytes:
    """Return a program or object file with its ELF header changed to this instruction set; its code stays the same."""
    content = bytearray(elf)
    content[_ELF_FLAGS_OFFSET] = int(isa.removeprefix("v"), 16)
    return bytes(content)


def runs(path: Path, isa: str) -> bool:
    """Whether the simulator takes a program of this instruction set."""
    content = relabelled(probe_program().read_bytes(), isa)
    with scratch() as folder:
        program = folder / f"probe-{isa}"
        program.write_bytes(content)
        program.chmod(0o700)
        with contextlib.suppress(RunFailed):
            return run([str(path), str(program)], _PROBE_SECONDS, stdin=subprocess.DEVNULL).status == 0
    return False


def run(command: list[str], seconds: float, stdin: int, keep: tuple[int, ...] = ()) -> Ending:
    """Run a program to its end, or to the end of its time. No process is left when this returns, even by an exception.

    Args:
        command: the program and its arguments.
        seconds: its time limit.
        stdin: the file descriptor (or `subprocess.DEVNULL`) that it gets as standard input.
        keep: other file descriptors that it gets.

    Raises:
        Overran: the program took longer.
        ToolMissing: the program can't be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ToolMissing(f"{command[0]} can't be started: {error.strerror}") from error
    with process:
        try:
            message, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            change = "allow more with --seconds, or use a smaller case"
            raise Overran(f"the run took longer than {seconds:g} s; {change}") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return Ending(process.returncode, message.strip())
