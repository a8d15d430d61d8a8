"""What the simulator needs from this machine, and the commands that install it."""

import resource
from pathlib import Path

QEMU = "qemu-hexagon"
INSTALL_QEMU = "apt-get install qemu-user"
NEWEST_ISA = "v73"
"""The newest instruction set with HVX that any published QEMU runs."""
WORDS_TRAP_FROM = 11
"""The first QEMU on which a word that it doesn't know raises a signal; older ones end."""
NEWER_QEMU = (
    f"QEMU {WORDS_TRAP_FROM} runs up to v73, and needs no root: download qemu-user of Debian's trixie-backports (a "
    "static program), dpkg-deb -x qemu-user_*.deb DIR, and put DIR/usr/bin first on PATH"
)
INSTALL_MLIR = "apt-get install mlir-19-tools"
INSTALL_ZIG = "pip install ziglang"
DEFAULT_MEMORY_BYTES = 1 << 30
DEFAULT_SECONDS = 1800.0
ADDRESSABLE_BYTES = 3 << 30  # A 32-bit program can map this much beside itself.

TVM_ADDRESS_BYTES = 2 << 30
"""Small cases take 1.2 GB of addresses, most of it code and the stacks of threads."""
QEMU_ADDRESS_BYTES = 5 << 30
"""QEMU maps all 4 GiB that a program for Hexagon can address."""
MORE_ADDRESSES = "ulimit -v unlimited"


def short_of_addresses(needed_bytes: int) -> str:
    """Say how much address space is missing under this process's limit (`ulimit -v`); empty where none is."""
    allowed_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed_bytes == resource.RLIM_INFINITY or allowed_bytes >= needed_bytes:
        return ""
    return f"ulimit -v allows {allowed_bytes >> 20} MiB of address space, and {needed_bytes >> 20} MiB are needed"


def available_memory_bytes() -> int | None:
    """Return the bytes of memory that the system says are available; None where it doesn't say."""
    information = Path("/proc/meminfo")
    if not information.exists():
        return None
    lines = dict(line.split(":", 1) for line in information.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024
