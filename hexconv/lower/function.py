"""Lower a function that its strategy has scheduled as loops over flat caches: nothing is compacted or merged."""

from math import prod

import tvm
from tvm import tirx

from hexconv.lower.buffers import is_register
from hexconv.lower.lowered import Allocation, Cache, Lowered
from hexconv.lower.names import drop_annotations
from hexconv.schedule.trees import buffers_in


def lower_function(function: tirx.PrimFunc) -> Lowered:
    """Lower a function without blocks, as `lower` does with a schedule; every cache has memory of its own."""
    labelled = tvm.IRModule({"main": function})
    module = drop_annotations(labelled)
    caches = tuple(_cache(buffer) for buffer in buffers_in(function.body) if not is_register(buffer))
    memories = tuple(Allocation(c.name, (c.name,), c.scope, c.dtype, c.elements) for c in caches)
    return Lowered(
        module=module, labelled=labelled, unmerged=module, shaped=module, caches=caches, allocations=memories
    )


def _cache(buffer: tirx.Var) -> Cache:
    shape = tuple(int(size) for size in buffer.shape)
    assert prod(shape) > 0, buffer.name
    return Cache(buffer.name, buffer.scope(), str(buffer.dtype), shape)
