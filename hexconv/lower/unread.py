"""Find caches that copies fill and that nothing reads.

A conv that makes nothing but padding reads no filter, though its filter is staged. TVM's StorageRewrite takes such a
cache for dead once the copy has started, and gives its memory to another cache while the copy is under way.
"""

import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower import queues
from hexconv.schedule.trees import all_of, buffers_in


def has_unread_caches(module: tvm.IRModule) -> bool:
    """Return whether any memory that a function allocates is the target of asynchronous copies and of no load."""
    body = module["main"].body
    targets = [call.args[1].args[0].source for call in all_of(body, Call) if call.op.same_as(queues.COPY)]
    loaded = [load.source for load in all_of(body, TensorLoad)]
    return any(_count(targets, buffer) == _count(loaded, buffer) > 0 for buffer in buffers_in(body))


def _count(sources: list[tirx.Var], buffer: tirx.Var) -> int:
    return sum(source.same_as(buffer) for source in sources)
