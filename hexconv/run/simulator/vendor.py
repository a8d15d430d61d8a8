"""Qualcomm's own simulator in the place of QEMU: what it would take. Nothing here has been run.

`hexagon-sim` comes with the Hexagon SDK (`HEXAGON_Tools/*/Tools/bin`), models caches and pipelines and so
knows cycles, where QEMU knows packets. A runner around it would keep `compile_for_hexagon`, the memory image,
the arenas and the verdict, and replace three things:

* System calls. QEMU's guest makes Linux system calls (`trap0(#1)`); the vendor's simulator offers semihosting
  (`trap0(#0)`: open, read, write, exit). harness/system.h is the one file that knows; the image would be read
  and written instead of mapped, and a fault would be an exception vector instead of a signal.
* Start-up. There is no operating system below the program: the SDK's standalone start-up code sets up memory
  and HVX, or its small system (`--cosim_file`, `--rtos`) does and loads the kernel as a library.
* Counters. c20 to c22 belong to QEMU. Here the cycle counter counts, and with `--timing` for one revision
  (`-mv68`): cycles, which need names of their own beside packets.

VTCM is an address range there, which memory 1 would be given.
"""

import shutil
from pathlib import Path

PROGRAM = "hexagon-sim"
INSTALL = "the Hexagon SDK of Qualcomm, under its licence; put HEXAGON_Tools/*/Tools/bin on PATH"


def find_hexagon_sim() -> Path | None:
    """The vendor's simulator on PATH, if it is there."""
    found = shutil.which(PROGRAM)
    return Path(found) if found else None
