"""Caches at offsets of one allocation, as a plan of them says (`hexconv.analyze.arena`)."""

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.lower.lowered import Lowered

ARENA = "arena"


def place_in_arena(lowered: Lowered, offsets_bytes: Mapping[str, int], size_bytes: int) -> tvm.IRModule:
    """The module of a case with all caches in one arena.

    before:  cache = alloc_buffer(n); ...
    after:   arena = alloc_buffer(size, "uint8")
             cache = decl_buffer(n, data=arena + offset); ...

    Args:
        lowered: the case.
        offsets_bytes: where each cache starts, by its name.
        size_bytes: of the arena.
    """
    main = lowered.unmerged["main"]
    scopes = {cache.scope for cache in lowered.caches}
    assert len(scopes) == 1, f"one arena can't be in {scopes}"
    arena = tirx.decl_buffer((size_bytes,), "uint8", ARENA, scope=scopes.pop())

    def placed(node: tirx.AllocBuffer) -> tirx.DeclBuffer:
        cache = node.buffer
        offset = tirx.const(offsets_bytes[cache.name], "int32")
        start = Call("tirx.handle_add_byte_offset", [arena.data, offset], ret_ty=cache.data.ty)
        return tirx.DeclBuffer(cache, data=start)

    body = tvm_ffi.structural_map(main.body, (tirx.AllocBuffer, placed))
    steps = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    return tvm.IRModule({"main": main.with_body(tirx.SeqStmt([tirx.AllocBuffer(arena), *steps]))})
