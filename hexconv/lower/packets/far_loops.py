"""Set loops up in packets with room for an address that is far.

A loop's start is named by its distance from the packet that sets the loop up, at most 252 bytes; a longer one takes a
word more, which a packet of four words doesn't have. LLVM keeps to that, but packets that are added later move starts
away, and its assembler never ends where one is out of reach. Such a loop is set up in a packet of its own before:

    before:  { loop0(.LBB0_73,r3)           after:  { loop0(.LBB0_73,r3) }
               r1 = +mpyi(r2,#9)                    { r1 = +mpyi(r2,#9)
               r21 = add(r1,r16)                      r21 = add(r1,r16)
               r8 = memw(r29+#68) }                   r8 = memw(r29+#68) }
"""

import re
from collections.abc import Iterator, Sequence

from hexconv.lower.packets.each import each_packet, whole

WORD_BYTES = 4
PACKET_WORDS = 4
REACHED_WORDS = 63
"""The most words from the packet that sets a loop up to the loop's start."""
_SETS_UP = re.compile(r"^\s*loop[01]\((\.\w+),")
_ALIGNS = re.compile(r"^\t\.p2align\t(\d+)")
_LABEL = re.compile(r"^(\.\w+):")


def with_loops_in_reach(text: str) -> str:
    """Return assembly that does the same, in which no whole packet sets a loop up whose start is out of reach."""
    far = iter(_are_far(text))
    return each_packet(text, lambda packet, end: _set_up(packet, end, far))


def _set_up(packet: Sequence[str], end: str, far: Iterator[bool]) -> Sequence[str]:
    """Return a packet, and before it those that set up its loops that are far."""
    loops = [line for line in packet if _SETS_UP.match(line) and next(far) and _words(packet) >= PACKET_WORDS]
    ahead = [line for loop in loops for line in whole([loop], "\t}")]
    return (*ahead, *whole([line for line in packet if line not in loops], end))


def _are_far(text: str) -> list[bool]:
    """Say for each loop that is set up whether its start is out of reach, in the order of the text."""
    starts: dict[str, int] = {}
    loops: list[tuple[str, int]] = []
    packet_start = words = 0
    for line in text.splitlines():
        if found := _LABEL.match(line):
            starts[found[1]] = words
        elif line.strip() == "{":
            packet_start = words
        elif found := _ALIGNS.match(line):
            words += max(0, (1 << int(found[1])) // WORD_BYTES - 1)
        elif line.startswith("\t\t"):
            words += _words([line])
            if found := _SETS_UP.match(line):
                loops.append((found[1], packet_start))
    return [abs(starts.get(label, place) - place) > REACHED_WORDS for label, place in loops]


def _words(packet: Sequence[str]) -> int:
    """Count the words of instructions; a constant of 32 bits takes one of its own."""
    return sum(1 + ("##" in line) for line in packet)
