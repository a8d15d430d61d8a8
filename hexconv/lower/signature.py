"""The parameters that all functions of a chain have in C."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

ALIGNMENT_BYTES = 128
"""One HVX vector: every pointer that is passed starts at a multiple of it."""

NO_PACKED_API = 2
"""TVM's number of a calling convention whose functions its pass `MakePackedAPI` leaves alone."""

Pointer = tirx.Var


@dataclass(frozen=True)
class Signature:
    """The parameters that all functions of a chain have."""

    name: str
    buffers: tuple[tirx.Var, ...]
    arguments: tuple[Pointer, ...]
    caches: tuple[Pointer, ...]
    call: Pointer

    def function(self, name: str, body: tirx.Stmt, more: Sequence[tirx.Var] = ()) -> tirx.PrimFunc:
        """Build a function of these parameters and `more`."""
        views = [
            tirx.DeclBuffer(buffer, data=pointer) for buffer, pointer in zip(self.buffers, self.arguments, strict=True)
        ]
        whole = _aligned((*self.arguments, *self.caches), tirx.SeqStmt([*views, body]))
        function = tirx.PrimFunc([*self.arguments, *self.caches, self.call, *more], whole)
        # No `tirx.noalias`: by the types in TVM's code LLVM already knows caches apart. Told twice, LLVM keeps more
        # addresses in registers, and the loops of HVX kernels take a fifth more packets.
        return function.with_attr({"global_symbol": name, "calling_conv": NO_PACKED_API})


def _aligned(pointers: Sequence[Pointer], body: tirx.Stmt) -> tirx.Stmt:
    """Say of each pointer that it starts at a whole vector."""
    for pointer in reversed(pointers):
        body = tirx.AttrStmt(pointer, "storage_alignment", tirx.IntImm("int32", ALIGNMENT_BYTES), body)
    return body
