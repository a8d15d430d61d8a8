"""Move amounts of bytes into registers that their instructions can name.

An instruction such as `valign(v1,v0,r2)` has three bits for its scalar register: r0 to r7. LLVM 22 sometimes leaves the
amount in a higher one. Its assembler refuses the text, but its own object file keeps the three lower bits, and so names
another register. This module exchanges the amount with a low register, before and after the packet:

    before:  { v0 = valign(v22,v13,r10) }       after:  { r0 = r10; r10 = r0 }
                                                        { v0 = valign(v22,v13,r0) }
                                                        { r0 = r10; r10 = r0 }

A packet that jumps or ends a loop has nothing behind it, one that has the amount in a pair of registers can't rename
it, and one exchange serves one amount. From such packets the instruction goes into a packet of its own, ahead of the
rest, with the load whose vector it gets within the packet:

    before:  { r9:8 = combine(#17,#15)          after:  { r0 = r9; r9 = r0 }
               v19 = valign(v12,v8,r9) }                { v19 = valign(v12,v8,r0) }
                                                        { r0 = r9; r9 = r0 }
                                                        { r9:8 = combine(#17,#15) }
"""

import re
from collections.abc import Iterator, Sequence

from hexconv.lower.packets.each import each_packet, whole
from hexconv.lower.packets.instruction import Instruction, instruction

_VECTOR = r"v\d+(?::\d+)?(?:\.\w+)?"
_AMOUNT = re.compile(rf"\b(?:vl?align|vasr|vshuff|vdeal|vlut32|vlut16)\({_VECTOR},{_VECTOR},r(\d+)\)")
_SCALAR = re.compile(r"\br(\d+)(?::(\d+))?\b")
_LOW = range(8)
_LEAVES = re.compile(r"\b(?:jump|jumpr|call|callr|dealloc_return)\b")


class NoLowRegister(Exception):
    """A packet whose amount cannot be moved into a register that its instruction names, in one line."""


def with_low_registers(text: str) -> str:
    """Return assembly that does the same, and that an assembler takes.

    Raises:
        NoLowRegister: such an instruction can't leave its packet: others of the packet read what it overwrites, or it
            gets what they make within the packet.
    """
    return each_packet(text, _lowered)


def _lowered(packet: Sequence[str], end: str) -> Iterator[str]:
    """Yield the lines of a packet whose amounts are in low registers, and the exchanges around it."""
    high = {number for line in packet for number in _amounts(line) if number not in _LOW}
    if not high:
        yield from whole(packet, end)
        return
    single, paired = _mentioned(packet)
    free = [number for number in _LOW if number not in single | paired]
    leaves = "endloop" in end or any(_LEAVES.search(line) for line in packet)
    if not leaves and free and len(high) == 1 and not high & paired:
        yield from _exchanged(packet, end, high.pop(), free[0])
        return
    *first, rest = _split(packet, end)
    for some in first:
        yield from _lowered(some, "\t}")
    yield from whole(rest or ["\t\tnop"], end)


def _exchanged(packet: Sequence[str], end: str, number: int, low: int) -> Iterator[str]:
    """Yield a packet that names register `low` for register `number`, which change places meanwhile."""
    exchange = ("\t{", f"\t\tr{low} = r{number}", f"\t\tr{number} = r{low}", "\t}")
    named = (re.sub(rf"\br{number}\b", f"r{low}", line) for line in packet)
    yield from (*exchange, "\t{", *named, end, *exchange)


def _split(packet: Sequence[str], end: str) -> list[list[str]]:
    """Split a packet into one for each instruction with a high amount, in order, and one of the rest.

    Raises:
        NoLowRegister: an instruction can't leave the packet.
    """
    rest, parts = list(packet), []
    for line in [line for line in packet if any(number not in _LOW for number in _amounts(line))]:
        moved = instruction(line)
        part = [each for each in rest if each == line or _hands_to(instruction(each), moved)]
        rest = [each for each in rest if each not in part]
        others = [instruction(each) for each in rest]
        if not all(_may_go_ahead(instruction(each), others) for each in part):
            raise NoLowRegister(f"{'; '.join(line.strip() for line in packet)} {end.strip()}")
        made = "|".join(name for each in part for name in instruction(each).writes)
        rest = [re.sub(rf"\b({made})\.new\b", r"\1", each) for each in rest]
        parts.append(part)
    return [*parts, rest]


def _hands_to(load: Instruction, reader: Instruction) -> bool:
    """Whether a load gives its vector to a reader within their packet."""
    return load.forwards and bool(load.writes & reader.reads)


def _may_go_ahead(moved: Instruction, others: Sequence[Instruction]) -> bool:
    """Whether an instruction does the same in a packet ahead of the others of its packet.

    Others then see what it writes: none may want what was there before. Those that take its result within the packet
    want it (`.new`, `.cur`), unless no register keeps it (`.tmp`).
    """
    wanted = {name for name in moved.writes if name[0] == "v"} if ".cur" in moved.text else frozenset[str]()
    seen = moved.writes - wanted
    return not moved.is_guarded and not any(seen & (other.reads | other.accumulates) for other in others)


def _amounts(line: str) -> Iterator[int]:
    """Yield the registers of the amounts in a line."""
    return (int(found.group(1)) for found in _AMOUNT.finditer(line))


def _mentioned(packet: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return the scalar registers that a packet mentions: alone, and as part of a pair."""
    single: set[int] = set()
    paired: set[int] = set()
    for first, second in (found for line in packet for found in _SCALAR.findall(line)):
        numbers = {int(first), int(second)} if second else {int(first)}
        (paired if second else single).update(numbers)
    return single, paired
