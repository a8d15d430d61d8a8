"""Qualcomm's own simulator in the place of QEMU: what it would take. Nothing here has been run.

`hexagon-sim` comes with the Hexagon SDK (`HEXAGON_Tools/*/Tools/bin`), models caches and pipelines and so knows cycles,
where QEMU knows packets. A runner around it would keep `compile_for_hexagon`, the memory image, the arenas and the
verdict, and replace three things:

* System calls. QEMU's guest makes Linux system calls (`trap0(#1)`); the vendor's simulator offers semihosting
  (`trap0(#0)`, ARM's numbers: open, read, write, exit). harness/system.h is the one file that knows; the image would be
  read and written instead of mapped, and a fault is an exception vector instead of a signal.
* Start-up. A program begins in supervisor mode without a memory map: the SDK's `crt0_standalone.o` does that, or
  `--bypass_idle --cosim_file` set-ups as in the SDK's examples. HVX has to be switched on in SSR.
* Counters. c20 to c22 belong to QEMU; here `pcycle` (`r1:0 = upcycle`) counts, and `--timing` makes it cycles of the
  chosen revision (`-mv68`), which therefore need names of their own beside packets.

VTCM is real there (`--subsystem_base`, `hexagon_vtcm`), so memory 1 would be its address range.
"""

import shutil
from pathlib import Path

PROGRAM = "hexagon-sim"
INSTALL = "the Hexagon SDK of Qualcomm, under its licence; put HEXAGON_Tools/*/Tools/bin on PATH"


def find_hexagon_sim() -> Path | None:
    """The vendor's simulator on PATH, if it is there."""
    found = shutil.which(PROGRAM)
    return Path(found) if found else None
