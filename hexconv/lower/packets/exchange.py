"""Exchange products that wait for a load with later products that don't.

    before: { v18 = vmem(r5+#-2) }                          after: { v18 = vmem(r5+#-2) }
            { v3.uw += vrmpy(v18.ub,r2.ub) }                       { v6.uw += vrmpy(v20.ub,r3.ub) }
            { v6.uw += vrmpy(v20.ub,r3.ub) }                       { v3.uw += vrmpy(v18.ub,r2.ub) }

Both instructions are the same operation, so each packet takes as many slots and units as before. Nothing between the
two writes a register that either reads, and nothing between them reads or writes a register that either writes.
"""

from collections.abc import Iterator, Sequence

from hexconv.lower.packets.instruction import Instruction
from hexconv.lower.packets.listing import Line, with_packet

FARTHEST = 12
"""The most packets from one product to the other."""

OPERATIONS = ("vrmpy",)


def exchanges(lines: Sequence[Line], place: int, waiting: Instruction) -> Iterator[list[Line]]:
    """Yield the lines with an instruction of packet `place` exchanged with one of a later packet; the nearest first."""
    if waiting.operation not in OPERATIONS or waiting.is_guarded:
        return
    for other in range(place + 1, min(len(lines), place + 1 + FARTHEST)):
        for each in lines[other].packet:
            if _is_like(each, waiting) and _may_change_places(lines[place : other + 1], waiting, each):
                changed = list(lines)
                changed[place] = _replaced(lines[place], waiting, each)
                changed[other] = _replaced(lines[other], each, waiting)
                yield changed


def _is_like(each: Instruction, other: Instruction) -> bool:
    """Whether two instructions take the same slots and units: the same operation on registers of the same kinds."""
    return each.operation == other.operation and not each.is_guarded and _shape(each) == _shape(other)


def _shape(each: Instruction) -> list[str]:
    return [name[0] for names in (each.writes, each.accumulates, each.reads) for name in sorted(names)]


def _may_change_places(lines: Sequence[Line], first: Instruction, second: Instruction) -> bool:
    """Whether the first instruction may run in the last of these packets, and the second in the first of them."""
    written, read = first.writes | second.writes, first.reads | second.reads
    if first.writes & second.writes or written & read:
        return False
    return all(
        _leaves_alone(each, written, read, is_first=line is lines[0], is_last=line is lines[-1])
        for line in lines
        for each in line.packet
        if each is not first and each is not second
    )


def _leaves_alone(
    each: Instruction, written: frozenset[str], read: frozenset[str], *, is_first: bool, is_last: bool
) -> bool:
    """Whether an instruction sees and leaves the same registers after the two others have changed places."""
    if each.writes & written or any(f"{register}.new" in each.text for register in written):
        return False
    if not is_first and each.reads & written:
        return False
    return not each.writes & read or (is_last and not each.forwards)


def _replaced(line: Line, old: Instruction, new: Instruction) -> Line:
    return with_packet(line, tuple(new if each is old else each for each in line.packet))
