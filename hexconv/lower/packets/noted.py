"""Make assembly report the address of each scalar load, so that loads from VTCM can be counted.

before:  { r5:4 = memd(r7+#8); v1 = vmem(r9++#1) }

after:   { jump .Lnote0 }
         .Lnoted0:
         { r5:4 = memd(r7+#8); v1 = vmem(r9++#1) }

and behind all other code, since some jumps reach no further than a few packets:

         .Lnote0:
         { r29 = add(r29,#-24) }
         { memd(r29+#0) = r1:0; memw(r29+#8) = r31 }
         { r0 = add(r7,#8) }                                the address
         { call hexconv_note_load }                         the harness counts the address if it lies in VTCM
         { r1:0 = memd(r29+#0); r31 = memw(r29+#8) }
         { r29 = add(r29,#24) }
         { jump .Lnoted0 }

The result does what the text does, in more packets. A guarded load is noted under its guard. Where a compare in the
same packet decides the guard, the compare runs before the note, too. Loads from the stack and from fixed addresses
don't read VTCM, and aren't noted.
"""

import re
from collections.abc import Iterator

from hexconv.lower.packets.instruction import Instruction, instruction

NOTE = "hexconv_note_load"
_ADDRESS = re.compile(r"\bmem\w*\((r\d+)(?:\+(r\d+)<<(#\d+)|\+(##?-?\w+)|\+\+.*)?\)")
_FIXED = re.compile(r"\bmem\w*\((#|gp\b|r\d+=|r\d+<<)")
_GUARD = re.compile(r"^if \((!?)(p\d)(\.new)?\)")
_COPIES = re.compile(r"\bcall\s+\w*mem(cpy|move)")
_STACK = ("r29", "r30")
_BEFORE = ("{ r29 = add(r29,#-24) }", "{ memd(r29+#0) = r1:0; memw(r29+#8) = r31 }")
_AFTER = ("{ r1:0 = memd(r29+#0); r31 = memw(r29+#8) }", "{ r29 = add(r29,#24) }")


class NotFollowed(Exception):
    """A load can't be noted: its address can't be told, or a library executes it."""


def with_notes(text: str) -> str:
    """Add code to assembly that notes each scalar load before its packet.

    Raises:
        NotFollowed: some load can't be noted; the text says which.
    """
    if copied := _COPIES.search(text):
        raise NotFollowed(copied[0])
    lines, behind = list[str](), list[str]()
    packet: list[str] | None = None
    for line in text.splitlines():
        if line.strip() == "{":
            packet = []
        elif packet is not None and line.lstrip().startswith("}"):
            if notes := list(_notes([instruction(each) for each in packet])):
                number = len(behind)
                lines += [f"\t{{ jump .Lnote{number} }}", f".Lnoted{number}:"]
                behind += ["\n\t".join([f".Lnote{number}:", *notes, f"{{ jump .Lnoted{number} }}"])]
            lines += ["\t{", *packet, line]
            packet = None
        elif packet is not None:
            packet.append(line)
        else:
            lines.append(line)
    return "\n".join([*lines, "\t.text", *behind, ""])


def _notes(packet: list[Instruction]) -> Iterator[str]:
    """Yield packets that note the loads of a packet."""
    for load in (each for each in packet if each.loads_scalar):
        if address := _address(load):
            guard = _GUARD.match(load.text)
            yield from _BEFORE
            yield from _guarded(packet, address, *guard.groups()) if guard else (f"{{ r0 = {address} }}",)
            yield f"{{ call {NOTE} }}"
            yield from _AFTER


def _guarded(packet: list[Instruction], address: str, no: str, predicate: str, new: str | None) -> Iterator[str]:
    """Yield packets that compute the address, or 0 where the load does nothing."""
    chosen = (f"{{ r31 = {address} }}", "{ r0 = #0 }", f"{{ if ({no}{predicate}) r0 = r31 }}")
    if new is None:
        yield from chosen
        return
    deciding = [each for each in packet if predicate in each.writes]
    if any(".new" in each.text or each.stores or each.forwards for each in deciding):
        raise NotFollowed(deciding[0].text)
    yield from ("{ r31 = p3:0 }", "{ memw(r29+#12) = r31 }")
    yield f"{{ {'; '.join(each.text for each in deciding)} }}"
    yield from (*chosen, "{ r31 = memw(r29+#12) }", "{ p3:0 = r31 }")


def _address(load: Instruction) -> str | None:
    """Return the sum that gives the address of a load; None where the address can't lie in VTCM."""
    if _FIXED.search(load.text):
        return None
    found = _ADDRESS.search(load.text)
    if found is None:
        raise NotFollowed(load.text)
    base, index, shift, offset = found.groups()
    if base in _STACK:
        return None
    return f"addasl({base},{index},{shift})" if index else f"add({base},{offset or '#0'})"
