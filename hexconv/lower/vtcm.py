"""VTCM: how much an architecture has, and memory for the buffers that a schedule puts there.

TVM lowers a buffer of scope `global.vtcm` to a call that its own next pass refuses (0.27: `LowerVtcmAlloc`
leaves a `tvm_stack_make_shape` where `LowerTVMBuiltin` doesn't expect one). `place_in_vtcm` takes such
buffers away before that pass sees them: each becomes a workspace of memory 1 of the device, where TVM's own
workspaces are of memory 0. A runtime that knows VTCM (the simulator's harness) serves memory 1 from it; any
other serves it from the heap.
"""

import math
from collections.abc import Mapping
from functools import cache

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target import list_tags

from hexconv.errors import InputError
from hexconv.spec import Plan
from hexconv.tir.statements import int32

SCOPE = "global.vtcm"
GRANULE_BYTES = 2048  # VTCM is given out in steps and at addresses of 2 KiB
DEVICE_ID = 1  # the number that run/simulator/harness/workspace.h uses
DEFAULT_ARCH = "v68"

_TAG_PREFIX = "qcom/hexagon-"


@cache
def capacities_bytes() -> Mapping[str, int]:
    """Return the VTCM of every Hexagon architecture that TVM has a target tag for: {"v65": 262144, ...}."""
    tags = list_tags() or {}
    capacities = {
        name.removeprefix(_TAG_PREFIX): int(target.attrs["vtcm-capacity"])
        for name, target in tags.items()
        if name.startswith(_TAG_PREFIX)
    }
    return dict(sorted(capacities.items(), key=lambda item: int(item[0].removeprefix("v"))))


def capacity_bytes(arch: str, stated_bytes: int | None = None) -> int:
    """Return the VTCM of an architecture in bytes: the stated bytes if there are any, else those of TVM's target tag.

    Raises:
        InputError: TVM has no tag for that architecture, and nothing is stated.
    """
    known = capacities_bytes()
    if stated_bytes is None and arch not in known:
        what = f"plan.vtcm_bytes is missing, and TVM knows the VTCM of {', '.join(known)} alone"
        raise InputError.because(what, f"give the bytes that {arch} has")
    return known[arch] if stated_bytes is None else stated_bytes


def capacity_of(plan: Plan) -> int:
    """Return how many bytes of VTCM a plan may fill.

    Raises:
        InputError: TVM has no tag for its architecture, and the plan doesn't say either.
    """
    return capacity_bytes(plan.arch, plan.vtcm_bytes)


def granules_bytes(buffer_bytes: int, copies: int = 1) -> int:
    """Return the bytes of VTCM that a buffer takes: each of its copies is rounded up to 2 KiB.

    >>> granules_bytes(1), granules_bytes(2048), granules_bytes(2049), granules_bytes(2050, copies=2)
    (2048, 2048, 4096, 4096)
    """
    return copies * math.ceil(buffer_bytes // copies / GRANULE_BYTES) * GRANULE_BYTES


def place_in_vtcm(module: tvm.IRModule) -> tvm.IRModule:
    """Give every `global.vtcm` buffer a workspace of the device's memory 1, freed at its scope's end.

    before: `alloc_buffer(A, scope="global.vtcm"); body`
    after:  `decl_buffer(A, data=TVMBackendAllocWorkspace(cpu, 1, bytes, ...)); if null: throw; body; free`

    Takes lowered functions (flat buffers, no blocks); TVM's own pipeline comes after it.
    """
    return tirx.transform.prim_func_pass(_place, opt_level=0, name="hexconv.PlaceInVtcm")(module)


def _place(func: tirx.PrimFunc, _module: tvm.IRModule, _context: tvm.transform.PassContext) -> tirx.PrimFunc:
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.SeqStmt, _allocate_in_sequence), order="post"))


def _allocate_in_sequence(sequence: tirx.SeqStmt) -> tirx.Stmt:
    """Give buffers of a sequence their workspaces; a workspace lives, as its buffer, to the end of the sequence."""
    buffers = [step.buffer for step in sequence.seq if _in_vtcm(step)]
    if not buffers:
        return sequence
    steps = [part for step in sequence.seq for part in (_allocation(step.buffer) if _in_vtcm(step) else (step,))]
    return tirx.SeqStmt(steps + [_release(buffer) for buffer in reversed(buffers)])


def _in_vtcm(step: tirx.Stmt) -> bool:
    return isinstance(step, tirx.AllocBuffer) and step.buffer.scope() == SCOPE


def buffer_bytes(buffer: tirx.Buffer) -> int:
    """Count the bytes of a buffer of constant shape."""
    dtype = tvm.DataType(buffer.dtype)
    return math.prod(int(extent) for extent in buffer.shape) * (dtype.bits * dtype.lanes // 8)


def _allocation(buffer: tirx.Buffer) -> tuple[tirx.Stmt, ...]:
    dtype = tvm.DataType(buffer.dtype)
    size = [tirx.IntImm("uint64", buffer_bytes(buffer)), int32(int(dtype.type_code)), int32(dtype.bits)]
    data = Call("tirx.TVMBackendAllocWorkspace", [*_device(), *size], ret_ty=buffer.data.ty)
    return tirx.DeclBuffer(buffer, data=data), tirx.IfThenElse(tirx.isnullptr(buffer.data), _throw(), None)


def _release(buffer: tirx.Buffer) -> tirx.Stmt:
    status = Call("tirx.TVMBackendFreeWorkspace", [*_device(), buffer.data], ret_ty="int32")
    return tirx.IfThenElse(status != 0, _throw(), None)


def _device() -> list[tirx.IntImm]:
    return [int32(int(tvm_ffi.DLDeviceType.kDLCPU)), int32(DEVICE_ID)]


def _throw() -> tirx.Stmt:
    return tirx.Evaluate(Call("tirx.tvm_throw_last_error", [], ret_ty="int32"))
