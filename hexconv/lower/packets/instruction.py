"""Read packets of Hexagon instructions from assembly text: what each instruction reads and writes.

LLVM's assembly and QEMU's disassembly write the same language, LLVM in small letters, QEMU in capitals:

    v15.uw += vrmpy(v18.ub,r8.ub)       reads v18, r8 and v15 (as an accumulator), writes v15
    v17.cur = vmem(r25++#1)             reads r25, writes v17 and r25
    if (q0) vmem(r2+#0) = v3            reads q0, r2, v3

Registers are named as singles: `v5:4` is `v4` and `v5`.
"""

import re
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

_REGISTERS = re.compile(r"\b([vrqpm])(\d+)(?::(\d+))?(?![\w:])")
_GUARD = re.compile(r"^if \(([^)]*)\)\s*")
_OPERATION = re.compile(r"^[!~]?([a-z]\w*)")
_MOVED_BASE = re.compile(r"\b(r\d+)\+\+|\((r\d+)=")
_MEMORY = re.compile(r"^v?mem\w*")
_EXCHANGED = ("vshuff", "vdeal", "vswap")
_INTO = ("vinsert", "vasrinto", "insert", "tableidx")
"""Operations that change a part of their target, and keep the rest."""


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        text: the instruction as it was written.
        operation: `vrmpy`, `vmem`, `jump`; `=` where a register is copied.
        writes: registers that have other values behind the packet.
        accumulates: those written registers that are read too.
        reads: all other registers that are read.
        stores: whether it writes memory.
        forwards: a load whose value its own packet already gets (`.cur`, `.tmp`).
        is_guarded: whether it may do nothing.
    """

    text: str
    operation: str
    writes: frozenset[str]
    accumulates: frozenset[str]
    reads: frozenset[str]
    stores: bool
    forwards: bool
    is_guarded: bool

    @property
    def loads_vector(self) -> bool:
        """Whether it loads a vector register."""
        return self.operation.startswith("vmem") and not self.stores

    @property
    def loads_scalar(self) -> bool:
        """Whether it loads a scalar register, or a pair of them."""
        return self.operation.startswith("mem") and bool(self.writes)


Packet = tuple[Instruction, ...]


def packet(lines: list[str]) -> Packet:
    """Read a packet from its lines of text, with or without braces and ends of loops."""
    parts = (part for line in lines for part in _bare(line).split(";"))
    return tuple(instruction(part) for part in parts if part.strip())


def instruction(text: str) -> Instruction:
    """Read one instruction from its text; two of the same text are two objects.

    >>> read = instruction("v15.uw += vrmpy(v18.ub,r8.ub)")
    >>> read.operation, sorted(read.writes), sorted(read.accumulates), sorted(read.reads)
    ('vrmpy', ['v15'], ['v15'], ['r8', 'v18'])
    >>> sorted(instruction("v17 = vmem(r25++#1)").writes)
    ['r25', 'v17']
    >>> sorted(instruction("v2.w = vinsert(r5)").accumulates)
    ['v2']
    """
    return copy(_instruction(text.strip()))


@lru_cache(maxsize=1 << 16)
def _instruction(text: str) -> Instruction:
    """Read an instruction; code that a compiler unrolls says much the same again and again."""
    small = text.lower()
    guard = _GUARD.match(small)
    rest = small[guard.end() :] if guard else small
    target, sign, source = assignment(rest)
    moved = {name for pair in _MOVED_BASE.findall(rest) for name in pair if name}
    guards = _old(guard[1]) if guard else frozenset[str]()
    stores = bool(_MEMORY.match(target))
    if not sign or stores:  # a jump, an exchange, a store
        exchanged = _old(rest) if rest.startswith(_EXCHANGED) else frozenset[str]()
        vectors = frozenset(name for name in exchanged if name[0] == "v")
        reads = (_old(rest) | guards) - vectors
        operation = _operation(target if stores else rest)
        return Instruction(text, operation, vectors | moved, vectors, reads, stores, False, guard is not None)
    written = _registers(target)
    keeps = sign != "=" or source.startswith(_INTO)
    added = written if keeps else frozenset[str]()
    forwards = ".cur" in target or ".tmp" in target
    reads = _old(source) | guards
    return Instruction(text, _operation(source), written | moved, added, reads, False, forwards, guard is not None)


def _bare(line: str) -> str:
    """Strip braces, ends of loops and comments from a line of a packet."""
    line = line.split("//")[0].strip().lstrip("{").strip()
    return re.sub(r"}?\s*(:endloop\d*|:mem_noshuf|:mem_no_order)*\s*$", "", line.rstrip()).rstrip("} \t")


def assignment(text: str) -> tuple[str, str, str]:
    """Split `target += source` into target, sign and source; without a sign all of the text is the target."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "=" and depth == 0:
            first = place - 1 if text[place - 1] in "+-|&^" else place
            return text[:first].strip(), text[first : place + 1], text[place + 1 :].strip()
    return text, "", ""


def _operation(text: str) -> str:
    found = _OPERATION.match(text)
    if found is None or _REGISTERS.fullmatch(text.split(".")[0]):
        return "="
    return found[1]


def _registers(text: str) -> frozenset[str]:
    """Find every register in a text; a pair counts as two."""
    found: set[str] = set()
    for kind, one, other in _REGISTERS.findall(text):
        ends = (int(one), int(other or one))
        found |= {f"{kind}{number}" for number in range(min(ends), max(ends) + 1)}
    return frozenset(found)


def _old(text: str) -> frozenset[str]:
    """Find the registers whose values come from before the packet, not from the packet itself."""
    return _registers(re.sub(r"\b[vrqp]\d+(:\d+)?\.new", "", text))
