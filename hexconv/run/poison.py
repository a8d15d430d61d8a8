"""Poison: what memory holds before a kernel writes it, around buffers and in caches, so that unwritten reads show.

The halfword 0xFFCC repeated is NaN as float16, bfloat16, float32 and float64, and -52, -1, -52, ... as bytes:
a kernel that reads memory it didn't write can't get a right answer by luck, and one that writes beside its
buffer is seen.
"""

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx

from hexconv.run.measurement import Array

HALFWORD = 0xFFCC  # as in simulator/harness/image.h
EVEN_BYTE, ODD_BYTE = HALFWORD & 0xFF, HALFWORD >> 8


def poison(memory: Array) -> None:
    """Fill a whole contiguous array, whatever its dtype.

    >>> a = np.zeros(2, np.float32)
    >>> poison(a)
    >>> bool(np.isnan(a).all())
    True
    """
    flat = memory.reshape(-1).view(np.uint8)
    flat[0::2] = EVEN_BYTE
    flat[1::2] = ODD_BYTE


def changed_bytes(memory: Array, start: int, stop: int) -> tuple[int, int] | None:
    """Return the first and the last byte of `memory[start:stop]` (uint8) that isn't poison any more; None if all are.

    >>> a = np.zeros(8, np.uint8)
    >>> poison(a)
    >>> changed_bytes(a, 1, 8) is None
    True
    >>> a[5] = 0
    >>> changed_bytes(a, 1, 8), changed_bytes(a, 1, 5)
    ((5, 5), None)
    """
    even = _where(memory, start + start % 2, stop, EVEN_BYTE)
    odd = _where(memory, start + 1 - start % 2, stop, ODD_BYTE)
    found = [places for places in (even, odd) if places is not None]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else None


def _where(memory: Array, start: int, stop: int, expected: int) -> tuple[int, int] | None:
    """Among every second byte from `start` on, return the first and the last that differ from `expected`."""
    different = memory[start:stop:2] != expected
    if not different.any():
        return None
    return start + 2 * int(different.argmax()), start + 2 * (len(different) - 1 - int(different[::-1].argmax()))


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
