"""Fold ring buffers, which outlive the steps that fill them, to the slabs that are live at once.

`hexconv.schedule.stream` says in an attribute of the function which buffers are rings and how many slabs they have. TVM
would allocate such a buffer inside of the step and number its slabs from the start of the step. Allocated outside of
all loops instead, its slabs keep their numbers in the whole tensor, and folding is one modulo:

    before:  for n, ho_outer:                                after:  cache = alloc(1, R, ...)
                 cache = alloc(1, stripe, ...)                       for n, ho_outer:
                 cache[0, slab - start, ...]                             cache[0, slab % R, ...]

CompactBufferAllocation counts slabs from the first one that any stripe uses, which need not be the tensor's first.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.sblock import with_allocated
from hexconv.schedule.stream import AHEAD, RINGS
from hexconv.schedule.trees import all_of

KEPT = "hexconv.kept"
"""Attribute of a scheduled function: the names of the caches that keep columns for later strips."""
FIRST_SLABS = "hexconv.first_slabs"
"""Attribute of a compacted function: by the name of a ring, the slab of its tensor that its first one is."""


def allocate_outside(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Allocate rings, and columns that strips keep, at the root block, whatever block inside needs them."""
    rings = {*_rings(func), *map(str, (func.attrs or {}).get(KEPT, ()))}
    if not rings:
        return func
    allocated = [buffer for block in all_of(func.body, s_tir.SBlock) for buffer in block.alloc_buffers]
    inner = [buffer for buffer in allocated if buffer.name in rings]

    def moved(block: s_tir.SBlock) -> s_tir.SBlock:
        others = [buffer for buffer in block.alloc_buffers if buffer.name not in rings]
        return with_allocated(block, [*others, *inner] if block.name_hint == "root" else others)

    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, moved)))


def with_first_slabs(placed: tvm.IRModule, compacted: tvm.IRModule) -> tvm.IRModule:
    """Return the compacted module with an attribute: the slab of its tensor at which each ring begins to count."""
    before, after = (_first_stores(module["main"]) for module in (placed, compacted))
    starts = {name: _at_zero(slab) - _at_zero(after[name]) for name, slab in before.items()}
    main = compacted["main"]
    return tvm.IRModule({"main": main.with_attr(FIRST_SLABS, starts)}) if starts else compacted


def in_phase(module: tvm.IRModule) -> tvm.IRModule:
    """Count the slots of rings so that no reader adds a constant to the slab that it reads (compacted).

    before:  for ho_outer: ... ring[(ho_outer + 1) % R]          after:  for ho_outer: ... ring[ho_outer % R]

    Which slab lies in slot 0 is all the same. But the constant would be added for each product, where LLVM doesn't find
    that all products of a block may share the sum. Where a ring is read ahead, its end is counted like its slabs.
    """
    main, rings = module["main"], _rings(module["main"])
    starts, shifted = (main.attrs or {}).get(FIRST_SLABS, {}), dict[str, int]()
    for store in all_of(main.body, tirx.BufferStore):
        for load in all_of(store.value, TensorLoad):
            if load.source.name in rings and not load.source.same_as(store.buffer):
                start = int(starts[load.source.name])
                shifted[load.source.name] = start + -(_at_zero(load.indices[1]) + start) % rings[load.source.name]
    if not shifted:
        return module
    ends = {
        name: [slabs, end + shifted.get(name, starts[name]) - starts[name]]
        for name, (slabs, end) in (main.attrs or {}).get(AHEAD, {}).items()
    }
    return tvm.IRModule({"main": main.with_attr({FIRST_SLABS: {**starts, **shifted}, AHEAD: ends})})


def _first_stores(func: tirx.PrimFunc) -> dict[str, tirx.Expr]:
    """Map the name of each ring to the slab that the first store to it writes."""
    rings, found = _rings(func), dict[str, tirx.Expr]()
    for store in all_of(func.body, tirx.BufferStore):
        if store.buffer.name in rings:
            found.setdefault(store.buffer.name, store.indices[1])
    return found


def _at_zero(slab: tirx.Expr) -> int:
    """Evaluate a slab where all loops begin."""
    zero = tirx.const(0, "int32")
    return int(Analyzer().simplify(tvm_ffi.structural_map(slab, (tirx.Var, lambda _loop: zero))))


def fold(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Keep only as many slabs as a ring has (no blocks, buffers not yet flat)."""
    rings, starts = _rings(func), (func.attrs or {}).get(FIRST_SLABS, {})
    folded: dict[tirx.Var, tirx.Var] = {}
    if not rings:
        return func

    def allocate(node: tirx.AllocBuffer) -> tirx.AllocBuffer:
        buffer = node.buffer
        if buffer.name not in rings:
            return node
        shape = (1, rings[buffer.name], *buffer.shape[2:])
        folded[buffer] = tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope())
        return tirx.AllocBuffer(folded[buffer], node.annotations)

    def indices(buffer: tirx.Var, indices: Sequence[tirx.Expr]) -> list[tirx.Expr]:
        _, slab, *rest = indices
        return [tirx.const(0, "int32"), (slab + int(starts[buffer.name])) % rings[buffer.name], *rest]

    def load(node: TensorLoad) -> TensorLoad:
        home = folded.get(node.source)
        return tirx.BufferLoad(home, indices(node.source, node.indices)) if home is not None else node

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        home = folded.get(node.buffer)
        return tirx.BufferStore(home, node.value, indices(node.buffer, node.indices)) if home is not None else node

    body = tvm_ffi.structural_map(func.body, (tirx.AllocBuffer, allocate))
    body = tvm_ffi.structural_map(body, [(TensorLoad, load), (tirx.BufferStore, store)])
    return func.with_body(body).without_attr(RINGS).without_attr(FIRST_SLABS)


def slab_of(statement: tirx.Stmt) -> tirx.Expr:
    """Return the slab, counted in the whole tensor, that a statement writes to a folded ring."""
    place = all_of(statement, tirx.BufferStore)[0].indices[1]
    assert isinstance(place, tirx.FloorMod), "a ring of more than one slab"
    return place.a


def _rings(func: tirx.PrimFunc) -> dict[str, int]:
    """Map the name of each ring to its number of slabs."""
    attributes = func.attrs or {}
    return {str(name): int(slabs) for name, slabs in attributes.get(RINGS, {}).items()}
