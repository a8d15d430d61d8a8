"""Loops that count, multiplied out: the same counts, whatever the loops and guards."""

from operator import add, and_, lt, mul

from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.lower.counting import repeated

COUNTS = 3
STATE = COUNTS - 1
"""The last count is also set, as that of copies under way is: loops around that have to be made."""
DEEPEST = 3
Loops = tuple[tirx.Var, ...]


@st.composite
def nests(draw: st.DrawFn, counts: tirx.Var, loops: Loops = ()) -> tirx.Stmt:
    """Loops and guards in any order, around additions and other stores."""
    kind = draw(st.sampled_from(["loop"] * 3 + ["guard"] * 2 + ["guard, else"] * 2 + ["both", "add", "set"]))
    if kind == "add" or len(loops) == DEEPEST:
        place = draw(st.integers(0, STATE))
        more = tirx.BufferLoad(counts, [place]) + tirx.const(draw(st.integers(1, 9)), "int64")
        return tirx.BufferStore(counts, more, [place])
    if kind == "set":
        value = tirx.BufferLoad(counts, [STATE]) * tirx.const(2, "int64") + tirx.const(1, "int64")
        return tirx.BufferStore(counts, value, [STATE])
    if kind == "both":
        return tirx.SeqStmt([draw(nests(counts, loops)) for _ in range(2)])
    if kind.startswith("guard"):
        otherwise = draw(nests(counts, loops)) if kind.endswith("else") else None
        return tirx.IfThenElse(draw(guards(loops)), draw(nests(counts, loops)), otherwise)
    variable, least = tirx.Var(f"i{len(loops)}", "int32"), draw(st.integers(0, 2))
    extent = draw(st.sampled_from([*loops, *(number(trips) for trips in (-1, 0, 1, 2, 3, 4))]))
    body = draw(nests(counts, (*loops, variable)))
    return tirx.For(variable, number(least), extent, tirx.ForKind.SERIAL, body)


@st.composite
def guards(draw: st.DrawFn, loops: Loops) -> tirx.Expr:
    """A comparison of a loop's variable, or several at once."""
    one = draw(st.sampled_from([*loops[-2:], number(2)])) < number(draw(st.integers(0, 3)))
    return tirx.And(one, draw(guards(loops))) if draw(st.booleans()) else one


def number(value: int) -> tirx.Expr:
    return tirx.const(value, "int32")


@given(data=st.data())
def test_fewer_trips_count_the_same(data: st.DataObject) -> None:
    counts = tirx.decl_buffer((COUNTS,), "int64", "counts")
    body = data.draw(nests(counts))
    assert counted(multiplied(body)) == counted(body)


def test_a_loop_that_only_adds_is_no_loop() -> None:
    counts, trip = tirx.decl_buffer((COUNTS,), "int64", "counts"), tirx.Var("i", "int32")
    added = tirx.BufferStore(counts, tirx.BufferLoad(counts, [0]) + tirx.const(3, "int64"), [0])
    found = multiplied(tirx.For(trip, number(0), number(10**9), tirx.ForKind.SERIAL, added))
    assert not isinstance(found, tirx.For)
    assert counted(found) == [3 * 10**9, 0, 0]


def multiplied(statement: tirx.Stmt) -> tirx.Stmt:
    """Every loop of a statement, the innermost first, as the counting module makes it."""
    if isinstance(statement, tirx.For):
        return repeated(statement, multiplied(statement.body))
    if isinstance(statement, tirx.IfThenElse):
        otherwise = statement.else_case and multiplied(statement.else_case)
        return tirx.IfThenElse(statement.condition, multiplied(statement.then_case), otherwise)
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([multiplied(step) for step in statement.seq])
    return statement


def counted(body: tirx.Stmt) -> list[int]:
    """What is in the counts after a statement, by doing all that it says, trip by trip."""
    found = [0] * COUNTS
    do(body, {}, found)
    return found


def do(statement: tirx.Stmt, loops: dict[str, int], found: list[int]) -> None:
    if isinstance(statement, tirx.For):
        least, trips = (value(bound, loops, found) for bound in (statement.min, statement.extent))
        for trip in range(least, least + trips):
            do(statement.body, {**loops, statement.loop_var.name: trip}, found)
    elif isinstance(statement, tirx.IfThenElse):
        branch = statement.then_case if value(statement.condition, loops, found) else statement.else_case
        if branch is not None:
            do(branch, loops, found)
    elif isinstance(statement, tirx.SeqStmt):
        for step in statement.seq:
            do(step, loops, found)
    else:
        found[int(statement.indices[0])] = value(statement.value, loops, found)


OPERATIONS = {tirx.Add: add, tirx.Mul: mul, tirx.LT: lt, tirx.Max: max, tirx.And: and_}


def value(expression: tirx.Expr, loops: dict[str, int], found: list[int]) -> int:
    if isinstance(expression, tirx.IntImm):
        return int(expression.value)
    if isinstance(expression, tirx.Var):
        return loops[expression.name]
    if isinstance(expression, TensorLoad):
        return found[int(expression.indices[0])]
    if isinstance(expression, tirx.Cast):
        return value(expression.value, loops, found)
    both = (value(side, loops, found) for side in (expression.a, expression.b))
    return OPERATIONS[type(expression)](*both)
