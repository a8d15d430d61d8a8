"""Fill caches with poison at the start, so that a kernel that reads what it never wrote can't be right by luck."""

import tvm
import tvm_ffi
from tvm import tirx

POISON_BITS = {8: 0xCC, 16: 0xFFCC, 32: 0xFFCCFFCC, 64: 0x7FCCFFCCFFCCFFCC}
"""NaN as a float, an unlikely number as an integer."""


def poison_caches(module: tvm.IRModule) -> tvm.IRModule:
    """Fill every cache with poison wherever it is allocated.

    before:  cache = alloc_buffer(n); ...
    after:   cache = alloc_buffer(n); for i in range(n): cache[i] = poison; ...
    """
    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (tirx.SeqStmt, _filled))
    return tvm.IRModule({"main": main.with_body(body)})


def _filled(sequence: tirx.SeqStmt) -> tirx.SeqStmt:
    """Put a fill behind each allocation of a sequence."""
    steps = [part for step in sequence.seq for part in (step, *_fill(step))]
    return tirx.SeqStmt(steps) if len(steps) > len(sequence.seq) else sequence


def _fill(step: tirx.Stmt) -> tuple[tirx.Stmt, ...]:
    """Return the loop that fills what `step` allocates, if it allocates."""
    if not isinstance(step, tirx.AllocBuffer):
        return ()
    buffer = step.buffer
    index = tirx.Var("i", "int32")
    bits = tirx.const(POISON_BITS[tvm.DataType(buffer.dtype).bits], f"uint{tvm.DataType(buffer.dtype).bits}")
    store = tirx.BufferStore(buffer, tirx.reinterpret(buffer.dtype, bits), [index])
    return (tirx.For(index, 0, buffer.shape[0], tirx.ForKind.SERIAL, store),)
