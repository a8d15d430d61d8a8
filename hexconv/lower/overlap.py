"""Overlap copies with compute: two slots for each cache, when each copy starts, and what waits for it.

TVM's own pass (`InjectSoftwarePipeline`) overlaps the iterations of one loop whose body is blocks. Here a copy stands
inside of several loops, its next iteration may be one of a loop further out, guards leave some of them out, and a ring
has more than two slots. So this project starts and waits by itself, with the builtins that TVM's pass ends in.

Each tensor has a queue of its own. A queue holds groups of copies, and `dma_wait(queue, k)` returns once at most k of
them, the youngest, are under way.

Copies in. A cache that is filled T times has two slots; step t uses slot t % 2, where t counts the iterations of all
loops around the copy. A step first starts the copies of step t + 1, whose slot step t - 1 has left, and then waits for
its own:

    before:  for a, b:                              after:  start copies of (0, 0) into slot 0
                 copy (a, b) into the cache                 for a, b:
                 compute from the cache                         if t + 1 < T: start copies of t + 1; wait for all but 1
                                                                else: wait for all
                                                                compute from slot t % 2

A cache that is filled once has one slot: its copies are waited for by the conv that uses them. What all threads share
is waited for before they begin: a queue belongs to the thread that uses it.

Rings. The read of the input runs ahead by itself (`hexconv.schedule.stream`), one group a slab: a step waits until no
more are under way than the slabs that have been read ahead of its stripe.

Copies out. The output cache has two slots if it is written more than once. Before a step computes into its slot, no
more than the copies of the step before are under way; the function ends with a wait for all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower import queues
from hexconv.lower.copies import Copy, copies_of, is_over_bands, part_of
from hexconv.lower.rings import slab_of
from hexconv.schedule.conv_blocks import end_row
from hexconv.schedule.stream import ReadAhead
from hexconv.tir.loops import LOOP_NAME, STRIPES
from hexconv.tir.parts import Does, Part
from hexconv.tir.trees import all_of, around, as_one, steps_of, with_values

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


def overlap(func: tirx.PrimFunc, ahead: Mapping[str, ReadAhead]) -> tirx.PrimFunc:
    """Let copies run while a function computes (no blocks, rings folded, buffers not yet flat).

    Args:
        func: the function.
        ahead: how rings are read ahead, by the name of the cache.
    """
    found = copies_of(func, ahead)
    body = with_slots(func.body, [copy for copy in found.values() if copy.has_slots])
    return func.with_body(_Overlap(found).whole(body))


class _Overlap:
    """Rewrites a function so that its copies become groups, and collects what has to stand in front of all loops."""

    def __init__(self, copies: dict[Part, Copy]) -> None:
        self._copies = copies
        self._in_stripes = False
        self._first: list[tirx.Stmt] = []

    def whole(self, body: tirx.Stmt) -> tirx.Stmt:
        """Rewrite the body of the function, or the body of one thread."""
        done: list[tirx.Stmt] = []
        for statement in steps_of(body):
            rewritten = list(self._of_threads(statement) or self._rewritten(statement))
            done += [*self._first, *rewritten]
            self._first = []
        if any(map(is_over_bands, done)):
            return as_one(done)
        out = next(copy for copy in self._copies.values() if not copy.is_in)
        return as_one([*done, queues.wait(out.queue, 0)])

    def _of_threads(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """Rewrite the loop over threads, and put a wait before it for what all threads share."""
        if not isinstance(statement, tirx.For) or not is_over_bands(statement):
            return []
        shared = [copy for copy in self._copies.values() if not copy.is_in_thread]
        own = {part: _in_band(copy, statement.body) for part, copy in self._copies.items() if copy.is_in_thread}
        body = _Overlap(own).whole(statement.body)
        return [*(queues.wait(copy.queue, 0) for copy in shared), around(statement, body)]

    def _rewritten(self, statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
        """Yield the statements that a statement becomes."""
        part = part_of(statement)
        if part in self._copies:
            yield from self._started(self._copies[part], statement)
        elif conv := self._conv(part):
            yield from (*self._before(conv), statement)
        elif isinstance(statement, tirx.SeqStmt):
            yield from self._sequence(statement)
        elif isinstance(statement, tirx.For):
            outside, self._in_stripes = self._in_stripes, self._in_stripes or _is_over_stripes(statement)
            yield around(statement, as_one(list(self._rewritten(statement.body))))
            self._in_stripes = outside
        elif isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
            # A stripe that makes nothing has read, too: it waits outside of the guard of what it makes.
            yield from self._waits_for_rings(statement)
            yield tirx.IfThenElse(statement.condition, as_one(list(self._rewritten(statement.then_case))), None)
        else:
            yield statement

    def _sequence(self, sequence: tirx.SeqStmt) -> Iterator[tirx.Stmt]:
        """Rewrite a sequence; a conv that is several statements waits before the first of them."""
        waited: set[int] = set()
        for statement in sequence.seq:
            conv = self._conv(part_of(statement))
            yield from (statement,) if conv in waited else self._rewritten(statement)
            waited |= {conv} if conv else set()

    def _conv(self, part: Part | None) -> int:
        """Return the number of the conv that a part is, or is a block of, if it uses copies; else 0."""
        is_user = part and part.does == Does.CONV and any(copy.conv == part.conv for copy in self._copies.values())
        return part.conv if part and is_user else 0

    def _waits_for_rings(self, guarded: tirx.IfThenElse) -> Iterator[tirx.Stmt]:
        """Yield the waits for rings that convs under a guard use and that aren't read ahead."""
        convs = {self._conv(part_of(loop)) for loop in all_of(guarded.then_case, tirx.For)}
        for copy in self._copies.values():
            if copy.conv in convs and copy.is_in and copy.ring and not _runs_ahead(copy):
                yield queues.wait(copy.queue, 0)

    def _before(self, conv: int) -> Iterator[tirx.Stmt]:
        """Yield what a conv waits for: copies in without a slot to spare, and the last but one copy out."""
        for copy in self._copies.values():
            if copy.conv == conv and copy.is_in and not copy.has_slots and not _runs_ahead(copy):
                yield queues.wait(copy.queue, 0)
            if copy.conv == conv and not copy.is_in and copy.has_slots:
                yield queues.wait(copy.queue, 1)

    def _started(self, copy: Copy, statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
        """Yield the statements that start the copies, and their waits where the copies run ahead."""
        if _runs_ahead(copy) and not self._in_stripes:
            yield _group_inside(copy, statement)  # the first stripe uses these copies first, and waits for them
        elif _runs_ahead(copy):
            yield from _ring_groups(copy, statement)
        elif copy.is_in and copy.has_slots:
            zeros = [tirx.const(0, "int32")] * len(copy.loops)
            self._first.append(_group(copy, _at(copy, statement, zeros, tirx.const(0, "int32"))))
            yield _next_group(copy, statement)
        else:
            yield _group(copy, statement)


def _in_band(copy: Copy, body: tirx.Stmt) -> Copy:
    """Return a copy of one thread: its ring ends where the thread's rows of the input end."""
    return replace(copy, ring=replace(copy.ring, end_slab=_asked(body, end_row(0)))) if copy.ring else copy


def _asked(body: tirx.Stmt, name: str) -> tirx.Var:
    """Find the free variable of some name in a statement."""
    return next(each for each in all_of(body, tirx.Var) if each.name == name)


def _next_group(copy: Copy, statement: tirx.Stmt) -> tirx.Stmt:
    """Start what the next step copies in, if there is one, and wait for what this step needs."""
    following = step_number(copy.loops) + 1
    started = _group(copy, _at(copy, statement, next_step(copy.loops), slot_of(following)))
    last = queues.wait(copy.queue, 0)
    return tirx.IfThenElse(following < copy.times, tirx.SeqStmt([started, queues.wait(copy.queue, 1)]), last)


def _at(copy: Copy, statement: tirx.Stmt, values: Sequence[tirx.Expr], slot: tirx.Expr) -> tirx.Stmt:
    """Return the copies of another step, in that step's slot."""

    def move(store: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(store.buffer, store.value, [slot, *store.indices[1:]])

    # Slots come last, since they are expressions of this step's variables.
    known = {loop.loop_var: value for loop, value in zip(copy.loops, values, strict=True)}
    return tvm_ffi.structural_map(with_values(statement, known), (tirx.BufferStore, move))


def _runs_ahead(copy: Copy) -> bool:
    """Whether a copy fills a ring ahead of its stripe."""
    return copy.ring is not None and copy.ring.ahead_slabs > 0


def _is_over_stripes(loop: tirx.For) -> bool:
    """Whether a loop goes over stripes."""
    return loop.annotations.get(LOOP_NAME) == STRIPES


def _ring_groups(copy: Copy, statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """Copy each slab in a group of its own, then wait for all groups but those that are read ahead of the stripe."""
    assert copy.ring, "a ring that is read ahead"
    yield _group_inside(copy, statement)
    over_slabs = _over_slabs(statement)
    slabs = int(over_slabs.extent) if over_slabs is not None else 1
    first = slab_of(statement)
    start = with_values(first, {over_slabs.loop_var: tirx.const(0, "int32")}) if over_slabs is not None else first
    beyond = copy.ring.end_slab - (slabs - copy.ring.ahead_slabs) - start
    yield queues.wait(copy.queue, tirx.max(tirx.min(beyond, copy.ring.ahead_slabs), 0))


def _over_slabs(statement: tirx.Stmt) -> tirx.For | None:
    """Return the loop over slabs that are read, if there is more than one slab."""
    while isinstance(statement, tirx.IfThenElse):
        statement = statement.then_case
    is_over = isinstance(statement, tirx.For) and statement.annotations.get(LOOP_NAME) == "ho"
    return statement if is_over else None


def _group_inside(copy: Copy, statement: tirx.Stmt) -> tirx.Stmt:
    """Put each slab that a guard lets through into a group."""
    if statement.same_as(_over_slabs(statement)):
        return around(statement, _group_inside(copy, statement.body))
    if isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
        return tirx.IfThenElse(statement.condition, _group_inside(copy, statement.then_case), None)
    return _group(copy, statement)


def _group(copy: Copy, statement: tirx.Stmt) -> tirx.Stmt:
    """Put all copies of a statement into one group."""
    return tirx.SeqStmt([queues.start_group(copy.queue), statement, queues.end_group(copy.queue)])
