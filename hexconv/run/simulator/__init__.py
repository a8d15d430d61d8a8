"""Runs on the Hexagon instruction simulator, QEMU."""
