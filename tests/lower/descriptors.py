"""Every copy that a lowered module would start, in order: its loops and guards are evaluated, and nothing else is."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.lower import queues

Values = dict[tirx.Var, int]

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Min": min, "Max": max},
    **{"FloorDiv": operator.floordiv, "FloorMod": operator.mod, "Div": operator.floordiv, "Mod": operator.mod},
    **{"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq},
    **{"NE": operator.ne, "And": lambda a, b: bool(a and b), "Or": lambda a, b: bool(a or b)},
}


@dataclass(frozen=True)
class Descriptor:
    """One copy: rows of bytes, and where they begin in their buffers.

    Attributes:
        queue: of its tensor.
        target: buffer and first byte where it goes.
        source: the same where it comes from.
        bytes: of a row.
        rows: how many.
        steps: bytes from row to row, of target and source.
    """

    queue: int
    target: tuple[str, int]
    source: tuple[str, int]
    bytes: int
    rows: int
    steps: tuple[int, int]

    def each_row(self) -> Iterator[tuple[int, int, int]]:
        """First byte in the target, in the source, and bytes of every row."""
        for row in range(self.rows):
            yield self.target[1] + row * self.steps[0], self.source[1] + row * self.steps[1], self.bytes


def groups_of(module: tvm.IRModule) -> list[list[Descriptor]]:
    """The copies of every group that a module starts, in the order of their starts."""
    groups: list[list[Descriptor]] = []
    _execute(module["main"].body, {}, groups)
    return groups


def _execute(statement: Any, values: Values, groups: list[list[Descriptor]]) -> None:
    if isinstance(statement, tirx.SeqStmt):
        for step in statement.seq:
            _execute(step, values, groups)
    elif isinstance(statement, tirx.For) and _has_copies(statement):
        for trip in range(_value(statement.extent, values)):
            _execute(statement.body, values | {statement.loop_var: trip}, groups)
    elif isinstance(statement, tirx.IfThenElse) and _has_copies(statement):
        chosen = statement.then_case if _value(statement.condition, values) else statement.else_case
        if chosen is not None:
            _execute(chosen, values, groups)
    elif isinstance(statement, tirx.Bind) and str(statement.var.ty) == str(tirx.Var("number", "int32").ty):
        values[statement.var] = _value(statement.value, values)
    elif queues.queue_of(statement, queues.START) is not None:
        groups.append([])
    elif queues.queue_of(statement, queues.COPY) is not None:
        groups[-1].append(_descriptor(statement.value, values))


def _has_copies(statement: tirx.Stmt) -> bool:
    found: list[tirx.Evaluate] = []
    tvm_ffi.structural_walk(statement, (tirx.Evaluate, found.append))
    return any(queues.queue_of(node, queues.COPY) is not None for node in found)


def _descriptor(call: Any, values: Values) -> Descriptor:
    queue, target, source, size_bytes, _bypass, *rows = call.args
    count, *steps = [_value(number, values) for number in rows] or [1, 0, 0]
    places = (_place(target, values), _place(source, values))
    return Descriptor(int(queue), *places, _value(size_bytes, values), count, (steps[0], steps[1]))


def _place(address: Any, values: Values) -> tuple[str, int]:
    element = address.args[0]
    return element.source.name, _value(element.indices[0], values) * tvm.DataType(element.source.dtype).itemsize


def _value(expression: Any, values: Values) -> int:
    if isinstance(expression, tirx.IntImm):
        return int(expression)
    if isinstance(expression, tirx.Var):
        return values[expression]
    if isinstance(expression, tirx.Not):
        return not _value(expression.a, values)
    if isinstance(expression, tirx.Select):
        chosen = expression.true_value if _value(expression.condition, values) else expression.false_value
        return _value(chosen, values)
    return OPERATIONS[type(expression).__name__](_value(expression.a, values), _value(expression.b, values))
