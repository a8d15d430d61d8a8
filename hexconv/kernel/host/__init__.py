"""Rules of the host kernel: registers and first cache of a CPU; tiles, panels and bands made for them. No TVM."""
