"""What LLVM has to be told so that HVX code is good: alignment of workspaces, and loops worth rotating."""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op

WORKSPACE_ALIGNMENT_BYTES = 128
_ALLOCATE = Op.get("tirx.TVMBackendAllocWorkspace")

LLVM_OPTIONS = (
    # A loop that keeps 16 vectors in registers has 16 phis in its header; LLVM's default of 16 leaves it unrotated, and
    # neither a hardware loop nor the software pipeliner then sees it.
    "-rotation-max-header-size:uint=1000",
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
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.SeqStmt, _aligned), order="post"))


def _aligned(sequence: tirx.SeqStmt) -> tirx.Stmt:
    """A sequence in which each workspace's statements are inside of its attribute."""
    steps = list(sequence.seq)
    for index in reversed(range(len(steps))):
        step = steps[index]
        if isinstance(step, tirx.DeclBuffer) and isinstance(step.data, Call) and step.data.op.same_as(_ALLOCATE):
            inside = tirx.SeqStmt(steps[index:])
            alignment = tirx.IntImm("int32", WORKSPACE_ALIGNMENT_BYTES)
            steps = [*steps[:index], tirx.AttrStmt(step.buffer, "storage_alignment", alignment, inside)]
    return tirx.SeqStmt(steps) if len(steps) > 1 else steps[0]
