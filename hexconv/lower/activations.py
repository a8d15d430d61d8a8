"""Put the arithmetic of activations in the place of the calls that stand for them.

before:  output[i] = hexconv_silu(sums[i] + bias[k], slope, offset)
after:   register_x = sums[i] + bias[k]
         ...
         output[i] = register_x * register_inverse

Values that are used several times lie in buffers of one element, which LLVM keeps in registers: TVM's passes look
through variables, but not through buffers, and take no longer than the arithmetic is.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.compute.activations import CALLED, FUNCTIONS, activated
from hexconv.schedule.block import int32, scalar_register

NAMES = {f"{CALLED}{name}": name for name in FUNCTIONS}


def with_arithmetic(module: tvm.IRModule) -> tvm.IRModule:
    """Replace every call that stands for an activation (no blocks)."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.BufferStore, _written_out)))})


def _written_out(store: tirx.BufferStore) -> tirx.Stmt:
    """Return a store with the statements before it that compute what it stores."""
    statements: list[tirx.Stmt] = []

    def bind(name: str, value: tirx.Expr) -> tirx.Expr:
        register = scalar_register(name, "float32")
        statements.extend([tirx.AllocBuffer(register), tirx.BufferStore(register, value, [int32(0)])])
        return tirx.BufferLoad(register, [int32(0)])

    def replaced(call: Call) -> tirx.Expr:
        name = _name(call)
        return activated(name, *call.args[1:], bind=bind) if name else call

    value = tvm_ffi.structural_map(store.value, (Call, replaced))
    return tirx.SeqStmt([*statements, tirx.BufferStore(store.buffer, value, store.indices)]) if statements else store


def _name(call: Call) -> str:
    """The activation that a call stands for; empty for any other call."""
    return NAMES.get(call.args[0].value, "") if call.op.name == "tirx.call_pure_extern" else ""
