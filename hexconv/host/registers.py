"""The vector registers of the host, by instruction set."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hexconv.spec.knobs import Simd

ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Registers:
    """The vector registers of one instruction set: the float32 lanes of a register, and the number of registers."""

    lanes: int
    count: int


SETS = {"avx512": Registers(16, 32), "avx2": Registers(8, 16)}
CPU_FLAGS = Path("/proc/cpuinfo")


def registers_of(simd: Simd) -> Registers:
    """The registers that a plan asks for, else this machine's; tiles for either run on any machine, but not as fast."""
    return SETS[_machine() if simd == "auto" else simd]


def sets_here() -> tuple[Simd, ...]:
    """The instruction sets that this machine has, the widest first."""
    return ("avx512", "avx2") if _machine() == "avx512" else ("avx2",)


@cache
def _machine() -> Simd:
    """The widest instruction set that Linux reports for this processor; AVX2 where nothing is reported."""
    flags = CPU_FLAGS.read_text(errors="replace").split() if CPU_FLAGS.exists() else []
    return "avx512" if "avx512f" in flags else "avx2"
