"""Move amounts of bytes into registers that their instructions can name.

An instruction such as `valign(v1,v0,r2)` has three bits for its scalar register: r0 to r7. LLVM 22 sometimes leaves the
amount in a higher one. Its assembler refuses the text, but its own object file keeps the three lower bits, and so names
another register. This module exchanges the amount with a low register, before and after the packet:

    before:  { v0 = valign(v22,v13,r10) }       after:  { r0 = r10; r10 = r0 }
                                                        { v0 = valign(v22,v13,r0) }
                                                        { r0 = r10; r10 = r0 }
"""

import re
from collections.abc import Iterator, Sequence

from hexconv.lower.packets.each import each_packet, whole

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
        NoLowRegister: a packet with such an amount jumps, or has no low register to spare.
    """
    return each_packet(text, _lowered)


def _lowered(packet: Sequence[str], end: str) -> Iterator[str]:
    """Yield the lines of a packet whose amount is in a low register, and the exchanges around it."""
    high = sorted({number for line in packet for number in _amounts(line) if number not in _LOW})
    if not high:
        yield from whole(packet, end)
        return
    single, paired = _mentioned(packet)
    free = [number for number in _LOW if number not in single | paired]
    leaves = "endloop" in end or any(_LEAVES.search(line) for line in packet)
    if leaves or not free or len(high) > 1 or high[0] in paired:
        raise NoLowRegister(f"{'; '.join(line.strip() for line in packet)} {end.strip()}")
    number, low = high[0], free[0]
    exchange = ("\t{", f"\t\tr{low} = r{number}", f"\t\tr{number} = r{low}", "\t}")
    named = (re.sub(rf"\br{number}\b", f"r{low}", line) for line in packet)
    yield from (*exchange, "\t{", *named, end, *exchange)


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
