"""Count instead of compute: bytes moved and MACs, by a backward slice of loop bounds and guards.

before:  for ...: if ...: input_cache[...] = input[...]
after:   for ...: if ...: counts[0] = counts[0] + 4

Every guard stays, and every loop that one of them depends on, with what extents and conditions are computed from; other
loops multiply what they would repeat (`hexconv.lower.counting`). So running the result gives exact figures, whatever
decides them. What a statement moves or multiplies stands in the statement itself
(`hexconv.lower.counting`); statements in a row run equally often and are added up before. Loops run one trip after the
other, and so do threads. Of asynchronous copies the bytes are counted, and the groups that are under way in each queue:
a start adds one, a wait leaves as many as it says.

input_cache[...] = input[...]                                      an element of the input, copied in
    weights = filter1_flat[T.Ramp(..., 1, 128)]                        128 bytes of filter 1
    output[...] = ...                                                  copied out
    output[...] = output[...] + input_cache[...] * filter1_cache[...]  a multiply-accumulate of conv 1
    vrmpyub.acc(total, weights, word)                                  4 multiply-accumulates in each of 32 lanes

Of an argument that is read in place every load counts, however often it comes to the same element; so does every load
and every store of a kernel in a cache that lies outside of VTCM while others lie in it. An instruction that
sums instead of multiplying (words of ones for a zero point) is a multiply-accumulate as any other: it takes as long.

before:  for wo, ki, rc: if ki < 2 and wo < 7: counts[0] = counts[0] + 1      # rc to 32
after:   for wo: if wo < 7: for ki: if ki < 2: counts[0] = counts[0] + 32

What the loops count stays the same; a kernel of 1000 x 1000 taps is then counted as soon as one of 3 x 3.

A buffer is a variable too: where a loop's extent is loaded from one, what is stored there decides as well.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.target import codegen

from hexconv.lower import queues
from hexconv.lower.buffers import BufferContents, contents_of, convs_of
from hexconv.lower.copies import is_over_bands
from hexconv.lower.hvx import instructions
from hexconv.lower.lowered import Lowered
from hexconv.spec.capacities import SCOPE
from hexconv.spec.names import conv_name, copied_arguments
from hexconv.spec.places import BUFFER_ROLES, roles_multiplied_as
from hexconv.tir.guards import IF_THEN_ELSE
from hexconv.tir.trees import all_of, as_one, buffers_in, conjuncts, steps_of, uses, with_values

PRODUCTS_OF_LANE = {
    "llvm.hexagon.V6.vrmpy": 4,
    "llvm.hexagon.M5.vrmac": 8,
    "llvm.hexagon.V6.vdmpy": 2,
    "llvm.fmuladd": 1,
}
"""Instructions that multiply and add, by how their names begin: products that a lane of the result adds up."""

INTRINSIC = "tirx.call_llvm_pure_intrin"

HELD = tuple(role for role, known in BUFFER_ROLES.items() if known.holds_elements)
"""Roles of the buffers that hold elements."""

COPIED_TO = ("input", "filter")
"""Roles of the buffers that only copies write."""

FILTERS, SOURCES = roles_multiplied_as("filter"), roles_multiplied_as("source")
"""Roles of what a conv multiplies."""

Work = Counter[str]
"""Bytes by argument and by cache outside of VTCM, multiply-accumulates by conv."""


@dataclass(frozen=True)
class Meaning:
    """The buffers and bound values of a module, from which the work of its statements follows.

    Attributes:
        tensors: the arguments that have caches, by the variables of these and of views of them.
        outside: the names of caches outside of VTCM, by variable; none unless other caches lie in VTCM.
        sources: for every bound value, what the buffers hold that it was loaded from.
    """

    tensors: dict[tirx.Var, tirx.Var]
    outside: dict[tirx.Var, str]
    sources: dict[tirx.Var, frozenset[BufferContents]]

    @classmethod
    def of(cls, main: tirx.PrimFunc) -> "Meaning":
        """Read the buffers and bound values of a module's function."""
        tensors = {argument: argument for argument in main.params if contents_of(argument).is_copied}
        for view in all_of(main.body, tirx.DeclBuffer):
            argument = view.data.args[0] if isinstance(view.data, Call) else view.data
            if argument in tensors:
                tensors[view.buffer] = tensors[argument]
        meaning = cls(tensors, outside_of(main), {})
        for bind in all_of(main.body, tirx.Bind):
            meaning.sources[bind.var] = meaning._loaded(bind.value)
        return meaning

    def work(self, statement: "tirx.BufferStore | tirx.Bind") -> Work:
        """Count the bytes that one run of a statement moves, and its multiply-accumulates."""
        value, work = statement.value, Work()
        stored = statement.buffer if isinstance(statement, tirx.BufferStore) else None
        if stored in self.tensors:
            work[str(self.tensors[stored].name)] += _bytes(value.ty)
        elif stored in self.outside and contents_of(stored).role not in COPIED_TO:
            work[self.outside[stored]] += _bytes(value.ty)
        multiplied: set[str] = set()
        for load in all_of(value, TensorLoad):
            if load.source in self.outside and stored not in self.tensors:
                work[self.outside[load.source]] += _bytes(load.ty)
            if load.source in self.tensors:
                work[str(self.tensors[load.source].name)] += _bytes(load.ty)
            elif stored is not None and not load.source.same_as(stored) and _lanes(load.ty) == 1:
                multiplied.update(_readers([contents_of(load.source)], FILTERS))
        work.update(multiplied)  # counted once, though both bytes of a weight may be loaded
        for call in all_of(value, Call):
            assert not call.op.same_as(IF_THEN_ELSE), "guards are statements by now"
            if products := _products(call):
                work[self._conv(call)] += products
        return work

    def _loaded(self, value: tirx.Expr) -> frozenset[BufferContents]:
        """Say what the buffers hold that a value was loaded from, directly or by way of bound values."""
        found: set[BufferContents] = set()
        for variable in all_of(value, tirx.Var):
            found |= self.sources.get(variable) or {contents_of(self.tensors.get(variable, variable))}
        return frozenset(found)

    def _conv(self, call: Call) -> str:
        """Name the conv whose filter or whose source an instruction multiplies."""
        held = self._loaded(call)
        convs = _readers(held, FILTERS) or _readers(held, SOURCES)
        assert len(convs) == 1, f"{call} multiplies for {sorted(convs)}"
        return convs.pop()


def outside_of(main: tirx.PrimFunc) -> dict[tirx.Var, str]:
    """Name the caches of a function that lie outside of VTCM; return none unless other caches lie in VTCM."""
    found = buffers_in(main.body)
    outside = {buffer: str(buffer.name) for buffer in found if buffer.scope() != SCOPE}
    kept = {buffer: name for buffer, name in outside.items() if contents_of(buffer).role in HELD}
    return kept if len(outside) < len(found) else {}


def _readers(held: Iterable[BufferContents], roles: Sequence[str]) -> set[str]:
    """Name the convs that read what buffers hold, if its role is one of `roles`."""
    return {conv_name(each.reader) for each in held if each.role in roles}


def _products(call: Call) -> int:
    """Count the products that a call adds up, in all lanes; 0 for a call that does something else."""
    if call.op.name != INTRINSIC:
        return 0
    name = _intrinsic(int(call.args[0]))
    return next((_lanes(call.ty) * each for start, each in PRODUCTS_OF_LANE.items() if name.startswith(start)), 0)


@cache
def _intrinsic(number: int) -> str:
    return str(codegen.llvm_get_intrinsic_name(number))


def _lanes(ty: object) -> int:
    return tvm.DataType(str(ty)).lanes


def _bytes(ty: object) -> int:
    dtype = tvm.DataType(str(ty))
    return dtype.bits * dtype.lanes // 8


Conditions = list[tirx.Expr]


def repeated(loop: tirx.For, body: tirx.Stmt) -> tirx.Stmt:
    """Return a serial loop around a body that counts, or statements that count the same in fewer trips.

    Args:
        loop: the loop, for its variable, its start and its extent.
        body: the body of one trip.
    """
    if not _only_adds(body):
        return _serial(loop, body)
    conditions, inside = _guarded(body)
    outside = [condition for condition in conditions if not uses(condition, loop.loop_var)]
    within = [condition for condition in conditions if uses(condition, loop.loop_var)]
    guarded = _under(within, inside)
    if uses(guarded, loop.loop_var):
        return _under(outside, _serial(loop, guarded))
    return _under(outside, _times(guarded, loop.extent))


def _serial(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, body)


def _only_adds(body: tirx.Stmt) -> bool:
    """Whether a statement does nothing but add to counts, and what it adds and tests is the same in every trip."""
    others = all_of(body, tirx.Evaluate, tirx.Bind, tirx.AllocBuffer)
    return not others and all(map(_adds, all_of(body, tirx.BufferStore)))


def _adds(store: tirx.BufferStore) -> bool:
    """Whether a store has the form `counts[i] = counts[i] + more`."""
    value = store.value
    if not isinstance(value, tirx.Add) or not isinstance(value.a, TensorLoad):
        return False
    return value.a.source.same_as(store.buffer) and list(map(int, value.a.indices)) == list(map(int, store.indices))


def _guarded(body: tirx.Stmt) -> tuple[Conditions, tirx.Stmt]:
    """Return the conditions around all of a body, and the statement inside of them."""
    conditions: Conditions = []
    while isinstance(body, tirx.IfThenElse) and body.else_case is None:
        conditions += conjuncts(body.condition)
        body = body.then_case
    return conditions, body


def _under(conditions: Conditions, body: tirx.Stmt) -> tirx.Stmt:
    """Put conditions around a statement, as one `if`."""
    return tirx.IfThenElse(tirx.all(*conditions), body, None) if conditions else body


def _times(body: tirx.Stmt, extent: tirx.Expr) -> tirx.Stmt:
    """Multiply every addition in a statement by the number of trips."""
    trips = tirx.max(extent.astype("int64"), tirx.const(0, "int64"))

    def more(store: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(store.buffer, store.value.a + store.value.b * trips, store.indices)

    return tvm_ffi.structural_map(body, (tirx.BufferStore, more))


def deciding(body: tirx.Stmt) -> frozenset[tirx.Var]:
    """Find the variables and buffers without whose values some loop or guard of `body` could not be evaluated."""
    known: set[tirx.Var] = set()
    sources = _sources(body)
    pending = _asked(body)
    while pending:
        variable = pending.pop()
        if variable not in known:
            known.add(variable)
            pending += sources[variable]
    return frozenset(known)


def _asked(body: tirx.Stmt) -> list[tirx.Var]:
    """Find the variables in extents, in conditions, and in the amounts that operations on queues state."""
    asked: list[tirx.Var] = []

    def ask(*values: tirx.Expr) -> None:
        asked.extend(found for value in values for found in all_of(value, tirx.Var))

    loop = (tirx.For, lambda node: ask(node.min, node.extent))
    guard = (tirx.IfThenElse, lambda node: ask(node.condition))
    queue = (tirx.Evaluate, lambda node: ask(*queues.amounts_of(node)))
    tvm_ffi.structural_walk(body, [loop, guard, queue])
    return asked


def _sources(body: tirx.Stmt) -> defaultdict[tirx.Var, list[tirx.Var]]:
    """Map each variable and buffer to those that its value is computed from."""
    sources: defaultdict[tirx.Var, list[tirx.Var]] = defaultdict(list)

    def store(node: tirx.BufferStore) -> None:
        sources[node.buffer] += [found for part in (node.value, *node.indices) for found in all_of(part, tirx.Var)]

    def bind(node: tirx.Bind) -> None:
        sources[node.var] += all_of(node.value, tirx.Var)

    tvm_ffi.structural_walk(body, [(tirx.BufferStore, store), (tirx.Bind, bind)])
    return sources


@dataclass(frozen=True)
class Counts:
    """The counts of one run of a module.

    Attributes:
        traffic_bytes: for each argument, the bytes that were loaded from it or stored to it; where some caches lie in
            VTCM, for each other cache the bytes that kernels loaded from it and stored to it.
        macs: for each conv (`conv1`, ...), its multiply-accumulates.
        copies_in_flight: for each argument, the most groups of asynchronous copies that were under way at once.
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]
    copies_in_flight: dict[str, int]


NOTHING = tirx.Evaluate(tirx.const(0, "int32"))
QUEUE_COUNTS = ("bytes", "under way", "most under way")
"""The counts that each queue has."""


def counting_module(lowered: Lowered) -> tvm.IRModule:
    """Build a module whose `main` counts into an int64 vector: bytes, MACs, then what each queue does."""
    main, tensors = lowered.unmerged["main"], _tensors(lowered)
    names = [*tensors, *_convs(tensors), *_outside(lowered)]
    counts = tirx.decl_buffer((len(names) + len(QUEUE_COUNTS) * len(tensors),), "int64", "counts")
    revealed = instructions.revealed(main.body)
    counting = _Counting(counts, tuple(names), Meaning.of(main.with_body(revealed)), deciding(revealed))
    body = _one(counting.of(revealed)) or NOTHING
    func = tirx.PrimFunc([counts], body).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    return tirx.transform.ConvertSSA()(tvm.IRModule({"main": func}))


def counts_of(lowered: Lowered, counted: Sequence[int]) -> Counts:
    """Name the numbers that a counting module counted."""
    tensors = _tensors(lowered)
    convs, outside = _convs(tensors), _outside(lowered)
    named = dict(zip((*tensors, *convs, *outside), counted, strict=False))
    by_queue = np.reshape(counted[len(named) :], (len(tensors), len(QUEUE_COUNTS)))
    # A pool has no filter, though its number has a queue.
    there = {argument.name for argument in lowered.unmerged["main"].params}
    queued = {name: row for name, row in zip(tensors, by_queue, strict=True) if name in there}
    moved = {name: named[name] + int(row[0]) for name, row in queued.items()}
    moved |= {name: named[name] for name in outside}
    in_flight = {name: int(row[2]) for name, row in queued.items()}
    return Counts(moved, {name: named[name] for name in convs}, in_flight)


def _tensors(lowered: Lowered) -> list[str]:
    """List the arguments that are copied, in the order of their queues."""
    return copied_arguments(convs_of(lowered.unmerged["main"]))


def _outside(lowered: Lowered) -> list[str]:
    """List the caches outside of VTCM, where other caches lie in VTCM."""
    return list(outside_of(lowered.unmerged["main"]).values())


def _convs(tensors: Sequence[str]) -> list[str]:
    """Name the convs of a chain with these tensors."""
    return [conv_name(number) for number in range(1, len(tensors) - 1)]


@dataclass(frozen=True)
class _Counting:
    """Rewrites statements so that they count.

    Attributes:
        counts: the buffer that holds the counts.
        names: the names of the first counts in it.
        meaning: says what a statement moves and multiplies.
        deciding: variables that loops and guards depend on.
    """

    counts: tirx.Var
    names: tuple[str, ...]
    meaning: Meaning
    deciding: frozenset[tirx.Var]

    def of(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """Return the statements that count for one statement; none where it neither counts nor decides."""
        if isinstance(statement, tirx.For):
            body = _one(self.of(statement.body))
            if body and is_over_bands(statement):
                return [_in_band(statement, band, body) for band in range(int(statement.extent))]
            return [repeated(statement, body)] if body else []
        if isinstance(statement, tirx.IfThenElse):
            branches = (statement.then_case, statement.else_case)
            then, otherwise = (_one(self.of(branch)) if branch else None for branch in branches)
            return [tirx.IfThenElse(statement.condition, then or NOTHING, otherwise)] if then or otherwise else []
        return self._in_a_row(steps_of(statement))

    def _in_a_row(self, steps: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        """Among statements that run equally often, keep those that decide; behind them, add up what all of them do."""
        kept, work = [], Work()
        for step in steps:
            if isinstance(step, (tirx.BufferStore, tirx.Bind)):
                work.update(self.meaning.work(step))
            if isinstance(step, (tirx.For, tirx.IfThenElse, tirx.SeqStmt)):
                kept += self.of(step)
            elif isinstance(step, tirx.Evaluate):
                kept += self._followed(step)
            elif _defined(step) in self.deciding:
                kept.append(step)
        return kept + [self._added(self.names.index(name), tirx.const(more, "int64")) for name, more in work.items()]

    def _followed(self, node: tirx.Evaluate) -> list[tirx.Stmt]:
        """Count what an operation on a queue does; these counts stand behind the others."""
        call = node.value
        if not isinstance(call, Call) or call.op not in (queues.COPY, queues.START, queues.END, queues.WAIT):
            return [node]
        first = len(self.names) + int(call.args[0]) * len(QUEUE_COUNTS)
        moved, current, most = range(first, first + len(QUEUE_COUNTS))
        if call.op.same_as(queues.COPY):
            rows, *_steps = [*queues.rows_of(call), tirx.const(1, "int32")]
            return [self._added(moved, call.args[3].astype("int64") * rows.astype("int64"))]
        if call.op.same_as(queues.START):
            larger = tirx.max(self._count(current), self._count(most))
            return [self._added(current, tirx.const(1, "int64")), tirx.BufferStore(self.counts, larger, [most])]
        if call.op.same_as(queues.WAIT):
            left = tirx.min(self._count(current), call.args[1].astype("int64"))
            return [tirx.BufferStore(self.counts, left, [current])]
        return []

    def _count(self, place: int) -> tirx.Expr:
        return tirx.BufferLoad(self.counts, [place])

    def _added(self, place: int, more: tirx.Expr) -> tirx.Stmt:
        """Add to one count."""
        return tirx.BufferStore(self.counts, self._count(place) + more, [place])


def _defined(statement: tirx.Stmt) -> tirx.Var | None:
    """Return the variable or buffer to which a statement gives a value, or memory."""
    if isinstance(statement, tirx.Bind):
        return statement.var
    return statement.buffer if isinstance(statement, (tirx.AllocBuffer, tirx.BufferStore)) else None


def _in_band(loop: tirx.For, band: int, body: tirx.Stmt) -> tirx.Stmt:
    """Return the statements of one thread: with its number as a constant, TVM has far less to look at."""
    return with_values(body, {loop.loop_var: tirx.const(band, "int32")})


def _one(statements: Sequence[tirx.Stmt]) -> tirx.Stmt | None:
    """Join statements into one, if there are any."""
    return as_one(statements) if statements else None
