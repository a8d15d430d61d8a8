"""What the simulator needs of a machine, and the commands that get it."""

from pathlib import Path

QEMU = "qemu-hexagon"
INSTALL_QEMU = "apt-get install qemu-user"
NEWEST_ISA = "v73"
"""Of all that a published QEMU runs with HVX."""
NEWER_QEMU = (
    "QEMU 10 runs up to v73, and needs no root: download qemu-user of Debian's bookworm-backports (a static program), "
    "dpkg-deb -x qemu-user_*.deb DIR, and put DIR/usr/bin first on PATH"
)
INSTALL_ZIG = "pip install ziglang"
DEFAULT_MEMORY_BYTES = 1 << 30
DEFAULT_SECONDS = 1800.0
ADDRESSABLE_BYTES = 3 << 30  # what a 32-bit program can map beside itself


def available_memory_bytes() -> int | None:
    """Memory that programs may still take, as the system says; None where it doesn't."""
    information = Path("/proc/meminfo")
    if not information.exists():
        return None
    lines = dict(line.split(":", 1) for line in information.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024
