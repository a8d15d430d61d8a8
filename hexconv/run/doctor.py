"""What this machine can run: every part that hexconv stands on, its version, and how to get what is missing.

What needs TVM is imported where it is used: a machine without TVM has to be told so.
"""

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hexconv.errors import HexconvError
from hexconv.run.simulator import needs

MIB = 1 << 20
INSTALL_RUNTIME = "pip install 'hexconv[verify]'"
CPUINFO = Path("/proc/cpuinfo")
X86 = ("x86_64", "amd64", "i386", "i686")
VNNI = {"avx512_vnni", "avx_vnni", "avx_vnni_int8"}
FFI_REQUIREMENT = "apache-tvm-ffi>=0.1.14.post0,<0.1.15"


@dataclass(frozen=True)
class Part:
    """One part of the machine.

    Attributes:
        name: the part.
        found: its version or size; empty when it is missing.
        serves: what needs it.
        install: the command that gets it.
        needed: whether hexconv is complete without it.
        problem: why what was found won't do; empty when it does.
        hint: how to get one that does more; empty where there is none.
    """

    name: str
    found: str
    serves: str
    install: str
    needed: bool = True
    problem: str = ""
    hint: str = ""

    @property
    def present(self) -> bool:
        """Whether it is there and will do."""
        return bool(self.found) and not self.problem


def examine() -> list[Part]:
    """Look at every part; none of them missing makes this fail."""
    return [_tvm(), _ffi(), _llvm(), _zig(), _qemu(), _vtcm(), _memory(), _onnxruntime()]


def complete(parts: list[Part]) -> bool:
    """Whether everything needed is there."""
    return all(part.present for part in parts if part.needed)


def _tvm() -> Part:
    return Part("tvm", _package("apache-tvm"), "everything", "pip install apache-tvm==0.27.0.post1")


def _ffi() -> Part:
    version = _package("apache-tvm-ffi")
    good = version.split(".")[:3] == ["0", "1", "14"]
    problem = "" if good or not version else "every tensorize of TVM 0.27 crashes with it"
    return Part("tvm-ffi", version, "everything", f'pip install "{FFI_REQUIREMENT}"', problem=problem)


def _llvm() -> Part:
    def found() -> str:
        from tvm.target import codegen

        from hexconv.lower.hexagon import isas

        newest, *_, oldest = isas()
        return f"{codegen.llvm_version_major()}, Hexagon {oldest} to {newest}"

    return _probed("llvm", found, "code for Hexagon", "pip install apache-tvm==0.27.0.post1")


def _zig() -> Part:
    def found() -> str:
        from hexconv.run.simulator.toolchain import zig_version

        return zig_version()

    return _probed("zig", found, "run --target hexagon (compiles and links)", needs.INSTALL_ZIG)


def _qemu() -> Part:
    def found() -> str:
        from hexconv.run.simulator.qemu import find_qemu

        simulator = find_qemu()
        return f"{simulator.version}, runs up to {simulator.isa} with HVX"

    part = _probed(needs.QEMU, found, "run --target hexagon", needs.INSTALL_QEMU)
    is_newest = not part.present or f"up to {needs.NEWEST_ISA} " in part.found
    return part if is_newest else replace(part, hint=needs.NEWER_QEMU)


def _vtcm() -> Part:
    def found() -> str:
        from hexconv.lower.vtcm import capacities_bytes

        return ", ".join(f"{name} {size // 1024} KiB" for name, size in capacities_bytes().items())

    return _probed("vtcm", found, 'storage = "vtcm"', "pip install apache-tvm==0.27.0.post1")


def _memory() -> Part:
    available = needs.available_memory_bytes()
    short = available is not None and available < needs.DEFAULT_MEMORY_BYTES
    problem = f"a run may take {needs.DEFAULT_MEMORY_BYTES // MIB} MiB" if short else ""
    found = "unknown" if available is None else f"{available // MIB} MiB available"
    return Part("memory", found, "runs of large cases", "close other programs", needed=False, problem=problem)


def _onnxruntime() -> Part:
    version, doubt = _package("onnxruntime"), saturation()
    found = f"{version}; {doubt}" if version and doubt else version
    return Part("onnxruntime", found, "verify", INSTALL_RUNTIME, needed=False)


def saturation() -> str:
    """Why sums of uint8 times int8 may be wrong in ONNX Runtime on this CPU; empty where they are right.

    Without VNNI its kernels of x86 add two products of 8 bits in 16 bits, which saturate.
    """
    if platform.machine().lower() not in X86 or not CPUINFO.exists():
        return ""
    flags = next((line for line in CPUINFO.read_text().splitlines() if line.startswith("flags")), "").split()
    if VNNI & set(flags):
        return ""
    return "this CPU has no VNNI: ONNX Runtime's own sums of uint8 times int8 may saturate in 16 bits"


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _probed(name: str, find: Callable[[], str], serves: str, install: str) -> Part:
    """A part that is found by trying; what goes wrong is why it is missing."""
    try:
        return Part(name, find(), serves, install)
    except HexconvError as error:
        return Part(name, "", serves, install, problem=str(error))
    except ImportError as error:
        return Part(name, "", serves, install, problem=f"{error}")
