"""Our kernels beside those of today's best tools, measured in one run: Halide for Hexagon, oneDNN for the host."""
