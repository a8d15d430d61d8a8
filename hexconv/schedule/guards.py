"""Guards between the blocks of one conv, set once all blocks stand where they belong."""

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.sym import Analyzer

Guards = dict[str, list[tirx.Expr]]
"""Further conditions under which a block runs, by its name."""


def guard_accumulators(module: tvm.IRModule, results: dict[str, str]) -> tvm.IRModule:
    """Sum only what the epilogue takes.

    The epilogue of a conv is guarded where its step reaches past the stripe. TVM knows of that stripe no more when it
    places the sums inside of it, and leaves them to what the tensor has.

    before:  for ho_inner, wo:                              after:  for ho_inner, wo:
                 where(slab < blocks): sums = ...                       where(slab < blocks and slab < stripe): ...
                 where(slab < stripe): result = f(sums)                 where(slab < stripe): result = f(sums)

    Args:
        module: scheduled, with blocks.
        results: the block of the epilogue by the name of its accumulator's block.
    """
    found: dict[str, tirx.Expr] = {}

    def note(realize: s_tir.SBlockRealize) -> None:
        found[realize.block.name_hint] = realize.predicate

    tvm_ffi.structural_walk(module["main"].body, (s_tir.SBlockRealize, note))
    by_block = {f"{sums}_{part}": [found[result]] for sums, result in results.items() for part in ("init", "update")}
    return add_guards(module, by_block)


def add_guards(module: tvm.IRModule, guards: Guards) -> tvm.IRModule:
    """Run blocks only where further conditions hold."""

    def guarded(realize: s_tir.SBlockRealize) -> s_tir.SBlockRealize:
        more = guards.get(realize.block.name_hint, [])
        predicate = _all_of([realize.predicate, *more]) if more else realize.predicate
        return s_tir.SBlockRealize(realize.iter_values, predicate, realize.block) if more else realize

    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (s_tir.SBlockRealize, guarded))
    return tvm.IRModule({"main": main.with_body(body)})


def _all_of(conditions: list[tirx.Expr]) -> tirx.Expr:
    """All conditions, each said once (sums of loop variables may come in any order)."""
    terms: list[tirx.Expr] = []
    for term in (Analyzer().simplify(term) for condition in conditions for term in _terms(condition)):
        if not any(tvm_ffi.structural_equal(term, known) for known in terms):
            terms.append(term)
    return tirx.all(*terms)


def _terms(condition: tirx.Expr) -> list[tirx.Expr]:
    """The parts of a conjunction."""
    return [*_terms(condition.a), *_terms(condition.b)] if isinstance(condition, tirx.And) else [condition]
