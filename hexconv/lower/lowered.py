"""The passes from a schedule to flat loops with shared memory, and their result: module, caches, allocations.

before:  output[i] = hexconv_silu(sums[i] + bias[k], slope, offset)
after:   register_x = sums[i] + bias[k]
         ...
         output[i] = register_x * register_inverse

Values that are used several times lie in buffers of one element, which LLVM keeps in registers: TVM's passes look
through variables, but not through buffers, and take no longer than the arithmetic is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Range
from tvm.s_tir import Schedule

from hexconv.compute.activation_code import CALLED, FUNCTIONS, activated
from hexconv.lower.buffers import cache_name, drop_annotations, rename_buffers, rename_loops, stores
from hexconv.lower.copy_code import start_copies
from hexconv.lower.overlap import overlap
from hexconv.lower.rings import allocate_outside, fold, in_phase, run_in, with_first_slabs
from hexconv.lower.step_calls import take_out
from hexconv.tir.guards import guards_to_statements, hoist_guards, keep_inside, with_guards, without_guards
from hexconv.tir.statements import int32, scalar_register
from hexconv.tir.trees import all_of, buffers_in

Change = Callable[[tirx.PrimFunc], tirx.PrimFunc]


def compact(module: tvm.IRModule) -> tvm.IRModule:
    """Allocate each cache where it is used, in the size of the region that is used there.

    CompactBufferAllocation runs twice. Its first result is an upper bound that can be far too large where a guard
    (`T.where`) cuts the last step of a split: the regions of writer and reader then differ in symbols of the outer
    loops that it doesn't cancel. It also rebases all indices to the start of the region; once these are simplified the
    outer loops are gone from them, and the second run finds the exact size.

    Neither run sees the guards of values. They say which elements exist, and not which a step uses; where one fails in
    all of a step, as in a block row of padding, TVM derives a region from it that lies outside of what is used, or one
    whose start is no longer the step's, and that no second run makes smaller.
    """
    sequence = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        _function_pass(allocate_outside),
        s_tir.transform.ConvertBlocksToOpaque(),
    ]
    placed = tvm.ir.transform.Sequential(sequence)(module)
    compacted = with_first_slabs(placed, _compact_unguarded(placed))
    # Stripes run in before TVM simplifies anything: else it would use facts that hold for all other stripes only.
    return tvm.ir.transform.Sequential([_function_pass(run_in), s_tir.transform.StmtSimplify()])(compacted)


def without_compaction(shares_memory: bool = True) -> tvm.transform.PassContext:
    """Return the context for TVM's own pipeline on a module whose caches have their sizes already.

    The pipeline would run CompactBufferAllocation again, which changes no cache there and looks at every access in
    every loop around it: several seconds for an HVX kernel.

    Args:
        shares_memory: whether caches that TVM takes for dead may give their memory to others.
    """
    others = [] if shares_memory else ["tirx.StorageRewrite"]
    return tvm.transform.PassContext(disabled_pass=["s_tir.CompactBufferAllocation", *others])


def _compact_unguarded(module: tvm.IRModule) -> tvm.IRModule:
    """Run CompactBufferAllocation on a function whose guards of values it doesn't see."""
    main, guards = without_guards(module["main"])
    twice = [
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.StmtSimplify(),
        s_tir.transform.CompactBufferAllocation(),
    ]
    compacted = tvm.ir.transform.Sequential(twice)(tvm.IRModule({"main": main}))
    return tvm.IRModule({"main": with_guards(compacted["main"], guards)})


def unblock(
    module: tvm.IRModule, deal_out: Change | None = None, ranges: Mapping[tirx.Var, Range] | None = None
) -> tvm.IRModule:
    """Turn blocks into plain loops: guards at the loop that decides them, copies overlapped, indices in their buffers.

    Args:
        module: compacted.
        deal_out: deals the loops out to threads, before anything else is decided about them.
        ranges: the ranges of the variables that `deal_out` adds.
    """

    def stay_inside(func: tirx.PrimFunc) -> tirx.PrimFunc:
        return keep_inside(func, ranges)

    sequence = [
        s_tir.transform.LowerOpaqueBlock(),
        *([_function_pass(deal_out)] if deal_out else []),
        _function_pass(take_out),
        _function_pass(fold),
        _function_pass(guards_to_statements),
        _function_pass(hoist_guards),
        _function_pass(overlap),
        tirx.transform.ConvertSSA(),
        tirx.transform.StmtSimplify(),
        _function_pass(stay_inside),
    ]
    return tvm.ir.transform.Sequential(sequence)(module)


def flatten(module: tvm.IRModule) -> tvm.IRModule:
    """Flatten packed buffers to one-dimensional ones.

    Guards are statements by now. FlattenBuffer simplifies an index by the conditions around it: with the condition
    inside of the value, `sums` would be read at another index than `output` is written at, and StorageRewrite could not
    see that the two may share memory element by element.
    """
    sequence = [tirx.transform.FlattenBuffer(), tirx.transform.StmtSimplify()]
    return tvm.ir.transform.Sequential(sequence)(module)


def _function_pass(change: Change) -> tvm.ir.transform.Pass:
    """Wrap a rewrite of functions as a pass of its name, under which TVM's instruments know it."""
    name = f"hexconv.{change.__name__}"
    return tirx.transform.prim_func_pass(lambda func, _module, _context: change(func), opt_level=0, name=name)


def merge(module: tvm.IRModule) -> tvm.IRModule:
    """Let caches that are never live together share memory."""
    sequence = [tirx.transform.StorageRewrite(), tirx.transform.StmtSimplify()]
    return tvm.ir.transform.Sequential(sequence)(module)


NAMES = {f"{CALLED}{name}": name for name in FUNCTIONS}


def with_arithmetic(module: tvm.IRModule) -> tvm.IRModule:
    """Replace every call that stands for an activation (no blocks)."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.BufferStore, _written_out)))})


def _written_out(store: tirx.BufferStore) -> tirx.Stmt:
    """Return a store with the statements before it that compute what it stores."""
    statements: list[tirx.Stmt] = []

    def bind(name: str, value: tirx.Expr) -> tirx.Expr:
        register = scalar_register(name, "float32")
        statements.extend([tirx.AllocBuffer(register), tirx.BufferStore(register, value, [int32(0)])])
        return tirx.BufferLoad(register, [int32(0)])

    def replaced(call: Call) -> tirx.Expr:
        name = _name(call)
        return activated(name, *call.args[1:], bind=bind) if name else call

    value = tvm_ffi.structural_map(store.value, (Call, replaced))
    return tirx.SeqStmt([*statements, tirx.BufferStore(store.buffer, value, store.indices)]) if statements else store


def _name(call: Call) -> str:
    """The activation that a call stands for; empty for any other call."""
    return NAMES.get(call.args[0].value, "") if call.op.name == "tirx.call_pure_extern" else ""


@dataclass(frozen=True)
class Cache:
    """A staged buffer after CompactBufferAllocation, rings folded.

    Attributes:
        name: `input_cache`, `filter1_cache`, `intermediate1`, `accumulator1`, `output_cache`.
        scope: TVM's storage scope.
        dtype: the type of an element.
        shape: the compacted shape.
    """

    name: str
    scope: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements allocated."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Allocation:
    """One physical allocation after StorageRewrite, with the caches that take turns in it.

    Attributes:
        name: the name of the first cache that it held.
        holds: the names of all caches in it, in the order of their first use.
        scope: TVM's storage scope.
        dtype: the type of an element.
        elements: elements allocated, in all copies.
        copies: the number of equal copies, one for each thread.
    """

    name: str
    holds: tuple[str, ...]
    scope: str
    dtype: str
    elements: int
    copies: int = 1

    @property
    def bytes(self) -> int:
        """The number of bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Lowered:
    """A lowered schedule, as `lower` returns it.

    Attributes:
        module: plain loops over flat buffers, caches merged; what is built and what a `.tir` file parses back to.
        labelled: the same with the parts of the chain as loop annotations, for the printer.
        shaped: the same before buffers become flat and share memory: what TVM's OOBChecker is asked about.
        unmerged: the same as `module` with every cache in memory of its own.
        caches: compacted, in the order in which they are first written.
        allocations: physical, in the order in which they are allocated.
    """

    module: tvm.IRModule
    labelled: tvm.IRModule
    shaped: tvm.IRModule
    unmerged: tvm.IRModule
    caches: tuple[Cache, ...]
    allocations: tuple[Allocation, ...]


def lower(sch: Schedule) -> Lowered:
    """Lower a scheduled chain."""
    shaped = rename_loops(unblock(in_phase(compact(sch.mod))))
    flat = flatten(shaped)
    targets = [cache_name(store.buffer) for store in stores(flat)]
    unmerged = rename_buffers(flat, targets)
    merged = merge(unmerged)
    named = rename_buffers(merged, targets)
    labelled = with_arithmetic(_copied(named))
    return Lowered(
        module=drop_annotations(labelled),
        labelled=labelled,
        shaped=drop_annotations(with_arithmetic(shaped)),
        unmerged=drop_annotations(with_arithmetic(_copied(unmerged))),
        caches=tuple(sorted(caches_of(shaped), key=lambda cache: targets.index(cache.name))),
        allocations=tuple(_allocations(named, targets)),
    )


def _copied(flat: tvm.IRModule) -> tvm.IRModule:
    """Let the copy engine copy; when a loop is taken apart, each part gets a variable of its own."""
    return tirx.transform.ConvertSSA()(start_copies(flat))


def caches_of(shaped: tvm.IRModule) -> tuple[Cache, ...]:
    """The buffers that a module allocates, before they share memory."""
    return tuple(
        Cache(cache_name(buffer), buffer.scope(), str(buffer.dtype), tuple(int(size) for size in buffer.shape))
        for buffer in buffers_in(shaped["main"].body)
    )


def _allocations(merged: tvm.IRModule, targets: list[str]) -> Iterator[Allocation]:
    """Yield the allocations of a merged module; `targets` names the cache that each store writes."""
    body = merged["main"].body
    root = {view.buffer: view.data.args[0] for view in all_of(body, tirx.DeclBuffer)}
    stored = [root.get(store.buffer, store.buffer) for store in stores(merged)]
    for buffer in buffers_in(body):
        holds = tuple(dict.fromkeys(name for name, home in zip(targets, stored, strict=True) if home.same_as(buffer)))
        yield Allocation(holds[0], holds, buffer.scope(), str(buffer.dtype), prod(int(size) for size in buffer.shape))
