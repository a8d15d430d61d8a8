"""VTCM: memory for the buffers that a schedule puts there.

TVM lowers a buffer of scope `global.vtcm` to a call that its own next pass refuses (0.27: `LowerVtcmAlloc`
leaves a `tvm_stack_make_shape` where `LowerTVMBuiltin` doesn't expect one). `place_in_vtcm` takes such
buffers away before that pass sees them: each becomes a workspace of memory 1 of the device, where TVM's own
workspaces are of memory 0. A runtime that knows VTCM (the simulator's harness) serves memory 1 from it; any
other serves it from the heap.
"""

import math

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.spec.capacities import SCOPE
from hexconv.tir.statements import int32

DEVICE_ID = 1  # the number that run/simulator/harness/workspace.h uses


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
