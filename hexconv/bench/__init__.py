"""Compares our kernels with today's best tools, measured in one run: Halide for Hexagon, oneDNN for the host."""
