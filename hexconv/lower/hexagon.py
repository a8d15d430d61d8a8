"""Compile a lowered module to a Hexagon object file, and list the workspaces that its code will ask for.

TVM's kind `hexagon` builds x86 code in 0.27 unless a vendor toolchain is there; its kind `llvm` with a
Hexagon triple gives the real thing (facts of TVM 0.27: HVX intrinsics, vectors of 128 bytes, one entry
`__tvm_ffi_main`).
"""

import re
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call
from tvm.target import Target, codegen

from hexconv.errors import HexconvWarning, Unsupported
from hexconv.lower import vtcm
from hexconv.lower.aligned import LLVM_OPTIONS, align_workspaces
from hexconv.lower.engine import call_engine
from hexconv.lower.packets.assembled import Refused, assembled
from hexconv.lower.packets.fewer_stalls import with_fewer_stalls
from hexconv.lower.packets.low_registers import NoLowRegister, with_low_registers
from hexconv.lower.packets.noted import NotFollowed, with_notes
from hexconv.lower.packets.stored_loads import without_stored_loads
from hexconv.lower.passes import without_compaction
from hexconv.lower.unread import has_unread_caches

TRIPLE = "hexagon-unknown-linux-musl"

_BARE_TARGET = Target({"kind": "llvm", "mtriple": TRIPLE})
_VECTOR = re.compile(r"^\t\tv\d", re.MULTILINE)  # an instruction of LLVM's assembly that writes a vector register
_ALLOCATE = tvm.ir.Op.get("tirx.TVMBackendAllocWorkspace")


@dataclass(frozen=True)
class HexagonObject:
    """One kernel, compiled.

    Attributes:
        isa: the instruction set that it needs, such as `v67`.
        elf: the object file.
        heap_bytes: the size of every workspace in the heap, in the order of the code.
        vtcm_bytes: the size of every workspace in VTCM.
        has_vectors: whether its code has vector instructions.
        text: its assembly; empty where another compiler made it.
        threads: the number of threads, one for each trip of its parallel loop; 0 without such a loop.
    """

    isa: str
    elf: bytes
    heap_bytes: tuple[int, ...]
    vtcm_bytes: tuple[int, ...]
    has_vectors: bool = True
    text: str = ""
    threads: int = 0


@dataclass(frozen=True)
class _Workspace:
    size_bytes: int
    in_vtcm: bool


def isas() -> tuple[str, ...]:
    """Return the instruction sets that TVM's LLVM can emit and that have HVX, newest first: ("v81", ..., "v60")."""
    names = [re.fullmatch(r"hexagonv(\d+)", str(cpu)) for cpu in codegen.llvm_get_cpu_archlist(_BARE_TARGET)]
    numbers = sorted((int(name[1]) for name in names if name), reverse=True)
    return tuple(f"v{number}" for number in numbers if number >= 60)


def hexagon_target(isa: str) -> Target:
    """Return TVM's target for one instruction set with HVX of 128 bytes."""
    features = [f"+hvx{isa}", "+hvx-length128b"]
    options = list(LLVM_OPTIONS)
    return Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": f"hexagon{isa}", "mattr": features, "cl-opt": options})


def compile_for_hexagon(module: tvm.IRModule, isa: str) -> HexagonObject:
    """Compile a scheduled or lowered module with one function `main`.

    Raises:
        Unsupported: a workspace whose size isn't known before the run.
    """
    target = hexagon_target(isa)
    finished = _finished(module, target)
    workspaces = _workspaces(finished)
    library = tvm.get_global_func("target.build.llvm")(finished, target)
    elf, text = object_file(library, library.inspect_source("asm"), isa, target)
    return HexagonObject(
        isa=isa,
        elf=elf,
        heap_bytes=tuple(workspace.size_bytes for workspace in workspaces if not workspace.in_vtcm),
        vtcm_bytes=tuple(workspace.size_bytes for workspace in workspaces if workspace.in_vtcm),
        has_vectors=has_vectors(text),
        text=text,
        threads=max((int(loop.extent) for loop in _parallel(finished)), default=0),
    )


def has_vectors(text: str) -> bool:
    """Whether assembly has instructions of HVX."""
    return _VECTOR.search(text) is not None


def object_file(library: tvm.runtime.Module, text: str, isa: str, target: Target) -> tuple[bytes, str]:
    """Assemble what LLVM has made: return an object file, its packets with fewer stalls, and its assembly.

    Code without vectors keeps LLVM's own packets; so does, with a warning, code whose improved packets the assembler
    refuses. If the assembler refuses LLVM's own packets too, there is no object file: LLVM's would compute something
    else.

    Args:
        library: LLVM's module.
        text: its assembly.
        isa: the instruction set.
        target: TVM's target for that instruction set.

    Raises:
        Unsupported: LLVM has written instructions that do not exist.
    """
    if not has_vectors(text):
        return _object_file(library), text
    text = _possible(text)
    changed = with_fewer_stalls(text, isa)
    try:
        return assembled(changed, target), changed
    except Refused as refused:
        warnings.warn(
            f"LLVM's assembler refuses the packets with fewer stalls for {isa} ({refused}); its own are used, with the "
            "stalls that they have; please report it",
            HexconvWarning,
            stacklevel=2,
        )
    try:
        return assembled(text, target), text
    except Refused as refused:
        raise _impossible(str(refused)) from refused


def _possible(text: str) -> str:
    """Return assembly whose instructions all exist, and that every simulator runs right.

    Raises:
        Unsupported: an instruction names a register that it can't encode, and its packet can't be changed.
    """
    try:
        return without_stored_loads(with_low_registers(text))
    except NoLowRegister as packet:
        raise _impossible(f"in the packet {packet}") from packet


def _impossible(where: str) -> Unsupported:
    """Build the error for assembly that LLVM writes and its assembler refuses."""
    return Unsupported(
        f"LLVM compiles this kernel to an instruction that does not exist ({where}), so its object file would compute "
        'something else; state another plan, such as activations = "words", and please report it'
    )


def noting(kernel: HexagonObject) -> HexagonObject | None:
    """Return a kernel that does the same and reports where each scalar load reads; None if it can't be followed."""
    if not kernel.text:
        return None
    try:
        return replace(kernel, elf=assembled(with_notes(kernel.text), hexagon_target(kernel.isa)), text="")
    except (NotFollowed, Refused):
        return None


def assembly_for_hexagon(module: tvm.IRModule, isa: str) -> str:
    """Compile as `compile_for_hexagon` does, and return the assembly."""
    target = hexagon_target(isa)
    finished = _finished(module, target)
    return with_fewer_stalls(
        _possible(tvm.get_global_func("target.build.llvm")(finished, target).inspect_source("asm")), isa
    )


def _flattened(module: tvm.IRModule) -> tvm.IRModule:
    """Turn blocks into loops and allocations into flat buffers; a lowered module comes out as it went in.

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
    """Run all of TVM's passes, and return what its code generator will see."""
    pipeline, finish_host, _finish_device = tirx.get_tir_pipeline("default")
    placed = vtcm.place_in_vtcm(_flattened(call_engine(module)))
    bound = tirx.transform.BindTarget(target.with_host(target))(placed)
    with without_compaction(shares_memory=not has_unread_caches(module)):
        return align_workspaces(finish_host()(pipeline(bound)))


def _parallel(finished: tvm.IRModule) -> list[tirx.For]:
    """Find the loops whose trips run at the same time."""
    found: list[tirx.For] = []
    tvm_ffi.structural_walk(finished, (tirx.For, found.append))
    return [loop for loop in found if loop.kind == tirx.ForKind.PARALLEL]


def _workspaces(finished: tvm.IRModule) -> list[_Workspace]:
    """List every workspace that the code asks for, as often as it exists at the same time.

    Workspaces in VTCM name their device by a number, others don't.
    """
    everywhere = _asked_for(finished)
    again = [each for loop in _parallel(finished) for each in _asked_for(loop.body) * (int(loop.extent) - 1)]
    return [*everywhere, *again]


def _asked_for(part: tvm.IRModule | tirx.Stmt) -> list[_Workspace]:
    """List the workspaces that some code asks for."""
    found: list[_Workspace] = []

    def note(call: Call) -> None:
        if not call.op.same_as(_ALLOCATE):
            return
        _device_type, device, size, *_dtype = call.args
        if not isinstance(size, tirx.IntImm):
            raise Unsupported(f"a workspace of {size} bytes: its size has to be a constant")
        in_vtcm = isinstance(device, tirx.IntImm) and int(device) == vtcm.DEVICE_ID
        found.append(_Workspace(int(size), in_vtcm))

    tvm_ffi.structural_walk(part, (Call, note))
    return found


def _object_file(library: tvm.runtime.Module) -> bytes:
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        path = Path(folder) / "kernel.o"
        library.write_to_file(str(path), "o")
        return path.read_bytes()
