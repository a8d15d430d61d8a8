"""Put marks into a module, so that each part of its nest tells the harness when it begins.

before:  for y in range(8):  # conv2d #1        after:  hexconv_part(1)
             ...                                        for y in range(8):
                                                            ...

A mark is a call, and takes some issue slots of the kernel; what happens inside of it isn't counted.
"""

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.lower.copies import part_of
from hexconv.lower.lowered import Lowered
from hexconv.lower.names import drop_annotations
from hexconv.schedule.parts import Part

FUNCTION = "hexconv_part"


def with_marks(lowered: Lowered) -> tuple[tvm.IRModule, tuple[Part, ...]]:
    """Put a mark in front of every part; return the module and the parts by their numbers."""
    parts: list[Part] = []

    def marked(loop: tirx.For) -> tirx.Stmt:
        part = part_of(loop)
        if part is None:
            return loop
        if part not in parts:
            parts.append(part)
        call = tirx.call_extern("int32", FUNCTION, parts.index(part))
        return tirx.SeqStmt([tirx.Evaluate(call), loop])

    main = lowered.labelled["main"]
    body = tvm_ffi.structural_map(main.body, (tirx.For, marked))
    return drop_annotations(tvm.IRModule({"main": main.with_body(body)})), tuple(parts)
