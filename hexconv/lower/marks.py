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

FUNCTION = "hexconv_part"


def with_marks(lowered: Lowered) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Put a mark in front of every part; return the module and the names of the parts by their numbers."""
    names: list[str] = []

    def marked(loop: tirx.For) -> tirx.Stmt:
        name = part_of(loop)
        if name is None:
            return loop
        if name not in names:
            names.append(name)
        call = tirx.call_extern("int32", FUNCTION, names.index(name))
        return tirx.SeqStmt([tirx.Evaluate(call), loop])

    main = lowered.labelled["main"]
    body = tvm_ffi.structural_map(main.body, (tirx.For, marked))
    return drop_annotations(tvm.IRModule({"main": main.with_body(body)})), tuple(names)
