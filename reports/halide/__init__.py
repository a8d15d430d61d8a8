"""Halide's convs, built for Hexagon and run in this project's simulator harness: the peer on HVX."""
