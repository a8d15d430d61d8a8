"""Give caches two slots for double buffering: one is computed on while the other is copied to or from."""

from collections.abc import Iterable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.copies import Copy
from hexconv.schedule.trees import all_of, as_one, steps_of

SLOTS = 2


def step_number(loops: Sequence[tirx.For]) -> tirx.Expr:
    """Return the number of the current iteration over nested loops, counted from 0."""
    number: tirx.Expr = tirx.const(0, "int32")
    for loop in loops:
        number = number * loop.extent + loop.loop_var
    return _with_ranges(loops).simplify(number)


def next_step(loops: Sequence[tirx.For]) -> list[tirx.Expr]:
    """Return the loop variables one iteration later, carried over from each loop to the one around it.

    Behind the last iteration comes the first one again. So no variable leaves its range, and no index is clamped, as
    what is clamped is copied element by element. A single loop's guard tells TVM as much. How many stripes a band has,
    only the device knows.
    """
    analyzer, following = _with_ranges(loops), step_number(loops) + 1
    times: tirx.Expr = tirx.const(1, "int32")
    values: list[tirx.Expr] = []
    for loop in reversed(loops):
        is_guarded = len(loops) == 1 or (loop is loops[0] and not isinstance(loop.extent, tirx.IntImm))
        value = following // times if is_guarded else following // times % loop.extent
        values.insert(0, analyzer.simplify(value))
        times = times * loop.extent
    return values


def slot_of(step: tirx.Expr) -> tirx.Expr:
    """Return the slot that a step uses."""
    return Analyzer().simplify(step % SLOTS)


def with_slots(body: tirx.Stmt, copies: Iterable[Copy]) -> tirx.Stmt:
    """Give caches two slots, allocated outside of all loops.

    before:  for t: cache = alloc(n); cache[i] = ...        after:  cache = alloc(2, n)
                                                                    for t: cache[t % 2, i] = ...
    """
    slots = {copy.cache: (_doubled(copy.cache), slot_of(step_number(copy.loops))) for copy in copies}
    annotations = {node.buffer: node.annotations for node in all_of(body, tirx.AllocBuffer)}

    def load(node: TensorLoad) -> TensorLoad:
        home = slots.get(node.source)
        return tirx.BufferLoad(home[0], [home[1], *node.indices]) if home else node

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        home = slots.get(node.buffer)
        return tirx.BufferStore(home[0], node.value, [home[1], *node.indices]) if home else node

    def without_inner(sequence: tirx.SeqStmt) -> tirx.Stmt:
        kept = [step for step in sequence.seq if not (isinstance(step, tirx.AllocBuffer) and step.buffer in slots)]
        return sequence if len(kept) == len(sequence.seq) else as_one(kept)

    allocated = [tirx.AllocBuffer(new, annotations[cache]) for cache, (new, _slot) in slots.items()]
    body = tvm_ffi.structural_map(body, (tirx.SeqStmt, without_inner))
    body = tvm_ffi.structural_map(body, [(TensorLoad, load), (tirx.BufferStore, store)])
    return as_one([*allocated, *steps_of(body)])


def _doubled(cache: tirx.Var) -> tirx.Var:
    """Declare a buffer of two slots under the name of a cache."""
    return tirx.decl_buffer((SLOTS, *cache.shape), cache.dtype, cache.name, scope=cache.scope())


def _with_ranges(loops: Sequence[tirx.For]) -> Analyzer:
    """Return an analyzer that knows the ranges of the loop variables."""
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return analyzer
