"""Tell whether a packet has room for one more vector load, wherever the assembler puts its instructions.

A packet has four words (a long constant takes one more) and two accesses to memory, of which one may be a vector load.
Vector instructions share four units; a load takes any one that is left.
"""

import re

from hexconv.lower.packets.instruction import Instruction
from hexconv.lower.packets.listing import ALL, Line

WORDS, UNITS, MEMORY = 4, 4, 2

_PAIR = re.compile(r"\bv\d+:\d+")
_VECTOR_BY_VECTOR = re.compile(r"\(v\d+\.\w+, ?v\d+\.\w+\)")
"""Operands of a product of two vectors of bytes, which takes both multipliers before v69."""
_ALONE = ("vmemu", "vgather", "vscatter", "vhist", "vwhist", "vextract", "barrier", "isync", "syncht", "trap", "call")
_ON_MEMORY = ("dc", "l2", "alloc", "dealloc")


def has_room(line: Line) -> bool:
    """Whether a packet takes one more vector load; an instruction that must be alone in its packet leaves no room."""
    texts = [each.text for each in line.packet]
    if "mem_noshuf" in line.end or any(each.loads_vector or _is_alone(each) for each in line.packet):
        return False
    words = sum(1 + ("##" in text) for text in texts)
    accesses = sum("mem" in text or text.startswith(_ON_MEMORY) for text in texts)
    return words < WORDS and accesses < MEMORY and sum(map(_units, line.packet)) < UNITS


def _is_alone(each: Instruction) -> bool:
    return each.operation.startswith(_ALONE)


def _units(each: Instruction) -> int:
    """Count the vector units that an instruction takes at most: two for pairs of registers and wide products.

    A product of two vectors takes two as well, while one of a vector and a scalar takes one. A lookup that adds to
    earlier results takes the unit of shifts beside that of permutations.
    """
    if not any(register in ALL for register in each.reads | each.writes):
        return 0
    is_wide = each.operation.startswith(("vmpy", "vdmpy", "vmpa", "vtmpy", "vdsad"))
    is_wide |= each.operation.startswith("vlut") and bool(each.accumulates)
    is_wide |= each.operation.startswith("vrmpy") and _VECTOR_BY_VECTOR.search(each.text) is not None
    return 2 if is_wide or _PAIR.search(each.text) else 1
