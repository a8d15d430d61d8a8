"""Rules of the host kernel: tiles, panels and bands that fit a CPU's registers and first-level cache. No TVM."""
