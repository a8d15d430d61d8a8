"""Ring buffers folded to the slabs that are live at once, and the warm-up stripes that fill them.

`hexconv.schedule.stream` says which buffers are rings and how many slabs they have. TVM would allocate such a buffer
inside of the step and number its slabs from the start of the step. Allocated outside of all loops instead, its slabs
keep their numbers in the whole tensor, and folding is one modulo:

    before:  for n, ho_outer:                                after:  cache = alloc(1, R, ...)
                 cache = alloc(1, stripe, ...)                       for n, ho_outer:
                 cache[0, slab - start, ...]                             cache[0, slab % R, ...]

CompactBufferAllocation counts slabs from the first one that any stripe uses, which need not be the tensor's first.

before:  for ho_outer in range(8):                  after:  for ho_ahead in range(1):
                 input cache read of ho_outer                       input cache read of ho_ahead - 3
                 if there(ho_outer * 8 + ho): ...               for ho_outer in range(10):
                                                                    input cache read of ho_outer - 2
                                                                    if 0 <= (ho_outer - 2) * 8 + ho: ...

This pass runs after TVM's CompactBufferAllocation, which finds the sizes of caches from stripes that all make output.
"""

from collections.abc import Collection, Mapping, Sequence

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.copies import part_of
from hexconv.lower.copy_runs import is_one
from hexconv.schedule.conv_blocks import FIRST_STRIPE, of_band
from hexconv.schedule.stream import BEFORE, THERE, Beginning
from hexconv.tir.loops import LOOP_NAME, STRIPES
from hexconv.tir.parts import INPUT_READ
from hexconv.tir.trees import all_of, as_one, uses, with_allocated, with_values


def allocate_outside(func: tirx.PrimFunc, names: Collection[str]) -> tirx.PrimFunc:
    """Allocate the buffers of some names at the root block, whatever block inside needs them."""
    if not names:
        return func
    allocated = [buffer for block in all_of(func.body, s_tir.SBlock) for buffer in block.alloc_buffers]
    inner = [buffer for buffer in allocated if buffer.name in names]

    def moved(block: s_tir.SBlock) -> s_tir.SBlock:
        others = [buffer for buffer in block.alloc_buffers if buffer.name not in names]
        return with_allocated(block, [*others, *inner] if block.name_hint == "root" else others)

    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, moved)))


def first_slabs(placed: tirx.PrimFunc, compacted: tirx.PrimFunc, rings: Mapping[str, int]) -> dict[str, int]:
    """Return the slab of its tensor at which each ring begins to count once it is compacted."""
    before, after = (_first_stores(func, rings) for func in (placed, compacted))
    return {name: _at_zero(slab) - _at_zero(after[name]) for name, slab in before.items()}


def in_phase(func: tirx.PrimFunc, rings: Mapping[str, int], starts: Mapping[str, int]) -> dict[str, int]:
    """Count the slots of rings so that no reader adds a constant to the slab that it reads (compacted).

    before:  for ho_outer: ... ring[(ho_outer + 1) % R]          after:  for ho_outer: ... ring[ho_outer % R]

    Which slab lies in slot 0 is all the same. But the constant would be added for each product, where LLVM doesn't find
    that all products of a block may share the sum.

    Returns:
        For each ring the slab of its tensor that its first slot is.
    """
    shifted = dict(starts)
    for store in all_of(func.body, tirx.BufferStore):
        for load in all_of(store.value, TensorLoad):
            if (name := load.source.name) in rings and not load.source.same_as(store.buffer):
                shifted[name] = starts[name] + -(_at_zero(load.indices[1]) + starts[name]) % rings[name]
    return shifted


def _first_stores(func: tirx.PrimFunc, rings: Collection[str]) -> dict[str, tirx.Expr]:
    """Map the name of each ring to the slab that the first store to it writes."""
    found = dict[str, tirx.Expr]()
    for store in all_of(func.body, tirx.BufferStore):
        if store.buffer.name in rings:
            found.setdefault(store.buffer.name, store.indices[1])
    return found


def _at_zero(slab: tirx.Expr) -> int:
    """Evaluate a slab where all loops begin."""
    zero = tirx.const(0, "int32")
    return int(Analyzer().simplify(tvm_ffi.structural_map(slab, (tirx.Var, lambda _loop: zero))))


def fold(func: tirx.PrimFunc, rings: Mapping[str, int], starts: Mapping[str, int]) -> tirx.PrimFunc:
    """Keep only as many slabs as a ring has (no blocks, buffers not yet flat).

    Args:
        func: the function.
        rings: the slabs of each ring, by its name.
        starts: the slab of its tensor at which each ring begins to count.
    """
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
        return [tirx.const(0, "int32"), (slab + starts[buffer.name]) % rings[buffer.name], *rest]

    def load(node: TensorLoad) -> TensorLoad:
        home = folded.get(node.source)
        return tirx.BufferLoad(home, indices(node.source, node.indices)) if home is not None else node

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        home = folded.get(node.buffer)
        return tirx.BufferStore(home, node.value, indices(node.buffer, node.indices)) if home is not None else node

    body = tvm_ffi.structural_map(func.body, (tirx.AllocBuffer, allocate))
    body = tvm_ffi.structural_map(body, [(TensorLoad, load), (tirx.BufferStore, store)])
    return func.with_body(body)


def slab_of(statement: tirx.Stmt) -> tirx.Expr:
    """Return the slab, counted in the whole tensor, that a statement writes to a folded ring."""
    place = all_of(statement, tirx.BufferStore)[0].indices[1]
    assert isinstance(place, tirx.FloorMod), "a ring of more than one slab"
    return place.a


def run_in(func: tirx.PrimFunc, beginning: Beginning) -> tirx.PrimFunc:
    """Begin the stripes of a function as early as its schedule says (blocks opaque)."""

    def asked(call: Call) -> tirx.Expr:
        what = call.args[0].value if call.op.name == "tirx.call_pure_extern" else ""
        if what == BEFORE:
            return call.args[1] < call.args[2]
        return call.args[1] >= 0 if what == THERE else call

    def begun(loop: tirx.For) -> tirx.Stmt:
        return _begun(loop, beginning) if loop.annotations.get(LOOP_NAME) == STRIPES else loop

    body = tvm_ffi.structural_map(func.body, (Call, asked))
    return func.with_body(tvm_ffi.structural_map(body, (tirx.For, begun)))


def _begun(loop: tirx.For, beginning: Beginning) -> tirx.Stmt:
    """Begin the loop over stripes before its first one, and put the loop over stripes that only read before it."""
    stripe, before = loop.loop_var, beginning.stripes
    body = with_values(loop.body, {stripe: stripe - before})
    stripes = tirx.For(stripe, loop.min, loop.extent + before, loop.kind, body, annotations=loop.annotations)
    if not beginning.reads:
        return stripes
    ahead = tirx.Var("ho_ahead", "int32")
    first = of_band(FIRST_STRIPE) if beginning.has_bands else tirx.const(0, "int32")
    reads = with_values(_input_read(loop.body), {stripe: first + ahead - (before + beginning.reads)})
    notes = {LOOP_NAME: "ho_ahead"}
    return as_one([tirx.For(ahead, 0, beginning.reads, tirx.ForKind.SERIAL, reads, annotations=notes), stripes])


def _input_read(body: tirx.Stmt) -> tirx.Stmt:
    """Find the statement of a stripe that reads the input, in the loops over its steps that have more than one trip."""
    loops = all_of(body, tirx.For)  # a loop comes after those inside of it
    place = next(place for place, loop in enumerate(loops) if part_of(loop) == INPUT_READ)
    read: tirx.Stmt = loops[place]
    for loop in loops[place + 1 :]:
        if uses(read, loop.loop_var):
            read = with_values(read, {loop.loop_var: loop.min}) if is_one(loop.extent) else _around(loop, read)
    return read


def _around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """Return a loop of its own, like another one, around another statement."""
    step = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
    inside, notes = with_values(body, {loop.loop_var: step}), {LOOP_NAME: loop.annotations[LOOP_NAME]}
    return tirx.For(step, loop.min, loop.extent, loop.kind, inside, annotations=notes)
