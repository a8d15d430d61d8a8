"""Run the passes in the order of their decisions: sizes of caches, plain loops, flat buffers, shared memory."""

from collections.abc import Callable, Mapping

import tvm
from tvm import s_tir, tirx
from tvm.ir import Range

from hexconv.lower.bounds import keep_inside
from hexconv.lower.conv_steps import take_out
from hexconv.lower.guards import guards_to_statements, hoist_guards, with_guards, without_guards
from hexconv.lower.overlap import overlap
from hexconv.lower.rings import allocate_outside, fold, with_first_slabs
from hexconv.lower.run_in import run_in

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
