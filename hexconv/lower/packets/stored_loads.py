"""Take packets apart that load what they store.

A packet marked `:mem_noshuf` loads and stores in the order in which both are written. Where the store comes first, QEMU
7.2 gives the load what was there before it all the same: a kernel that LLVM writes right then reads an old word of its
stack, and traps. QEMU 10 runs the same object file right. The load gets a packet of its own here, so that the kernel is
right in both:

    before:  { memw(r29+#3584) = r0                after:  { memw(r29+#3584) = r0 }
               r6 = memw(r29+#3584) } :mem_noshuf          { r6 = memw(r29+#3584) }
"""

import re
from collections.abc import Sequence

from hexconv.lower.packets.each import each_packet, whole

MARK = ":mem_noshuf"
_LOAD = re.compile(r"^\s*r(\d+)(?::(\d+))? = mem(?:u?[bh]|w|d)\((r\d+)([^)]*)\)\s*$")
_STORE = re.compile(r"^\s*mem[bhwd]\((r\d+)([^)]*)\) = ")
_WRITTEN = re.compile(r"^\s*(?:if \([^)]*\) )?r(\d+)(?::(\d+))? [-+|&^]?= ")
_LEAVES = re.compile(r"\b(?:jump|jumpr|call|callr|dealloc_return)\b")


def without_stored_loads(text: str) -> str:
    """Return assembly that does the same, in which no packet loads from the address that it stores to."""
    return each_packet(text, _apart) if MARK in text else text


def _apart(packet: Sequence[str], end: str) -> Sequence[str]:
    """Return a packet whose load comes after it; the packet as it is where there is no such load, or no way."""
    stored: set[tuple[str, ...]] = set()
    loads: list[str] = []
    for line in packet:
        if store := _STORE.match(line):
            stored.add(store.groups())
        elif (load := _LOAD.match(line)) and load.groups()[2:] in stored:
            loads.append(line)
    if MARK not in end or len(loads) != 1 or not _may_follow(loads[0], packet, end):
        return whole(packet, end)
    others = [line for line in packet if line is not loads[0]]
    return (*whole(others, end.replace(f" {MARK}", "")), *whole(loads, "\t}"))


def _may_follow(load: str, packet: Sequence[str], end: str) -> bool:
    """Whether a load may follow its packet: nothing there leaves, changes its base, or takes or makes its result."""
    found = _LOAD.match(load)
    assert found
    first, second, base, _ = found.groups()
    result = {int(first), int(second)} if second else {int(first)}
    others = [line for line in packet if line is not load]
    written = {int(number) for line in others if (made := _WRITTEN.match(line)) for number in made.groups() if number}
    takes_new = any(f"r{number}.new" in line for number in result for line in others)
    leaves = "endloop" in end or any(_LEAVES.search(line) for line in packet)
    return not (leaves or takes_new or written & (result | {int(base[1:])}))
