"""Let caches of a nest of rows share memory where their lifetimes don't overlap.

before:  input_cache = alloc_buffer(90)           after:  input_cache = alloc_buffer(160)
         intermediate1 = alloc_buffer(80)                 intermediate2 = decl_buffer(160, data=input_cache.data)
         intermediate2 = alloc_buffer(160)                intermediate1 = alloc_buffer(80)

`hexconv.kernel.bands` says which caches may. Views keep the names of their caches for who reads the listing; before a
function is compiled, views are replaced by what they look at (`without_views`), so that LLVM knows them for one memory.
"""

from collections.abc import Mapping, Sequence
from math import prod

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.tir.trees import all_of, as_one, buffers_in, with_values

TURNS = "hexconv.turns"
"""The attribute of functions whose caches share memory."""

Group = tuple[tirx.Var, ...]


def with_shared_memory(module: tvm.IRModule, sharing: Sequence[Sequence[str]]) -> tvm.IRModule:
    """Give caches whose lifetimes do not overlap one memory, as large as the largest of them.

    Args:
        module: a lowered nest of rows; each cache is allocated once, in the function or in each thread's trip.
        sharing: the names of the caches that may share each memory, in the order of their use.
    """
    main = module["main"]
    groups = [group for names in sharing for group in _groups(main.body, names)]
    if not groups:
        return module
    roots = {group[0]: _as_large(group) for group in groups}
    others = {buffer: _view(buffer) for group in groups for buffer in group[1:]}
    views = {roots[group[0]]: [others[buffer] for buffer in group[1:]] for group in groups}
    body = with_values(main.body, {**roots, **others})
    body = tvm_ffi.structural_map(body, (tirx.SeqStmt, lambda sequence: _viewed(sequence, views)))
    return tvm.IRModule({"main": main.with_body(body).with_attr(TURNS, True)})


def without_views(module: tvm.IRModule) -> tvm.IRModule:
    """Replace views of caches that share memory by what they look at; other functions stay as they are."""
    main, roots = module["main"], {view: root for root, views in _views(module).items() for view in views}
    if not roots:
        return module

    def without(sequence: tirx.SeqStmt) -> tirx.Stmt:
        return as_one([step for step in sequence.seq if not is_view(step)])

    def is_view(step: tirx.Stmt) -> bool:
        return isinstance(step, tirx.DeclBuffer) and step.buffer in roots

    body = tvm_ffi.structural_map(main.body, (tirx.SeqStmt, without))
    return tvm.IRModule({"main": main.with_body(with_values(body, roots))})


def names_sharing(module: tvm.IRModule) -> dict[tirx.Var, tuple[str, ...]]:
    """Return the names of the caches that have the memory of another one, by that one."""
    return {root: tuple(view.name for view in views) for root, views in _views(module).items()}


def _views(module: tvm.IRModule) -> dict[tirx.Var, list[tirx.Var]]:
    """Find the views of memory that a function allocates, where its caches share memory."""
    main = module["main"]
    if TURNS not in (main.attrs or {}):
        return {}
    found: dict[tirx.Var, list[tirx.Var]] = {buffer: [] for buffer in buffers_in(main.body)}
    for view in all_of(main.body, tirx.DeclBuffer):
        if (root := view.data.args[0]) in found:
            found[root].append(view.buffer)
    return {root: views for root, views in found.items() if views}


def _groups(body: tirx.Stmt, names: Sequence[str]) -> list[Group]:
    """Find the caches of some names, those of one type and one place together, where there are several."""
    found: dict[tuple[str, str], list[tirx.Var]] = {}
    for buffer in buffers_in(body):
        if buffer.name in names:
            found.setdefault((str(buffer.dtype), buffer.scope()), []).append(buffer)
    ordered = (sorted(group, key=lambda buffer: names.index(buffer.name)) for group in found.values())
    return [tuple(group) for group in ordered if len(group) > 1]


def _as_large(group: Group) -> tirx.Var:
    """Declare the first cache of a group as large as the largest."""
    first, most = group[0], max(prod(map(int, buffer.shape)) for buffer in group)
    return tirx.decl_buffer((most,), first.dtype, first.name, scope=first.scope(), data_alignment=first.data_alignment)


def _view(cache: tirx.Var) -> tirx.Var:
    """Declare a cache as a view, which has no layout: TVM's text of a view states none."""
    return tirx.decl_buffer(
        cache.shape,
        cache.dtype,
        cache.name,
        scope=cache.scope(),
        data_alignment=cache.data_alignment,
        layout=None,
    )


def _viewed(sequence: tirx.SeqStmt, views: Mapping[tirx.Var, Sequence[tirx.Var]]) -> tirx.Stmt:
    """Declare views behind the allocations that they look at, in the place of allocations of their own."""
    own = {buffer for group in views.values() for buffer in group}
    steps: list[tirx.Stmt] = []
    for step in sequence.seq:
        is_allocation = isinstance(step, tirx.AllocBuffer)
        if not is_allocation or step.buffer not in own:
            steps.append(step)
        if is_allocation:
            steps += [tirx.DeclBuffer(view, data=step.buffer.data) for view in views.get(step.buffer, ())]
    return as_one(steps)
