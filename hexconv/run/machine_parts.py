"""Examine this machine: every part that hexconv needs, its version, and how to install the missing ones.

Modules that need TVM are imported only where they are used, so that this also works on a machine without TVM.
"""

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import computed_field

from hexconv.errors import HexconvError, ToolMissing
from hexconv.run.simulator import needs

MIB = 1 << 20
INSTALL_RUNTIME = "pip install 'hexconv[verify]'"
INSTALL_PLOTS = "pip install 'hexconv[report]'"
CPUINFO = Path("/proc/cpuinfo")
X86 = ("x86_64", "amd64", "i386", "i686")
VNNI = {"avx512_vnni", "avx_vnni", "avx_vnni_int8"}
FFI_REQUIREMENT = "apache-tvm-ffi>=0.1.14.post0,<0.1.15"


@dataclass(frozen=True)
class Part:
    """A program, package or capability that hexconv uses.

    Attributes:
        name: the name of the part.
        found: its version or size; empty where it is missing.
        serves: the commands or features that need it.
        install: the command that installs it.
        needed: whether hexconv is incomplete without it.
        problem: why the version that was found is not usable; empty where it is usable.
        hint: how to get a version that can do more; empty where there is none.
    """

    name: str
    found: str
    serves: str
    install: str
    needed: bool = True
    problem: str = ""
    hint: str = ""

    @computed_field
    @property
    def present(self) -> bool:
        """Whether the part is there and usable."""
        return bool(self.found) and not self.problem


def examine() -> list[Part]:
    """Look at every part. A missing part is reported, and never makes this fail."""
    short = needs.short_of_addresses(needs.TVM_ADDRESS_BYTES)
    if short:  # importing TVM would crash
        limit = Part("address space", short, "everything", needs.MORE_ADDRESSES, problem=short)
        return [_tvm(), _ffi(), limit, _memory(), _onnxruntime(), _plots()]
    return [_tvm(), _ffi(), _llvm(), _zig(), _qemu(), _vtcm(), _memory(), _onnxruntime(), _plots(), _mlir()]


def complete(parts: list[Part]) -> bool:
    """Whether all needed parts are there."""
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

        from hexconv.lower.hexagon_target import isas

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
    return replace(part, hint=_not_run()) if part.present else part


def _not_run() -> str:
    """Say which instruction sets the simulator doesn't run, and what would run them."""
    from hexconv.lower.hexagon_target import isas
    from hexconv.run.simulator.qemu import find_qemu

    qemu = find_qemu()
    newer = isas()[: isas().index(qemu.isa)]
    by_others, by_none = (sorted(isa for isa in newer if (isa <= needs.NEWEST_ISA) == runs) for runs in (True, False))
    missing = [*by_others, *([] if qemu.lets_words_trap else ["the matrix engine's words (run --engine-words)"])]
    cure = f"does not run {', '.join(missing)}: {needs.NEWER_QEMU}; " if missing else ""
    return f"{cure}{', '.join(by_none)}: no published QEMU runs them, and code for them is compiled and linked alone"


def _vtcm() -> Part:
    def found() -> str:
        from hexconv.spec.capacities import CAPACITIES_BYTES

        return ", ".join(f"{name} {size // 1024} KiB" for name, size in CAPACITIES_BYTES.items())

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


def _mlir() -> Part:
    def found() -> str:
        from hexconv.run.mlir_host import find_mlir

        return find_mlir().version

    return replace(_probed("mlir", found, "run --target mlir", needs.INSTALL_MLIR), needed=False)


def _plots() -> Part:
    versions = [_package(name) for name in ("altair", "vl-convert-python")]
    return Part("altair", versions[0] if all(versions) else "", "report, best --plot", INSTALL_PLOTS, needed=False)


def check_plots(asked: str) -> None:
    """Refuse plots where the packages that draw them are not installed.

    Raises:
        ToolMissing: Altair or vl-convert is missing.
    """
    if not _plots().present:
        raise ToolMissing(f"{asked} needs Altair and vl-convert, which are not installed: {INSTALL_PLOTS}")


def saturation() -> str:
    """Say why ONNX Runtime's sums of uint8 times int8 may be wrong on this CPU; empty where they are right.

    Without VNNI, ONNX Runtime's x86 kernels add two 8-bit products in 16 bits, and that sum saturates.
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
    """Try to find a part; an error on the way becomes the reason why it is missing."""
    try:
        return Part(name, find(), serves, install)
    except HexconvError as error:
        return Part(name, "", serves, install, problem=str(error))
    except ImportError as error:
        return Part(name, "", serves, install, problem=f"{error}")
