"""Tell LLVM what it needs for good HVX code: how workspaces are aligned, and what it must not do."""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op, TensorLoad

from hexconv.tir.trees import all_of, around, as_one, buffers_in, uses, with_values

WORKSPACE_ALIGNMENT_BYTES = 128
_SAID = "storage_alignment"
_ALLOCATE = Op.get("tirx.TVMBackendAllocWorkspace")
WORD = "int64"
_BYTES_OF_WORD = ("uint8x8", "int8x8")

WRONG_PASSES = (
    # LLVM 22 computes an address from another one of the same base (r4 = add(r1,##-47488); ...; r4 = add(r4,#-256)),
    # though a pipelined loop has changed the base in between: what is stored there goes a trip too early.
    ("disable-hexagon-amodeopt", 1),
    # LLVM's last data-flow pass takes the reload of a vector for dead, though the next trip of an outer loop reads it:
    # all tiles of channels but the first then add other constants. No case of schedules/hvx needs the pass.
    ("rdf-opt", 0),
)
"""Passes of LLVM that chains and operators are compiled without, each as a switch and its value."""

IDLE_PASSES = (("hexagon-loop-resched", 0),)
"""Passes that make nothing of chains nor of C beside them: no listing of schedules/hvx changes without them."""

_FOR_CHAINS = (("hexagon-insert", 0),)
"""Passes that make nothing of C beside chains, and take a sixth of the time that clang takes for it."""

CLANG_OPTIONS = tuple(
    word for name, value in (*WRONG_PASSES, *IDLE_PASSES, *_FOR_CHAINS) for word in ("-mllvm", f"-{name}={value}")
)
"""What clang takes for C that runs on Hexagon: operators, and the functions that call chains."""

LLVM_OPTIONS = (
    # A loop that keeps 16 vectors in registers has 16 phis in its header; LLVM's default of 16 leaves it unrotated, and
    # neither a hardware loop nor the software pipeliner then sees it.
    "-rotation-max-header-size:uint=1000",
    *(f"-{name}:bool={value}" for name, value in (*WRONG_PASSES, *IDLE_PASSES)),
)


@tirx.transform.prim_func_pass(opt_level=0, name="hexconv.AlignWorkspaces")
def align_workspaces(func: tirx.PrimFunc, _module: tvm.IRModule, _context: tvm.transform.PassContext) -> tirx.PrimFunc:
    """Say of every workspace that it starts at a multiple of 128 bytes, as this project's runtimes give them out.

    before:  cache = decl_buffer(n, data=TVMBackendAllocWorkspace(...)); ...
    after:   with attr(cache, "storage_alignment", 128): the same

    Without it LLVM assumes nothing: every vector of a cache is loaded by `vmemu`, which takes both memory slots of a
    packet.
    Runs after `LowerTVMBuiltin`, which makes the calls.
    """
    body = tvm_ffi.structural_map(_with_whole_words(func.body), (tirx.SeqStmt, _aligned), order="post")
    return func.with_body(_aligned_in_tasks(body))


def _aligned_in_tasks(body: tirx.Stmt) -> tirx.Stmt:
    """Repeat the attributes inside of parallel loops: these become functions, which get bare pointers.

    before:  with attr(cache, "storage_alignment", 128): for band in parallel(4): ...
    after:   with attr(cache, "storage_alignment", 128): for band in parallel(4):
                 with attr(cache, "storage_alignment", 128): ...
    """
    said = [each for each in all_of(body, tirx.AttrStmt) if each.attr_key == _SAID]

    def inside(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        inner = loop.body
        for each in said:
            if uses(loop.body, each.node):
                inner = tirx.AttrStmt(each.node, _SAID, each.value, inner)
        return around(loop, inner)

    return tvm_ffi.structural_map(body, (tirx.For, inside))


def _aligned(sequence: tirx.SeqStmt) -> tirx.Stmt:
    """Return a sequence in which each workspace's statements stand inside of its attribute."""
    steps = list(sequence.seq)
    for index in reversed(range(len(steps))):
        step = steps[index]
        if isinstance(step, tirx.DeclBuffer) and isinstance(step.data, Call) and step.data.op.same_as(_ALLOCATE):
            inside = tirx.SeqStmt(steps[index:])
            alignment = tirx.IntImm("int32", WORKSPACE_ALIGNMENT_BYTES)
            steps = [*steps[:index], tirx.AttrStmt(step.buffer, _SAID, alignment, inside)]
    return as_one(steps)


def _with_whole_words(body: tirx.Stmt) -> tirx.Stmt:
    """Declare caches that are read and written in words alone as caches of words.

    before:  words = reinterpret("int64", cache[i])                             cache of uint8x8
    after:   words = reinterpret("int64", reinterpret("uint8x8", cache[i]))     cache of int64

    TVM's StorageRewrite makes vectors of such caches, and its code generator then takes them to be aligned like their
    elements: where LLVM can't find more, it reads byte by byte.
    """
    bytes_ = [buffer for buffer in buffers_in(body, tirx.DeclBuffer) if str(buffer.dtype) in _BYTES_OF_WORD]
    words = {old: tirx.decl_buffer(old.shape, WORD, old.name, data_alignment=old.data_alignment) for old in bytes_}
    if not words:
        return body

    def loaded(each: TensorLoad) -> tirx.Expr:
        if each.source not in words:
            return each
        return tirx.reinterpret(each.ty, tirx.BufferLoad(words[each.source], each.indices))

    def stored(each: tirx.BufferStore) -> tirx.BufferStore:
        if each.buffer not in words:
            return each
        return tirx.BufferStore(words[each.buffer], tirx.reinterpret(WORD, each.value), each.indices)

    body = tvm_ffi.structural_map(body, [(TensorLoad, loaded), (tirx.BufferStore, stored)])
    return with_values(body, words)
