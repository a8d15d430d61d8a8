"""Emit copies: by the copy engine as `dma_copy`, or by an HVX kernel itself, vector by vector.

before:  if 1 <= w and c < 144: cache[..] = input[..]      after:   if 1 <= w: if c < 144: cache[..] = input[..]
         else: cache[..] = zero point                               else: cache[..] = zero point
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import gcd

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Range
from tvm.sym import Analyzer

from hexconv.compute.stored import FIRST_BIT
from hexconv.kernel.tiles import PAIR_BYTES, WORD_BYTES
from hexconv.lower import queues
from hexconv.lower.copies import part_of
from hexconv.lower.copy_runs import Fill, Filler, Mover, Run, is_one, itemsize
from hexconv.lower.hvx import instructions
from hexconv.lower.split_copies import ranges_of, split_into_runs
from hexconv.tir.loops import LOOP_NAME, PART
from hexconv.tir.parts import INPUT_READ
from hexconv.tir.statements import Block, Number
from hexconv.tir.trees import around, as_one, conjuncts, uses


def _by_element(fill: Fill) -> tirx.Stmt:
    """Store element by element."""
    (target, first), index = fill.target, tirx.Var("element", "int32")
    if fill.elements == 1:
        return tirx.BufferStore(target, fill.value, [first])
    return tirx.For(index, 0, fill.elements, tirx.ForKind.SERIAL, tirx.BufferStore(target, fill.value, [first + index]))


def start_copies(
    module: tvm.IRModule,
    filler: Filler = _by_element,
    ranges: Mapping[tirx.Var, Range] | None = None,
    has_alternatives: bool = False,
) -> tvm.IRModule:
    """Let the engine do the copies in groups (flat buffers); a module without groups stays as it is.

    Args:
        module: a module with starts and ends of groups.
        filler: writes the zero points of padding and fringe, which are not copied, when the copies of the group start.
            It writes other bytes than the copies do, or before they start, in a slot that nothing reads yet.
        ranges: the ranges of variables that are no loop's.
        has_alternatives: whether some rows have code of their own for a case in which they are joined (`Mover`).
    """
    main = module["main"]
    known = ranges_of(main.body, ranges or {})

    def grouped(sequence: tirx.SeqStmt) -> tirx.SeqStmt:
        queue: int | None = None
        steps: list[tirx.Stmt] = []
        for step in sequence.seq:
            started, ended = queues.queue_of(step, queues.START), queues.queue_of(step, queues.END)
            queue = started if started is not None else None if ended is not None else queue
            if queue is None or started is not None:
                steps.append(step)
            else:
                copied = partial(_started, queue=queue, ranges=known)
                mover = Mover(copied, filler, known, has_alternatives, fills_ahead=filler is fill_by_vectors)
                steps += split_into_runs(step, mover)
        return tirx.SeqStmt(steps)

    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.SeqStmt, grouped)))})


def _started(run: Run, queue: int, ranges: Analyzer) -> tirx.Stmt:
    """Start one copy, of one row or of many, if there is any row; HVX copies what is flipped: an engine can't."""
    if run.flips:
        return _moved(run)
    target, source = (_address(*place) for place in (run.target, run.source))
    size = itemsize(run.target[0])
    size_bytes = Analyzer().simplify(run.elements * size)
    rows = () if is_one(run.count) else (run.count, *(step * size for step in run.steps))
    started = queues.copy(queue, target, source, size_bytes, *rows)
    doubtful = [amount > 0 for amount in (run.elements, run.count) if not ranges.can_prove(amount > 0)]
    return tirx.IfThenElse(tirx.all(*doubtful), started, None) if doubtful else started


def _address(buffer: tirx.Var, index: tirx.Expr) -> tirx.Expr:
    return Call("tirx.address_of", [tirx.BufferLoad(buffer, [Analyzer().simplify(index)])], ret_ty=buffer.data.ty)


def move_by_vectors(module: tvm.IRModule, ranges: Mapping[tirx.Var, Range]) -> tvm.IRModule:
    """Let the kernel itself copy what no engine does (flat buffers, parts named).

    Args:
        module: a module with named parts.
        ranges: the ranges of variables that are no loop's.
    """
    main = module["main"]
    mover = Mover(_moved, fill_by_vectors, ranges_of(main.body, ranges), fills_ahead=True)

    def visit(statement: tirx.Stmt) -> tirx.Stmt:
        if (part := part_of(statement)) and part.copies:
            notes = {PART: part.name, LOOP_NAME: "copy"}
            body = as_one(split_into_runs(statement, mover))
            return tirx.For(tirx.Var("copy", "int32"), 0, 1, tirx.ForKind.SERIAL, body, annotations=notes)
        if isinstance(statement, tirx.For):
            return around(statement, visit(statement.body))
        if isinstance(statement, tirx.SeqStmt):
            return tirx.SeqStmt([visit(step) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            otherwise = statement.else_case and visit(statement.else_case)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case), otherwise)
        return statement

    return tvm.IRModule({"main": main.with_body(visit(main.body))})


def fill_by_vectors(fill: Fill) -> tirx.Stmt:
    """Fill with whole vectors, then doublewords, then the elements that are left, one by one.

    LLVM is not told that all bytes are alike: it would call memset, which costs more than storing a short row does.
    """
    block, (target, first) = Block(), fill.target
    size = itemsize(target)
    word = instructions.signed(_repeated(int(fill.value), WORD_BYTES // size))
    pair = tirx.Broadcast(instructions.concealed(tirx.IntImm("int32", word)), PAIR_BYTES // WORD_BYTES)
    stored = {instructions.BYTES // size: instructions.moved(instructions.splat(word)), PAIR_BYTES // size: pair}
    left = fill.elements
    for (lanes, value), name in zip(stored.items(), ("vector", "pair"), strict=True):
        typed = tirx.reinterpret(f"{target.dtype}x{lanes}", value)

        def whole(
            at: Block, index: tirx.Expr, begin: Number = first, lanes: int = lanes, value: object = typed
        ) -> None:
            at.store(target, tirx.Ramp(begin + index * lanes, 1, lanes), value)

        count, left = divmod(left, lanes)
        block.loop(name, count, whole)
        first = first + count * lanes
    block.loop("element", left, lambda at, index: at.store(target, first + index, fill.value))
    return block.statement()


def _repeated(value: int, times: int) -> int:
    """Return a word that repeats an element `times` times.

    >>> hex(_repeated(-1, 2)), hex(_repeated(3, 4))
    ('0xffffffff', '0x3030303')
    """
    bits = 32 // times
    return sum((value & ((1 << bits) - 1)) << (bits * place) for place in range(times))


def _moved(run: Run) -> tirx.Stmt:
    """Copy whole vectors, then the rest, as many bytes at a time as its address allows."""
    (target, to), (source, where), lanes = run.target, run.source, instructions.BYTES // itemsize(run.target[0])
    block, unit = Block(), _unit(run)
    dtype = f"{target.dtype}x{unit}" if unit > 1 else str(target.dtype)

    def row(at: Block, number: tirx.Expr) -> None:
        first, begin = to + number * run.steps[0], where + number * run.steps[1]
        vectors, units = _parts(run.elements, lanes, unit)
        if not is_one(run.count) and not (isinstance(units, int) and units == 0):
            first, begin = (_in_one_register(place, unit) for place in (first, begin))

        def whole(inner: Block, index: tirx.Expr) -> None:
            loaded = tirx.BufferLoad(source, [tirx.Ramp(begin + index * lanes, 1, lanes)])
            vector = tirx.reinterpret(instructions.VECTOR, loaded)
            moved = instructions.flipped(vector) if run.flips else instructions.moved(vector)
            typed = tirx.reinterpret(f"{target.dtype}x{lanes}", moved)
            inner.store(target, tirx.Ramp(first + index * lanes, 1, lanes), typed)

        def some(inner: Block, index: tirx.Expr) -> None:
            left, right = (start + index * unit + vectors * lanes for start in (first, begin))
            loaded = tirx.BufferLoad(source, [tirx.Ramp(right, 1, unit) if unit > 1 else right])
            copied = instructions.concealed_bytes(loaded, dtype)
            place = tirx.Ramp(left, 1, unit) if unit > 1 else left
            inner.store(target, place, _flipped(copied, unit) if run.flips else copied)

        at.loop("vector", vectors, whole)
        at.loop("unit", units, some)

    block.loop("row", int(run.count) if isinstance(run.count, tirx.IntImm) else run.count, row)
    return block.statement()


def _flipped(value: tirx.Expr, elements: int) -> tirx.Expr:
    """Flip the first bit of some int8 elements."""
    bits = tirx.const(FIRST_BIT, "int8")
    return tirx.bitwise_xor(value, tirx.Broadcast(bits, elements) if elements > 1 else bits)


def _in_one_register(place: tirx.Expr, unit: int) -> tirx.Expr:
    """Return where a row begins, a multiple of a unit, in a form for which LLVM keeps one address.

    Otherwise LLVM would keep an address for each of the row's units, and spill most of them.
    """
    return instructions.concealed(Analyzer().simplify(tirx.floordiv(place, unit))) * unit


def _unit(run: Run) -> int:
    """Count the elements that can be copied at a time behind whole vectors: they have 8, 4, 2 or 1 bytes together."""
    sets = [Analyzer().modular_set(place) for place in (run.elements, run.target[1], run.source[1])]
    places = [int(part) for each in sets for part in (each.coeff, each.base)]
    return gcd(PAIR_BYTES // itemsize(run.target[0]), *run.steps, *places)


def _parts(elements: tirx.Expr, lanes: int, unit: int) -> tuple[Number, Number]:
    """Return the number of whole vectors, and the number of units that are left; both sizes are powers of two.

    TVM would make divisions by negative numbers of some divisions, which its LLVM codegen can't take; not of shifts.
    """
    if isinstance(elements, tirx.IntImm):
        vectors, rest = divmod(int(elements), lanes)
        return vectors, rest // unit
    rest = tirx.bitwise_and(elements, tirx.const(lanes - 1, "int32"))
    return _shifted(elements, lanes), _shifted(rest, unit)


def _shifted(elements: tirx.Expr, size: int) -> tirx.Expr:
    return elements if size == 1 else tirx.shift_right(elements, tirx.const(size.bit_length() - 1, "int32"))


CHANNELS = "ci"


def without_fringe(module: tvm.IRModule) -> tvm.IRModule:
    """Fill no channel that a pixel of the input doesn't have (flat buffers, parts named)."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(_changed(main.body, False, ()))})


def _changed(statement: tirx.Stmt, is_read: bool, channels: Sequence[tirx.Var]) -> tirx.Stmt:
    """Rewrite a statement inside of loops over `channels`; only the part that reads the input changes."""
    if isinstance(statement, tirx.For):
        is_read = is_read or part_of(statement) == INPUT_READ
        if is_read and statement.annotations.get(LOOP_NAME) == CHANNELS:
            channels = (*channels, statement.loop_var)
        return around(statement, _changed(statement.body, is_read, channels))
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_changed(step, is_read, channels) for step in statement.seq])
    if not isinstance(statement, tirx.IfThenElse):
        return statement
    if channels:
        return _unfilled(statement, channels)
    otherwise = statement.else_case and _changed(statement.else_case, is_read, channels)
    return tirx.IfThenElse(statement.condition, _changed(statement.then_case, is_read, channels), otherwise)


def _unfilled(guard: tirx.IfThenElse, channels: Sequence[tirx.Var]) -> tirx.IfThenElse:
    """Return a guard whose conditions on channels decide only whether there is anything to copy."""
    own: list[tirx.Expr] = []
    others: list[tirx.Expr] = []
    for condition in conjuncts(guard.condition):
        (own if uses(condition, *channels) else others).append(condition)
    if not own:
        return guard
    copied = tirx.IfThenElse(tirx.all(*own), guard.then_case, None)
    return tirx.IfThenElse(tirx.all(*others), copied, guard.else_case) if others else copied


__all__ = ["fill_by_vectors", "move_by_vectors", "start_copies", "without_fringe"]
