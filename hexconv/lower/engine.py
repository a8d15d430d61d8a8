"""Replace TVM's builtins for copies by calls of this project's copy engine (run/simulator/harness/copies.c).

before:  dma_copy(q, target, source, bytes, bypass)           after:  hexconv_copy(q, target, source, bytes)
         dma_copy(..., rows, target step, source step)                hexconv_copy_rows(..., rows, steps)
         dma_start_group(q); dma_end_group(q)                         hexconv_start_group(q); hexconv_end_group(q)
         dma_wait(q, k)                                               hexconv_wait(q, k)

TVM itself lowers the builtins to packed functions of the device (`device_api.hexagon.dma_copy`, ...), which only its
runtime for Hexagon has.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.lower import queues
from hexconv.schedule.trees import all_of

FUNCTIONS = {
    queues.COPY: "hexconv_copy",
    queues.START: "hexconv_start_group",
    queues.END: "hexconv_end_group",
    queues.WAIT: "hexconv_wait",
}

ROWS = "hexconv_copy_rows"


def call_engine(module: tvm.IRModule) -> tvm.IRModule:
    """Replace a module's builtins for copies by calls of the copy engine."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.Evaluate, _called)))})


def needs_engine(module: tvm.IRModule) -> bool:
    """Whether a module copies asynchronously."""
    statements = all_of(module["main"].body, tirx.Evaluate)
    return any(queues.queue_of(statement, op) is not None for statement in statements for op in FUNCTIONS)


def _called(node: tirx.Evaluate) -> tirx.Evaluate:
    call = node.value
    name = FUNCTIONS.get(call.op) if isinstance(call, Call) else None
    if name is None:
        return node
    if not call.op.same_as(queues.COPY):
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
