"""Code shared by chains that differ in requantisation alone: compiled once, immediates set for each chain.

chain:          vasrwhrndsat(vmpyowh(..., 1705944960), ..., 9)
compiled once:  r18 = ##1294692121    r5 = ##1295026582
its own:        r18 = ##1705944960    r5 = ##9

The convs of a network's stage have one shape, and often one plan. Their multipliers, shifts and zero points are
operands of instructions of HVX, into whose meaning LLVM doesn't look: its assembly is the same whatever they are, but
for the numbers. Each gets a mark in its place, a number that nothing else has. Where LLVM has made another number near
a mark, be it from the mark or by chance, nothing is shared. The chain's name is marked too.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, StringImm
from tvm.target import codegen

from hexconv.errors import ToolMissing, Unsupported
from hexconv.lower.c_functions import Callable, best_way, compiled
from hexconv.lower.fewer_stalls import with_fewer_stalls
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.object_file import Refused, assembled, has_vectors, possible
from hexconv.run.simulator.made_files import cached, content_key, provenance
from hexconv.spec import Case
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of

_MULTIPLYING, _ADDING = ("vmpyewuh", "vmpyowh.rnd.sacc", "vmpyowh.sacc"), ("vasrwhrndsat", "vaddhsat")
_MULTIPLIES, _ADDS = (
    frozenset(codegen.llvm_lookup_intrinsic_id(f"llvm.hexagon.V6.{name}.128B") for name in names)
    for names in (_MULTIPLYING, _ADDING)
)
"""LLVM's numbers of instructions whose last operand may be a multiplier, or else a shift or a zero point."""

_REACH = 1 << 16
"""LLVM makes one constant from another by adding a number below this one."""
_LARGEST_DIVISOR = 1 << 16
"""More than what code divides by: rows of rings, columns, blocks of channels."""


def _divides(number: int) -> bool:
    """Whether LLVM may multiply by a number where code divides by a constant: `2**k / constant`, rounded up or down."""
    powers = ((1 << bits, ((1 << bits) + number // 2) // number) for bits in range(30, 64))
    return any(abs(number * divisor - power) <= divisor for power, divisor in powers if divisor < _LARGEST_DIVISOR)


_MARKS = tuple(mark for mark in range(0x4D2B6F19, 0x5D2B6F19, 0x00051A7D) if not _divides(mark))
_NUMBER = re.compile(r"(##|\.word\s+|)(?<![\w.])(-?\d{10})\b")
_NAME = "NAME"
_ROOMS = ("lower", "tir", "kernel", "spec", "layout", "schedule", "build")


def without_scales(case: Case) -> str:
    """Return what a case is but for scales and limits of sums: chains of which this is the same may share code."""
    chain = asdict(case.chain)
    for conv in chain["conv"]:
        for name in ("filter_l1", "bias_limit", "sum_limit"):
            del conv[name]
        for name in ("multiplier", "shift", "zero_point") if conv["requantize"] else ():
            if isinstance(conv["requantize"][name], int):
                del conv["requantize"][name]
    return repr((chain, case.plan))


def compiled_once(functions: Callable, isa: str) -> bytes:
    """Compile functions for Hexagon as `hexconv.lower.c_functions.compiled` does, or set the immediates of kept code.

    Args:
        functions: the result of `callable_module`.
        isa: the instruction set.
    """
    marked = Marked.of(functions)
    # The cache can't be written; LLVM takes none but its own packets; or has no register for a mark.
    with suppress(ToolMissing, Refused, Unsupported):
        if marked.values and (text := marked.own_text(_kept(marked.functions, isa))):
            return assembled(text, hexagon_target(isa, functions.module))
    return compiled(functions, "hexagon", isa)


def _kept(functions: Callable, isa: str) -> str:
    """Return the assembly of marked functions, from the cache or made now; none where they have no vectors."""

    def build(path: Path) -> None:
        _, text, *_ = best_way(functions, isa)
        path.write_text(with_fewer_stalls(possible(text), isa) if has_vectors(text) else "")

    key = content_key(tvm.ir.save_json(functions.module), isa, provenance(_ROOMS))
    return cached("assembly", key, build).read_text(errors="replace")


@dataclass(frozen=True)
class Marked:
    """Functions of a chain with marks in the place of its name and of its requantisation's constants.

    Attributes:
        functions: the functions, marked.
        name: the chain's own name.
        values: the constant that each mark stands for.
    """

    functions: Callable
    name: str
    values: Mapping[int, int]

    @classmethod
    def of(cls, functions: Callable) -> "Marked":
        """Put marks into functions."""
        marks = _Marks(functions)
        made: dict[str, tirx.PrimFunc] = {}
        for name, function in functions.module.functions.items():
            body = tvm_ffi.structural_map(function.body, (Call, marks.marked))
            named = marks.renamed(name.name_hint)
            made[named] = tirx.PrimFunc(function.params, body, attrs=function.attrs).with_attr("global_symbol", named)
        return cls(replace(functions, module=tvm.IRModule(made), name=_NAME), functions.name, marks.values)

    def own_text(self, text: str) -> str:
        """Return assembly of the marked functions as the chain's own.

        Empty if a mark is nowhere in it, or if a number is near one, or is one where no immediate stands: LLVM has made
        something of the mark, or of a constant of its own, and the text doesn't say which.
        """
        found_marks, doubtful = set[int](), set[int]()

        def own(found: re.Match[str]) -> str:
            number = int(found[2])
            if number in self.values and found[1]:
                found_marks.add(number)
                return f"{found[1]}{self.values[number]}"
            if any(abs(abs(number) - mark) <= _REACH for mark in self.values):
                doubtful.add(number)
            return found[0]

        changed = re.sub(rf"\b{_NAME}(?=_)", self.name, _NUMBER.sub(own, text))
        return changed if found_marks == self.values.keys() and not doubtful else ""


class _Marks:
    """Marks for the name and the constants of a chain's functions, handed out one after the other."""

    def __init__(self, functions: Callable) -> None:
        blank = (Call, lambda call: call if _scale(call) is None else _with_scale(call, 0))
        rest = [tvm_ffi.structural_map(function.body, blank) for function in functions.module.functions.values()]
        numbers = {int(each.value) for body in rest for each in all_of(body, tirx.IntImm)}
        large = [number for number in numbers if number > _MARKS[0] - 2 * _REACH]
        self._free = (mark for mark in _MARKS if all(abs(mark - number) > 2 * _REACH for number in large))
        self._name = functions.name
        self._given: dict[tuple[int, ...], int] = {}
        self._multiplier = 0

    @property
    def values(self) -> dict[int, int]:
        """The constant that each mark stands for."""
        return {mark: constants[-1] for constants, mark in self._given.items() if mark != constants[-1]}

    def renamed(self, name: str) -> str:
        """Return the marked name of a function of the chain."""
        return _NAME + name.removeprefix(self._name)

    def marked(self, call: Call) -> Call:
        """Return a call of a marked function, or one with a mark as its last operand; any other stays as it is."""
        if isinstance(call.args[0], StringImm) and (called := call.args[0].value).startswith(f"{self._name}_"):
            return _with_arguments(call, [StringImm(self.renamed(called)), *call.args[1:]])
        if (value := _scale(call)) is None:
            return call
        return _with_scale(call, self._mark(value, is_multiplier=int(call.args[0].value) in _MULTIPLIES))

    def _mark(self, value: int, *, is_multiplier: bool) -> int:
        """Return the mark of a constant, or itself where all are taken; each conv has marks of its own."""
        if is_multiplier:
            self._multiplier = value
        key = (value,) if is_multiplier else (self._multiplier, value)
        if key not in self._given:
            self._given[key] = next(self._free, value)
        return self._given[key]


def _scale(call: Call) -> int | None:
    """Return the constant that a call scales by or adds as its last operand, in every lane."""
    if not isinstance(call.args[0], tirx.IntImm) or int(call.args[0].value) not in _MULTIPLIES | _ADDS:
        return None
    number = call.args[-1].value if isinstance(call.args[-1], tirx.Broadcast) else call.args[-1]
    return int(number.value) if isinstance(number, tirx.IntImm) else None


def _with_scale(call: Call, value: int) -> Call:
    """Return a call with another such constant."""
    last, number = call.args[-1], int32(value)
    operand = tirx.Broadcast(number, last.lanes) if isinstance(last, tirx.Broadcast) else number
    return _with_arguments(call, [*call.args[:-1], operand])


def _with_arguments(call: Call, arguments: Sequence[tirx.Expr]) -> Call:
    return Call(call.op, arguments, call.attrs, ret_ty=call.ty)
