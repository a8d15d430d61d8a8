"""Queues of asynchronous copies: TVM's builtins, and the calls of this project's copy engine that replace them.

A queue holds groups of copies, which end in the order in which they start. `dma_wait(queue, k)` returns once no more
than k groups, the youngest, are under way. TVM's Hexagon runtime maps the queues to those of its user DMA.

before:  dma_copy(q, target, source, bytes, bypass)           after:  hexconv_copy(q, target, source, bytes)
         dma_copy(..., rows, target step, source step)                hexconv_copy_rows(..., rows, steps)
         dma_start_group(q); dma_end_group(q)                         hexconv_start_group(q); hexconv_end_group(q)
         dma_wait(q, k)                                               hexconv_wait(q, k)

TVM itself lowers the builtins to packed functions of the device (`device_api.hexagon.dma_copy`, ...), which only its
runtime for Hexagon has.
"""

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op

from hexconv.spec.names import copied_arguments
from hexconv.tir.parts import INPUT_READ, WRITE_BACK, Does, Part, filter_read
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of

COPY, WAIT, START, END = (Op.get(f"tirx.dma_{name}") for name in ("copy", "wait", "start_group", "end_group"))
INPUT = 0
"""The queue of the input's copies; that of filter i is i, and the output's follows."""


def start_group(queue: int) -> tirx.Stmt:
    """Start a group: copies from here to the end of the group belong together."""
    return _call(START, [int32(queue)])


def end_group(queue: int) -> tirx.Stmt:
    """End the group that was started last on a queue."""
    return _call(END, [int32(queue)])


def wait(queue: int, in_flight: tirx.Expr | int) -> tirx.Stmt:
    """Wait until no more than `in_flight` groups of a queue are under way."""
    return _call(WAIT, [int32(queue), int32(in_flight) if isinstance(in_flight, int) else in_flight])


def copy(queue: int, target: tirx.Expr, source: tirx.Expr, size_bytes: tirx.Expr, *rows: tirx.Expr | int) -> tirx.Stmt:
    """Copy bytes that lie side by side from one address to another, through the data cache as the program does.

    Args:
        queue: the queue that the copy belongs to.
        target: the address to copy to.
        source: the address to copy from.
        size_bytes: the bytes of a row.
        rows: how many rows, and the bytes from one to the next at the target and at the source; none for one row.
    """
    more = [int32(row) if isinstance(row, int) else row for row in rows]
    return _call(COPY, [int32(queue), target, source, size_bytes, tirx.IntImm("bool", 0), *more])


def rows_of(call: Any) -> list[tirx.Expr]:
    """Return what a copy states of its rows: how many, and the bytes between two on both sides; empty for one row."""
    return list(call.args[5:])


def queue_of(statement: Any, op: Op) -> int | None:
    """Return the queue that a statement calls `op` for, if it does."""
    if not isinstance(statement, tirx.Evaluate) or not isinstance(statement.value, Call):
        return None
    call: Any = statement.value
    return int(call.args[0]) if call.op.same_as(op) else None


def amounts_of(statement: tirx.Evaluate) -> list[tirx.Expr]:
    """Return the bytes that a copy moves, or the groups that a wait leaves; empty for other calls."""
    call: Any = statement.value
    if not isinstance(call, Call):
        return []
    if call.op.same_as(COPY):
        return [call.args[3], *rows_of(call)]
    return [call.args[1]] if call.op.same_as(WAIT) else []


def queue_of_part(part: Part, convs: int) -> int:
    """Return the queue of a part that copies.

    >>> from hexconv.tir.parts import INPUT_READ, WRITE_BACK, filter_read
    >>> [queue_of_part(part, 2) for part in (INPUT_READ, filter_read(2), WRITE_BACK)]
    [0, 2, 3]
    """
    return convs + 1 if part.does == Does.WRITE_OUTPUT else INPUT + part.conv


def part_of_queue(queue: int, convs: int) -> Part:
    """Return the part whose copies a queue has."""
    if queue == INPUT:
        return INPUT_READ
    return filter_read(queue) if queue <= convs else WRITE_BACK


def tensor_of(queue: int, convs: int) -> str:
    """Name the tensor whose copies use a queue.

    >>> [tensor_of(queue, 2) for queue in range(4)]
    ['input', 'filter1', 'filter2', 'output']
    """
    return copied_arguments(convs)[queue]


def _call(op: Op, arguments: list[tirx.Expr]) -> tirx.Stmt:
    return tirx.Evaluate(Call(op, arguments, ret_ty="int32"))


FUNCTIONS = {
    COPY: "hexconv_copy",
    START: "hexconv_start_group",
    END: "hexconv_end_group",
    WAIT: "hexconv_wait",
}

ROWS = "hexconv_copy_rows"


def call_engine(module: tvm.IRModule) -> tvm.IRModule:
    """Replace a module's builtins for copies by calls of the copy engine."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.Evaluate, _called)))})


def needs_engine(module: tvm.IRModule) -> bool:
    """Whether a module copies asynchronously."""
    statements = all_of(module["main"].body, tirx.Evaluate)
    return any(queue_of(statement, op) is not None for statement in statements for op in FUNCTIONS)


def _called(node: tirx.Evaluate) -> tirx.Evaluate:
    call = node.value
    name = FUNCTIONS.get(call.op) if isinstance(call, Call) else None
    if name is None:
        return node
    if not call.op.same_as(COPY):
        return tirx.Evaluate(tirx.call_extern("int32", name, *call.args))
    queue, target, source, size_bytes, _bypass, *rows = call.args
    places = (_pointer(target), _pointer(source))
    return tirx.Evaluate(tirx.call_extern("int32", name if not rows else ROWS, queue, *places, size_bytes, *rows))


def _pointer(address: Call) -> Call:
    """Rewrite an address as an offset from the start of its buffer: TVM then knows that it may mean all of the buffer.

    TVM's passes take `address_of(buffer[i])` for an access to element i alone, and allocate no more of a buffer than
    what they see accessed.
    """
    element = address.args[0]
    offset_bytes = element.indices[0] * tvm.DataType(element.source.dtype).itemsize
    return Call("tirx.handle_add_byte_offset", [element.source.data, offset_bytes], ret_ty=address.ty)
