"""Let an HVX kernel copy by itself, vector by vector."""

from collections.abc import Mapping
from math import gcd

import tvm
from tvm import tirx
from tvm.ir import Range
from tvm.sym import Analyzer

from hexconv.kernel.hvx.tiles import PAIR_BYTES, WORD_BYTES
from hexconv.lower.copies import part_of
from hexconv.lower.hvx import vector
from hexconv.lower.transfers.mover import Mover
from hexconv.lower.transfers.run import Fill, Run, is_one, itemsize
from hexconv.lower.transfers.taken_apart import ranges_of, taken_apart
from hexconv.schedule.block import Block, Number
from hexconv.schedule.loops import LOOP_NAME, PART
from hexconv.schedule.trees import around, as_one


def move_by_vectors(module: tvm.IRModule, ranges: Mapping[tirx.Var, Range]) -> tvm.IRModule:
    """Let the kernel itself copy what no engine does (flat buffers, parts named).

    Args:
        module: a module with named parts.
        ranges: the ranges of variables that are no loop's.
    """
    main = module["main"]
    mover = Mover(_moved, fill_by_vectors, ranges_of(main.body, ranges))

    def visit(statement: tirx.Stmt) -> tirx.Stmt:
        if (part := part_of(statement)) and part.copies:
            notes = {PART: part.name, LOOP_NAME: "copy"}
            body = as_one(taken_apart(statement, mover))
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
    word = vector.signed(_repeated(int(fill.value), WORD_BYTES // size))
    pair = tirx.Broadcast(vector.concealed(tirx.IntImm("int32", word)), PAIR_BYTES // WORD_BYTES)
    stored = {vector.BYTES // size: vector.moved(vector.splat(word)), PAIR_BYTES // size: pair}
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
    (target, to), (source, where), lanes = run.target, run.source, vector.BYTES // itemsize(run.target[0])
    block, unit = Block(), _unit(run)
    dtype = f"{target.dtype}x{unit}" if unit > 1 else str(target.dtype)

    def row(at: Block, number: tirx.Expr) -> None:
        first, begin = to + number * run.steps[0], where + number * run.steps[1]
        if not is_one(run.count):
            first, begin = (_in_one_register(place, unit) for place in (first, begin))
        vectors, units = _parts(run.elements, lanes, unit)

        def whole(inner: Block, index: tirx.Expr) -> None:
            loaded = tirx.BufferLoad(source, [tirx.Ramp(begin + index * lanes, 1, lanes)])
            moved = vector.moved(tirx.reinterpret(vector.VECTOR, loaded))
            typed = tirx.reinterpret(f"{target.dtype}x{lanes}", moved)
            inner.store(target, tirx.Ramp(first + index * lanes, 1, lanes), typed)

        def some(inner: Block, index: tirx.Expr) -> None:
            left, right = (start + index * unit + vectors * lanes for start in (first, begin))
            loaded = tirx.BufferLoad(source, [tirx.Ramp(right, 1, unit) if unit > 1 else right])
            inner.store(target, tirx.Ramp(left, 1, unit) if unit > 1 else left, vector.concealed_bytes(loaded, dtype))

        at.loop("vector", vectors, whole)
        at.loop("unit", units, some)

    block.loop("row", int(run.count) if isinstance(run.count, tirx.IntImm) else run.count, row)
    return block.statement()


def _in_one_register(place: tirx.Expr, unit: int) -> tirx.Expr:
    """Return where a row begins, a multiple of a unit, in a form for which LLVM keeps one address.

    Otherwise LLVM would keep an address for each of the row's units, and spill most of them.
    """
    return vector.concealed(Analyzer().simplify(tirx.floordiv(place, unit))) * unit


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
