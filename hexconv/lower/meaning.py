"""Tell what one run of a statement moves and multiplies.

    input_cache[...] = input[...]                                      an element of the input, copied in
    weights = filter1_flat[T.Ramp(..., 1, 128)]                        128 bytes of filter 1
    output[...] = ...                                                  copied out
    output[...] = output[...] + input_cache[...] * filter1_cache[...]  a multiply-accumulate of conv 1
    vrmpyub.acc(total, weights, word)                                  4 multiply-accumulates in each of 32 lanes

Of an argument that is read in place every load counts, however often it comes to the same element; so does every load
and every store of a kernel in a cache that lies outside of VTCM while others lie in it. An instruction that
sums instead of multiplying (words of ones for a zero point) is a multiply-accumulate as any other: it takes as long.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.target import codegen

from hexconv.lower.buffers import Held, held_by
from hexconv.lower.guards import IF_THEN_ELSE
from hexconv.lower.vtcm import SCOPE
from hexconv.schedule.trees import all_of, buffers_in
from hexconv.spec.names import conv_name
from hexconv.spec.roles import BUFFER_ROLES, roles_multiplied_as

PRODUCTS_OF_LANE = {
    "llvm.hexagon.V6.vrmpy": 4,
    "llvm.hexagon.M5.vrmac": 8,
    "llvm.hexagon.V6.vdmpy": 2,
    "llvm.fmuladd": 1,
}
"""Instructions that multiply and add, by how their names begin: products that a lane of the result adds up."""

INTRINSIC = "tirx.call_llvm_pure_intrin"

HELD = tuple(role for role, known in BUFFER_ROLES.items() if known.holds_elements)
"""Roles of the buffers that hold elements."""

COPIED_TO = ("input", "filter")
"""Roles of the buffers that only copies write."""

FILTERS, SOURCES = roles_multiplied_as("filter"), roles_multiplied_as("source")
"""Roles of what a conv multiplies."""

Work = Counter[str]
"""Bytes by argument and by cache outside of VTCM, multiply-accumulates by conv."""


@dataclass(frozen=True)
class Meaning:
    """The buffers and bound values of a module, from which the work of its statements follows.

    Attributes:
        tensors: the arguments that have caches, by the variables of these and of views of them.
        outside: the names of caches outside of VTCM, by variable; none unless other caches lie in VTCM.
        sources: for every bound value, what the buffers hold that it was loaded from.
    """

    tensors: dict[tirx.Var, tirx.Var]
    outside: dict[tirx.Var, str]
    sources: dict[tirx.Var, frozenset[Held]]

    @classmethod
    def of(cls, main: tirx.PrimFunc) -> "Meaning":
        """Read the buffers and bound values of a module's function."""
        tensors = {argument: argument for argument in main.params if held_by(argument).is_copied}
        for view in all_of(main.body, tirx.DeclBuffer):
            argument = view.data.args[0] if isinstance(view.data, Call) else view.data
            if argument in tensors:
                tensors[view.buffer] = tensors[argument]
        meaning = cls(tensors, outside_of(main), {})
        for bind in all_of(main.body, tirx.Bind):
            meaning.sources[bind.var] = meaning._loaded(bind.value)
        return meaning

    def work(self, statement: "tirx.BufferStore | tirx.Bind") -> Work:
        """Count the bytes that one run of a statement moves, and its multiply-accumulates."""
        value, work = statement.value, Work()
        stored = statement.buffer if isinstance(statement, tirx.BufferStore) else None
        if stored in self.tensors:
            work[str(self.tensors[stored].name)] += _bytes(value.ty)
        elif stored in self.outside and held_by(stored).role not in COPIED_TO:
            work[self.outside[stored]] += _bytes(value.ty)
        multiplied: set[str] = set()
        for load in all_of(value, TensorLoad):
            if load.source in self.outside and stored not in self.tensors:
                work[self.outside[load.source]] += _bytes(load.ty)
            if load.source in self.tensors:
                work[str(self.tensors[load.source].name)] += _bytes(load.ty)
            elif stored is not None and not load.source.same_as(stored) and _lanes(load.ty) == 1:
                multiplied.update(_readers([held_by(load.source)], FILTERS))
        work.update(multiplied)  # counted once, though both bytes of a weight may be loaded
        for call in all_of(value, Call):
            assert not call.op.same_as(IF_THEN_ELSE), "guards are statements by now"
            if products := _products(call):
                work[self._conv(call)] += products
        return work

    def _loaded(self, value: tirx.Expr) -> frozenset[Held]:
        """Say what the buffers hold that a value was loaded from, directly or by way of bound values."""
        found: set[Held] = set()
        for variable in all_of(value, tirx.Var):
            found |= self.sources.get(variable) or {held_by(self.tensors.get(variable, variable))}
        return frozenset(found)

    def _conv(self, call: Call) -> str:
        """Name the conv whose filter or whose source an instruction multiplies."""
        held = self._loaded(call)
        convs = _readers(held, FILTERS) or _readers(held, SOURCES)
        assert len(convs) == 1, f"{call} multiplies for {sorted(convs)}"
        return convs.pop()


def outside_of(main: tirx.PrimFunc) -> dict[tirx.Var, str]:
    """Name the caches of a function that lie outside of VTCM; return none unless other caches lie in VTCM."""
    found = buffers_in(main.body)
    outside = {buffer: str(buffer.name) for buffer in found if buffer.scope() != SCOPE}
    kept = {buffer: name for buffer, name in outside.items() if held_by(buffer).role in HELD}
    return kept if len(outside) < len(found) else {}


def _readers(held: Iterable[Held], roles: Sequence[str]) -> set[str]:
    """Name the convs that read what buffers hold, if its role is one of `roles`."""
    return {conv_name(each.reader) for each in held if each.role in roles}


def _products(call: Call) -> int:
    """Count the products that a call adds up, in all lanes; 0 for a call that does something else."""
    if call.op.name != INTRINSIC:
        return 0
    name = _intrinsic(int(call.args[0]))
    return next((_lanes(call.ty) * each for start, each in PRODUCTS_OF_LANE.items() if name.startswith(start)), 0)


@cache
def _intrinsic(number: int) -> str:
    return str(codegen.llvm_get_intrinsic_name(number))


def _lanes(ty: object) -> int:
    return tvm.DataType(str(ty)).lanes


def _bytes(ty: object) -> int:
    dtype = tvm.DataType(str(ty))
    return dtype.bits * dtype.lanes // 8
