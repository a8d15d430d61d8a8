"""Let the engine copy: the copies in a group become `dma_copy`, of one row or of many at equal distances."""

from collections.abc import Mapping
from functools import partial

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Range
from tvm.sym import Analyzer

from hexconv.lower import queues
from hexconv.lower.transfers.mover import Filler, Mover
from hexconv.lower.transfers.run import Fill, Run, is_one, itemsize
from hexconv.lower.transfers.taken_apart import ranges_of, taken_apart


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
            It writes other bytes than the copies do, in a slot that nothing reads yet.
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
                steps += taken_apart(step, Mover(copied, filler, known, has_alternatives))
        return tirx.SeqStmt(steps)

    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.SeqStmt, grouped)))})


def _started(run: Run, queue: int, ranges: Analyzer) -> tirx.Stmt:
    """Start one copy, of one row or of many, if there is any row."""
    target, source = (_address(*place) for place in (run.target, run.source))
    size = itemsize(run.target[0])
    size_bytes = Analyzer().simplify(run.elements * size)
    rows = () if is_one(run.count) else (run.count, *(step * size for step in run.steps))
    started = queues.copy(queue, target, source, size_bytes, *rows)
    doubtful = [amount > 0 for amount in (run.elements, run.count) if not ranges.can_prove(amount > 0)]
    return tirx.IfThenElse(tirx.all(*doubtful), started, None) if doubtful else started


def _address(buffer: tirx.Var, index: tirx.Expr) -> tirx.Expr:
    return Call("tirx.address_of", [tirx.BufferLoad(buffer, [Analyzer().simplify(index)])], ret_ty=buffer.data.ty)
