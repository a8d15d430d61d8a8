"""A nest of rows, lowered: TVM's passes on the chain's own loops, then kernels in the place of its convs' steps."""

from collections.abc import Iterator, Sequence
from math import prod

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule

from hexconv.compute.chain import output_name
from hexconv.kernel import forms_of
from hexconv.lower import passes
from hexconv.lower.conv_steps import Result, fill, mark
from hexconv.lower.hvx import emit_step, inner_convs, scratch_of
from hexconv.lower.lowered import Allocation, Cache, Lowered, cache_name, caches_of
from hexconv.lower.names import drop_annotations, rename_loops
from hexconv.lower.transfers import move_by_vectors, start_copies
from hexconv.schedule.hvx import vector
from hexconv.schedule.steps import loop_roles
from hexconv.spec import Case


def lower_nest(sch: Schedule, case: Case) -> Lowered:
    """Lower a scheduled chain whose convs are computed by HVX kernels; every cache has memory of its own."""
    shaped = rename_loops(passes.unblock(passes.compact(mark(sch.mod, _results(case)))))
    flat = passes.flatten(shaped)
    filled = _filled(_outside(flat), case)
    labelled = tirx.transform.ConvertSSA()(_copied(filled, case))
    module = drop_annotations(labelled)
    allocations = tuple(_allocations(labelled))
    known = caches_of(shaped)
    scratch = [memory for memory in allocations if memory.name not in {cache.name for cache in known}]
    return Lowered(
        module=module,
        labelled=labelled,
        shaped=drop_annotations(shaped),
        unmerged=module,
        caches=(*known, *(Cache(memory.name, memory.scope, memory.dtype, (memory.elements,)) for memory in scratch)),
        allocations=allocations,
    )


def _results(case: Case) -> dict[str, Result]:
    """By the name of the block that writes it, each conv's result."""
    forms = forms_of(case.chain, case.settled)
    roles = [loop_roles(layout) for layout in forms.activations[1:]]
    return {
        output_name(case.chain, index): Result(index + 1, role.index("ho"), role.index("ko"), unit)
        for index, (role, unit) in enumerate(zip(roles, forms.channel_units[1:], strict=True))
    }


def _outside(module: tvm.IRModule) -> tvm.IRModule:
    """Allocate every cache once, outside of all loops; caches and arguments begin where vectors do.

    LLVM loads vectors of which it doesn't know that by whole ones around them, past the end of their buffer too.
    """
    main = module["main"]
    caches, views = _buffers(main, tirx.AllocBuffer), _buffers(main, tirx.DeclBuffer)
    renamed = {old: _aligned(old, cache_name(old.name), (prod(map(int, old.shape)),)) for old in caches}
    allocated = [tirx.AllocBuffer(buffer) for buffer in renamed.values()]
    renamed |= {old: _aligned(old, old.name, old.shape) for old in main.params}
    renamed |= {old: _aligned(old, old.name, old.shape, layout=None) for old in views}

    def without(sequence: tirx.SeqStmt) -> tirx.Stmt:
        kept = [step for step in sequence.seq if not isinstance(step, tirx.AllocBuffer)]
        return sequence if len(kept) == len(sequence.seq) else tirx.SeqStmt(kept) if len(kept) > 1 else kept[0]

    body = tvm_ffi.structural_map(main.body, (tirx.SeqStmt, without))
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda variable: renamed.get(variable, variable)))
    # A function of flat buffers and plain loops: nothing is left for the passes that a schedule still has before it.
    func = tirx.PrimFunc([renamed[argument] for argument in main.params], tirx.SeqStmt([*allocated, body]))
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)})


def _buffers(main: tirx.PrimFunc, kind: type) -> list[tirx.Var]:
    """The buffers that a function allocates, or gives another shape."""
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(main.body, (kind, lambda node: found.append(node.buffer)))
    return found


def _aligned(old: tirx.Var, name: str, shape: Sequence[int], **more: None) -> tirx.Var:
    """A buffer that begins where a vector does."""
    return tirx.decl_buffer(shape, old.dtype, name, scope=old.scope(), data_alignment=vector.BYTES, **more)


def _filled(module: tvm.IRModule, case: Case) -> tvm.IRModule:
    """Let the kernels move in."""
    convs = inner_convs(case.chain, forms_of(case.chain, case.settled), case.settled.k_split)
    arguments = {argument.name: argument for argument in module["main"].params}
    scratch = [scratch_of(conv, arguments, case.settled.scope) for conv in convs]
    filled = fill(module, lambda step: emit_step(convs[step.number - 1], scratch[step.number - 1], step))
    allocated = [tirx.AllocBuffer(buffer) for each in scratch for buffer in each.memory]
    main = filled["main"]
    return tvm.IRModule({"main": main.with_body(tirx.SeqStmt([*allocated, *main.body.seq]))})


def _copied(module: tvm.IRModule, case: Case) -> tvm.IRModule:
    """Let the engine copy, or the kernel itself."""
    return (start_copies if case.settled.buffering == "double" else move_by_vectors)(module)


def _allocations(module: tvm.IRModule) -> Iterator[Allocation]:
    """Every cache, and every kernel's scratch, alone in its memory."""
    buffers: list[tirx.Var] = []
    tvm_ffi.structural_walk(module["main"].body, (tirx.AllocBuffer, lambda node: buffers.append(node.buffer)))
    for buffer in buffers:
        if not buffer.name.startswith("register_"):
            elements = prod(int(size) for size in buffer.shape)
            yield Allocation(buffer.name, (buffer.name,), buffer.scope(), str(buffer.dtype), elements)
