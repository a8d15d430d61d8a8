"""Ring buffers: buffers that outlive the steps which fill them, folded to the slabs that are live at once.

`hexconv.schedule.roll` says in an attribute of the function which buffers are rings and how many slabs they have. TVM
would allocate such a buffer inside of the step and number its slabs from the start of the step. Allocated outside of
all loops instead, its slabs keep their numbers in the whole tensor, and folding is one modulo:

    before:  for n, ho_outer:                                after:  cache = alloc(1, R, ...)
                 cache = alloc(1, stripe, ...)                       for n, ho_outer:
                 cache[0, slab - start, ...]                             cache[0, slab % R, ...]
"""

from collections.abc import Sequence

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad

from hexconv.schedule.roll import RINGS


def allocate_outside(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Allocate rings at the root block, whatever block inside needs them."""
    rings = _rings(func)
    inner: list[tirx.Var] = []
    if not rings:
        return func

    def note(block: s_tir.SBlock) -> None:
        inner.extend(buffer for buffer in block.alloc_buffers if buffer.name in rings)

    def moved(block: s_tir.SBlock) -> s_tir.SBlock:
        others = [buffer for buffer in block.alloc_buffers if buffer.name not in rings]
        return _allocating(block, [*others, *inner] if block.name_hint == "root" else others)

    tvm_ffi.structural_walk(func.body, (s_tir.SBlock, note))
    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, moved)))


def fold(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Keep only as many slabs as a ring has (no blocks, buffers not yet flat)."""
    rings = _rings(func)
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
        return [tirx.const(0, "int32"), slab % rings[buffer.name], *rest]

    def load(node: TensorLoad) -> TensorLoad:
        home = folded.get(node.source)
        return tirx.BufferLoad(home, indices(node.source, node.indices)) if home is not None else node

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        home = folded.get(node.buffer)
        return tirx.BufferStore(home, node.value, indices(node.buffer, node.indices)) if home is not None else node

    body = tvm_ffi.structural_map(func.body, (tirx.AllocBuffer, allocate))
    body = tvm_ffi.structural_map(body, [(TensorLoad, load), (tirx.BufferStore, store)])
    return func.with_body(body).without_attr(RINGS)


def slab_of(statement: tirx.Stmt) -> tirx.Expr:
    """The slab, counted in the whole tensor, that a statement writes to a folded ring."""
    stores: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(statement, (tirx.BufferStore, stores.append))
    place = stores[0].indices[1]
    assert isinstance(place, tirx.FloorMod), "a ring of more than one slab"
    return place.a


def _rings(func: tirx.PrimFunc) -> dict[str, int]:
    """Slabs by the name of the buffer."""
    attributes = func.attrs or {}
    return {str(name): int(slabs) for name, slabs in attributes.get(RINGS, {}).items()}


def _allocating(block: s_tir.SBlock, buffers: Sequence[tirx.Var]) -> s_tir.SBlock:
    """The same block with other allocations."""
    return s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        list(buffers),
        block.match_buffers,
        block.annotations,
    )
