"""Compile a lowered module to a Hexagon object file, and list the workspaces that its code will ask for."""

from dataclasses import dataclass, replace

import tvm
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad
from tvm.target import Target

from hexconv.lower import queues, vtcm
from hexconv.lower.aligned import align_workspaces
from hexconv.lower.engine import call_engine
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.in_turns import without_views
from hexconv.lower.object_file import has_vectors, object_file
from hexconv.lower.packets.assembled import Refused, assembled
from hexconv.lower.packets.noted import NotFollowed, with_notes
from hexconv.lower.passes import without_compaction
from hexconv.lower.workspaces import threads_of, workspaces_of
from hexconv.schedule.trees import all_of, buffers_in


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


def compile_for_hexagon(module: tvm.IRModule, isa: str) -> HexagonObject:
    """Compile a scheduled or lowered module with one function `main`.

    Raises:
        Unsupported: a workspace whose size isn't known before the run.
    """
    target = hexagon_target(isa, module)
    finished = _finished(module, target)
    workspaces = workspaces_of(finished)
    library = tvm.get_global_func("target.build.llvm")(finished, target)
    elf, text = object_file(library, library.inspect_source("asm"), isa, target)
    return HexagonObject(
        isa=isa,
        elf=elf,
        heap_bytes=workspaces.heap_bytes,
        vtcm_bytes=workspaces.vtcm_bytes,
        has_vectors=has_vectors(text),
        text=text,
        threads=threads_of(finished),
    )


def noting(kernel: HexagonObject) -> HexagonObject | None:
    """Return a kernel that does the same and reports where each scalar load reads; None if it can't be followed."""
    if not kernel.text:
        return None
    try:
        return replace(kernel, elf=assembled(with_notes(kernel.text), hexagon_target(kernel.isa)), text="")
    except (NotFollowed, Refused):
        return None


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
    placed = vtcm.place_in_vtcm(_flattened(call_engine(without_views(module))))
    bound = tirx.transform.BindTarget(target.with_host(target))(placed)
    with without_compaction(shares_memory=not _has_unread_caches(module)):
        return align_workspaces(finish_host()(pipeline(bound)))


def _has_unread_caches(module: tvm.IRModule) -> bool:
    """Return whether any memory that a function allocates is the target of asynchronous copies and of no load.

    A conv that makes nothing but padding reads no filter, though its filter is staged. TVM's StorageRewrite takes such
    a cache for dead once the copy has started, and gives its memory to another cache while the copy is under way.
    """
    body = module["main"].body
    targets = [call.args[1].args[0].source for call in all_of(body, Call) if call.op.same_as(queues.COPY)]
    loaded = [load.source for load in all_of(body, TensorLoad)]
    return any(_count(targets, buffer) == _count(loaded, buffer) > 0 for buffer in buffers_in(body))


def _count(sources: list[tirx.Var], buffer: tirx.Var) -> int:
    return sum(source.same_as(buffer) for source in sources)
