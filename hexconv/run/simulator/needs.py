"""What the simulator needs of a machine, and the commands that get it."""

QEMU = "qemu-hexagon"
INSTALL_QEMU = "apt-get install qemu-user"
INSTALL_ZIG = "pip install ziglang"
DEFAULT_MEMORY_BYTES = 1 << 30
DEFAULT_SECONDS = 600.0
