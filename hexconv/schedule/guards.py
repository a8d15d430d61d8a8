"""Guard the blocks of one conv by each other's conditions, once all blocks stand where they belong."""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.schedule.trees import conjuncts


def guard_accumulators(module: tvm.IRModule, results: dict[str, str]) -> tvm.IRModule:
    """Compute only the sums that the epilogue takes.

    The epilogue of a conv is guarded where its step reaches past the stripe. When TVM places the sums inside of that
    stripe, it no longer knows the stripe's end, and guards the sums by the end of the tensor alone. Here the sums get
    the epilogue's guard for everything that the loops around both decide. The sums keep only the conditions on loops of
    their own.

    before:  for ho_inner, wo:                              after:  for ho_inner, wo:
                 where(slab < blocks and rc < C): sums                  where(slab < stripe and rc < C): sums
                 where(slab < stripe): result = f(sums)                 where(slab < stripe): result = f(sums)

    Args:
        module: a scheduled module with blocks.
        results: for each block that makes sums, the block of its epilogue, both by name.
    """
    epilogues: dict[str, s_tir.SBlockRealize] = {}

    def note(realize: s_tir.SBlockRealize) -> None:
        if realize.block.name_hint in results.values():
            epilogues[realize.block.name_hint] = realize

    def guarded(realize: s_tir.SBlockRealize) -> s_tir.SBlockRealize:
        if realize.block.name_hint not in results:
            return realize
        epilogue = epilogues[results[realize.block.name_hint]]
        outside = [loop for value in epilogue.iter_values for loop in tirx.analysis.undefined_vars(value, [])]
        own = [condition for condition in conjuncts(realize.predicate) if not _uses_only(condition, outside)]
        return s_tir.SBlockRealize(realize.iter_values, tirx.all(epilogue.predicate, *own), realize.block)

    main = module["main"]
    tvm_ffi.structural_walk(main.body, (s_tir.SBlockRealize, note))
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (s_tir.SBlockRealize, guarded)))})


def _uses_only(condition: tirx.Expr, loops: Sequence[tirx.Var]) -> bool:
    """Whether a condition depends on no loops but these."""
    return all(any(free.same_as(loop) for loop in loops) for free in tirx.analysis.undefined_vars(condition, []))
