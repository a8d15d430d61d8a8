"""Compile a lowered module to a Hexagon object: its workspaces, and a variant that reports scalar loads.

before:  { r5:4 = memd(r7+#8); v1 = vmem(r9++#1) }

after:   { jump .Lnote0 }
         .Lnoted0:
         { r5:4 = memd(r7+#8); v1 = vmem(r9++#1) }

and behind all other code, since some jumps reach no further than a few packets:

         .Lnote0:
         { r29 = add(r29,#-24) }
         { memd(r29+#0) = r1:0; memw(r29+#8) = r31 }
         { r0 = add(r7,#8) }                                the address
         { call hexconv_note_load }                         the harness counts the address if it lies in VTCM
         { r1:0 = memd(r29+#0); r31 = memw(r29+#8) }
         { r29 = add(r29,#24) }
         { jump .Lnoted0 }

The result does what the text does, in more packets. A guarded load is noted under its guard. Where a compare in the
same packet decides the guard, the compare runs before the note, too. Loads from the stack and from fixed addresses
don't read VTCM, and aren't noted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import tvm
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad
from tvm.target import Target

from hexconv.errors import Unsupported
from hexconv.lower import queues, vtcm
from hexconv.lower.aligned import align_workspaces
from hexconv.lower.assembly import Instruction, instruction
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.object_file import Refused, assembled, has_vectors, object_file
from hexconv.lower.queues import call_engine
from hexconv.lower.shared_caches import without_views
from hexconv.lower.stages import without_compaction
from hexconv.tir.trees import all_of, buffers_in

NOTE = "hexconv_note_load"
_ADDRESS = re.compile(r"\bmem\w*\((r\d+)(?:\+(r\d+)<<(#\d+)|\+(##?-?\w+)|\+\+.*)?\)")
_FIXED = re.compile(r"\bmem\w*\((#|gp\b|r\d+=|r\d+<<)")
_GUARD = re.compile(r"^if \((!?)(p\d)(\.new)?\)")
_COPIES = re.compile(r"\bcall\s+\w*mem(cpy|move)")
_STACK = ("r29", "r30")
_BEFORE = ("{ r29 = add(r29,#-24) }", "{ memd(r29+#0) = r1:0; memw(r29+#8) = r31 }")
_AFTER = ("{ r1:0 = memd(r29+#0); r31 = memw(r29+#8) }", "{ r29 = add(r29,#24) }")


class NotFollowed(Exception):
    """A load can't be noted: its address can't be told, or a library executes it."""


def with_notes(text: str) -> str:
    """Add code to assembly that notes each scalar load before its packet.

    Raises:
        NotFollowed: some load can't be noted; the text says which.
    """
    if copied := _COPIES.search(text):
        raise NotFollowed(copied[0])
    lines, behind = list[str](), list[str]()
    packet: list[str] | None = None
    for line in text.splitlines():
        if line.strip() == "{":
            packet = []
        elif packet is not None and line.lstrip().startswith("}"):
            if notes := list(_notes([instruction(each) for each in packet])):
                number = len(behind)
                lines += [f"\t{{ jump .Lnote{number} }}", f".Lnoted{number}:"]
                behind += ["\n\t".join([f".Lnote{number}:", *notes, f"{{ jump .Lnoted{number} }}"])]
            lines += ["\t{", *packet, line]
            packet = None
        elif packet is not None:
            packet.append(line)
        else:
            lines.append(line)
    return "\n".join([*lines, "\t.text", *behind, ""])


def _notes(packet: list[Instruction]) -> Iterator[str]:
    """Yield packets that note the loads of a packet."""
    for load in (each for each in packet if each.loads_scalar):
        if address := _address(load):
            guard = _GUARD.match(load.text)
            yield from _BEFORE
            yield from _guarded(packet, address, *guard.groups()) if guard else (f"{{ r0 = {address} }}",)
            yield f"{{ call {NOTE} }}"
            yield from _AFTER


def _guarded(packet: list[Instruction], address: str, no: str, predicate: str, new: str | None) -> Iterator[str]:
    """Yield packets that compute the address, or 0 where the load does nothing."""
    chosen = (f"{{ r31 = {address} }}", "{ r0 = #0 }", f"{{ if ({no}{predicate}) r0 = r31 }}")
    if new is None:
        yield from chosen
        return
    deciding = [each for each in packet if predicate in each.writes]
    if any(".new" in each.text or each.stores or each.forwards for each in deciding):
        raise NotFollowed(deciding[0].text)
    yield from ("{ r31 = p3:0 }", "{ memw(r29+#12) = r31 }")
    yield f"{{ {'; '.join(each.text for each in deciding)} }}"
    yield from (*chosen, "{ r31 = memw(r29+#12) }", "{ p3:0 = r31 }")


def _address(load: Instruction) -> str | None:
    """Return the sum that gives the address of a load; None where the address can't lie in VTCM."""
    if _FIXED.search(load.text):
        return None
    found = _ADDRESS.search(load.text)
    if found is None:
        raise NotFollowed(load.text)
    base, index, shift, offset = found.groups()
    if base in _STACK:
        return None
    return f"addasl({base},{index},{shift})" if index else f"add({base},{offset or '#0'})"


_ALLOCATE = tvm.ir.Op.get("tirx.TVMBackendAllocWorkspace")


@dataclass(frozen=True)
class Workspaces:
    """What a function asks for.

    Attributes:
        heap_bytes: the size of every workspace in the heap, in the order of the code.
        vtcm_bytes: the size of every workspace in VTCM.
    """

    heap_bytes: tuple[int, ...]
    vtcm_bytes: tuple[int, ...]


@dataclass(frozen=True)
class _Workspace:
    size_bytes: int
    in_vtcm: bool


def workspaces_of(finished: tvm.IRModule) -> Workspaces:
    """List every workspace that the code asks for, as often as it exists at the same time.

    Workspaces in VTCM name their device by a number, others don't.

    Raises:
        Unsupported: a workspace whose size isn't known before the run.
    """
    again = [each for loop in _parallel(finished) for each in _asked_for(loop.body) * (int(loop.extent) - 1)]
    found = [*_asked_for(finished), *again]
    heap, fast = (tuple(each.size_bytes for each in found if each.in_vtcm is in_vtcm) for in_vtcm in (False, True))
    return Workspaces(heap, fast)


def threads_of(finished: tvm.IRModule) -> int:
    """Return the number of threads, one for each trip of a parallel loop; 0 without such a loop."""
    return max((int(loop.extent) for loop in _parallel(finished)), default=0)


def _parallel(finished: tvm.IRModule) -> list[tirx.For]:
    """Find the loops whose trips run at the same time."""
    return [loop for loop in all_of(finished, tirx.For) if loop.kind == tirx.ForKind.PARALLEL]


def _asked_for(part: tvm.IRModule | tirx.Stmt) -> list[_Workspace]:
    """List the workspaces that some code asks for."""
    return [_workspace(call) for call in all_of(part, Call) if call.op.same_as(_ALLOCATE)]


def _workspace(call: Call) -> _Workspace:
    """Read the call that asks for a workspace."""
    _device_type, device, size, *_dtype = call.args
    if not isinstance(size, tirx.IntImm):
        raise Unsupported(f"a workspace of {size} bytes: its size has to be a constant")
    return _Workspace(int(size), in_vtcm=isinstance(device, tirx.IntImm) and int(device) == vtcm.DEVICE_ID)


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
