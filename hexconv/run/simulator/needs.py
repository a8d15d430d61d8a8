"""What the simulator needs from this machine, and the commands that install it."""

from pathlib import Path

QEMU = "qemu-hexagon"
INSTALL_QEMU = "apt-get install qemu-user"
NEWEST_ISA = "v73"
"""The newest instruction set with HVX that any published QEMU runs."""
NEWER_QEMU = (
    "QEMU 10 runs up to v73, and needs no root: download qemu-user of Debian's bookworm-backports (a static program), "
    "dpkg-deb -x qemu-user_*.deb DIR, and put DIR/usr/bin first on PATH"
)
INSTALL_ZIG = "pip install ziglang"
DEFAULT_MEMORY_BYTES = 1 << 30
DEFAULT_SECONDS = 1800.0
ADDRESSABLE_BYTES = 3 << 30  # A 32-bit program can map this much beside itself.


def available_memory_bytes() -> int | None:
    """Return the bytes of memory that the system says are available; None where it doesn't say."""
    information = Path("/proc/meminfo")
    if not information.exists():
        return None
    lines = dict(line.split(":", 1) for line in information.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024
