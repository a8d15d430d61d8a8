"""From a lowered module to a Hexagon object file, and the workspaces that its code will ask for.

TVM's kind `hexagon` builds x86 code in 0.27 unless a vendor toolchain is there; its kind `llvm` with a
Hexagon triple gives the real thing (facts of TVM 0.27: HVX intrinsics, vectors of 128 bytes, one entry
`__tvm_ffi_main`).
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call
from tvm.target import Target, codegen

from hexconv.errors import Unsupported
from hexconv.lower import vtcm
from hexconv.lower.aligned import LLVM_OPTIONS, align_workspaces
from hexconv.lower.engine import call_engine
from hexconv.lower.packets.assembled import assembled
from hexconv.lower.packets.fewer_stalls import with_fewer_stalls
from hexconv.lower.passes import without_compaction

TRIPLE = "hexagon-unknown-linux-musl"

_BARE_TARGET = Target({"kind": "llvm", "mtriple": TRIPLE})
_VECTOR = re.compile(r"^\t\tv\d", re.MULTILINE)  # an instruction of LLVM's assembly that writes a vector register
_ALLOCATE = tvm.ir.Op.get("tirx.TVMBackendAllocWorkspace")


@dataclass(frozen=True)
class HexagonObject:
    """One kernel, compiled.

    Attributes:
        isa: the instruction set it needs, `v67`.
        elf: the object file.
        heap_bytes: size of every workspace in the heap, in the order of the code.
        vtcm_bytes: size of every workspace in VTCM.
        has_vectors: whether its code has vector instructions.
    """

    isa: str
    elf: bytes
    heap_bytes: tuple[int, ...]
    vtcm_bytes: tuple[int, ...]
    has_vectors: bool = True


@dataclass(frozen=True)
class _Workspace:
    size_bytes: int
    in_vtcm: bool


def isas() -> tuple[str, ...]:
    """The instruction sets that TVM's LLVM can emit and that have HVX, newest first: ("v81", ..., "v60")."""
    names = [re.fullmatch(r"hexagonv(\d+)", str(cpu)) for cpu in codegen.llvm_get_cpu_archlist(_BARE_TARGET)]
    numbers = sorted((int(name[1]) for name in names if name), reverse=True)
    return tuple(f"v{number}" for number in numbers if number >= 60)


def hexagon_target(isa: str) -> Target:
    """TVM's target for one instruction set with HVX of 128 bytes."""
    features = [f"+hvx{isa}", "+hvx-length128b"]
    options = list(LLVM_OPTIONS)
    return Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": f"hexagon{isa}", "mattr": features, "cl-opt": options})


def compile_for_hexagon(module: tvm.IRModule, isa: str) -> HexagonObject:
    """Compile a scheduled or lowered module with one function `main`.

    Raises:
        Unsupported: a workspace whose size isn't known before the run.
    """
    target = hexagon_target(isa)
    finished = _finished(vtcm.place_in_vtcm(_flattened(call_engine(module))), target)
    workspaces = _workspaces(finished)
    library = tvm.get_global_func("target.build.llvm")(finished, target)
    text = library.inspect_source("asm")
    has_vectors = _VECTOR.search(text) is not None
    return HexagonObject(
        isa=isa,
        elf=assembled(with_fewer_stalls(text, isa), target) if has_vectors else _object_file(library),
        heap_bytes=tuple(workspace.size_bytes for workspace in workspaces if not workspace.in_vtcm),
        vtcm_bytes=tuple(workspace.size_bytes for workspace in workspaces if workspace.in_vtcm),
        has_vectors=has_vectors,
    )


def assembly_for_hexagon(module: tvm.IRModule, isa: str) -> str:
    """The same as `compile_for_hexagon`, as text."""
    target = hexagon_target(isa)
    finished = _finished(vtcm.place_in_vtcm(_flattened(call_engine(module))), target)
    return with_fewer_stalls(tvm.get_global_func("target.build.llvm")(finished, target).inspect_source("asm"), isa)


def _flattened(module: tvm.IRModule) -> tvm.IRModule:
    """Blocks to loops, allocations to flat buffers; a lowered module comes out as it went in.

    A function that was written as loops, not scheduled, has flat caches already, and none to share memory.
    """
    if not module["main"].attrs.get("s_tir"):
        return module
    passes = [
        s_tir.transform.CanonicalizeLoop(),
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.InjectSoftwarePipeline(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
        tirx.transform.StorageRewrite(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)


def _finished(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """All of TVM's passes: what its code generator will see."""
    pipeline, finish_host, _finish_device = tirx.get_tir_pipeline("default")
    bound = tirx.transform.BindTarget(target.with_host(target))(module)
    with without_compaction():
        return align_workspaces(finish_host()(pipeline(bound)))


def _workspaces(finished: tvm.IRModule) -> list[_Workspace]:
    """Every workspace that the code asks for; only those in VTCM name the device by a number."""
    found: list[_Workspace] = []

    def note(call: Call) -> None:
        if not call.op.same_as(_ALLOCATE):
            return
        _device_type, device, size, *_dtype = call.args
        if not isinstance(size, tirx.IntImm):
            raise Unsupported(f"a workspace of {size} bytes: its size has to be a constant")
        in_vtcm = isinstance(device, tirx.IntImm) and int(device) == vtcm.DEVICE_ID
        found.append(_Workspace(int(size), in_vtcm))

    tvm_ffi.structural_walk(finished, (Call, note))
    return found


def _object_file(library: tvm.runtime.Module) -> bytes:
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        path = Path(folder) / "kernel.o"
        library.write_to_file(str(path), "o")
        return path.read_bytes()
