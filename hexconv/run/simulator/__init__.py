"""Run Hexagon code on the instruction simulator QEMU."""
