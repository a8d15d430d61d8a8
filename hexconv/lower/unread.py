"""Find caches that copies fill and that nothing reads.

A conv that makes nothing but padding reads no filter, though its filter is staged. TVM's StorageRewrite takes such a
cache for dead once the copy has started, and gives its memory to another cache while the copy is under way.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower import queues


def has_unread_caches(module: tvm.IRModule) -> bool:
    """Return whether any memory that a function allocates is the target of asynchronous copies and of no load."""
    filled: list[TensorLoad] = []
    loads: list[TensorLoad] = []
    allocated: list[tirx.Var] = []

    def note(call: Call) -> None:
        if call.op.same_as(queues.COPY):
            filled.append(call.args[1].args[0])

    body = module["main"].body
    tvm_ffi.structural_walk(body, (Call, note))
    tvm_ffi.structural_walk(body, (TensorLoad, loads.append))
    tvm_ffi.structural_walk(body, (tirx.AllocBuffer, lambda node: allocated.append(node.buffer)))
    targets = [load.source for load in filled]
    return any(_count(targets, buffer) == _count([load.source for load in loads], buffer) > 0 for buffer in allocated)


def _count(sources: list[tirx.Var], buffer: tirx.Var) -> int:
    return sum(source.same_as(buffer) for source in sources)
