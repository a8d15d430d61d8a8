"""Mend assembly of LLVM: amounts in high registers, loops out of reach, loads of what is stored, stores over stores.

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

A loop's start is named by its distance from the packet that sets the loop up, at most 252 bytes; a longer one takes a
word more, which a packet of four words doesn't have. LLVM keeps to that, but packets that are added later move starts
away, and its assembler never ends where one is out of reach. Such a loop is set up in a packet of its own before:

    before:  { loop0(.LBB0_73,r3)           after:  { loop0(.LBB0_73,r3) }
               r1 = +mpyi(r2,#9)                    { r1 = +mpyi(r2,#9)
               r21 = add(r1,r16)                      r21 = add(r1,r16)
               r8 = memw(r29+#68) }                   r8 = memw(r29+#68) }

A packet marked `:mem_noshuf` loads and stores in the order in which both are written. Where the store comes first, QEMU
7.2 gives the load what was there before it all the same: a kernel that LLVM writes right then reads an old word of its
stack, and traps. QEMU 10 runs the same object file right. The load gets a packet of its own here, so that the kernel is
right in both:

    before:  { memw(r29+#3584) = r0                after:  { memw(r29+#3584) = r0 }
               r6 = memw(r29+#3584) } :mem_noshuf          { r6 = memw(r29+#3584) }

Kernels store whole vectors, some of whose bytes later stores of scalars replace: pixels over what was filled, the end
of a row over what lies behind a pixel. LLVM puts such a pair into one packet, where the vector comes last. It gets a
packet of its own ahead, unless the scalar goes to the stack, or both have the same base and share no byte:

    before:  { memd(r7+#-496) = r3:2               after:  { vmem(r7+#-4) = v0 }
               vmem(r7+#-4) = v0 }                         { memd(r7+#-496) = r3:2 }
"""

import re
from collections.abc import Iterator, Sequence

from hexconv.lower.assembly import Instruction, each_packet, instruction, whole

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


MARK = ":mem_noshuf"
_LOAD = re.compile(r"^\s*r(\d+)(?::(\d+))? = mem(?:u?[bh]|w|d)\((r\d+)([^)]*)\)\s*$")
_STORE = re.compile(r"^\s*mem[bhwd]\((r\d+)([^)]*)\) = ")
_WRITTEN = re.compile(r"^\s*(?:if \([^)]*\) )?r(\d+)(?::(\d+))? [-+|&^]?= ")
_LEAVES_ROUTINE = re.compile(r"\b(?:jump|jumpr|call|callr|dealloc_return)\b")


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
    leaves = "endloop" in end or any(_LEAVES_ROUTINE.search(line) for line in packet)
    return not (leaves or takes_new or written & (result | {int(base[1:])}))


VECTOR_BYTES = 128
_BYTES = {"b": 1, "h": 2, "w": 4, "d": 8}
_STORES_SCALAR = re.compile(r"^\s*(?:if \([^)]*\) )?mem([bhwd])\(([^)]*)\) [-+|&]?= ")
_STORES_VECTOR = re.compile(r"^\s*(?:if \([^)]*\) )?vmemu?\(([^)]*)\)(?::\w+)? = ")
_PLACE = re.compile(r"^(r\d+)(?:\+#(-?\d+))?$")
_ON_STACK = re.compile(r"^(?:r29|r30|sp|fp)\b")


def with_stores_in_order(text: str) -> str:
    """Return assembly that does the same on every simulator, in which no packet stores a byte twice.

    A packet whose vector can't go ahead stays as it is.
    """
    return each_packet(text, _stored_in_order)


def _stored_in_order(packet: Sequence[str], end: str) -> Sequence[str]:
    """Return a packet, and before it the vector store whose bytes a scalar one may replace."""
    vectors = [line for line in packet if _STORES_VECTOR.match(line)]
    if len(vectors) != 1 or not any(_may_share_bytes(line, vectors[0]) for line in packet):
        return whole(packet, end)
    (store,) = vectors
    part = [line for line in packet if line == store or _makes(line, store)]
    rest = [line for line in packet if line not in part]
    others = [instruction(line) for line in rest]
    if not all(_may_go_ahead(instruction(line), others) for line in part):
        return whole(packet, end)
    return (*whole(part, "\t}"), *whole(rest, end.replace(f" {MARK}", "")))


def _may_share_bytes(scalar: str, vector: str) -> bool:
    """Whether a line stores a scalar that may lie where a vector is stored to."""
    one, other = _STORES_SCALAR.match(scalar), _STORES_VECTOR.match(vector)
    if not one or not other or _ON_STACK.match(one[2]):
        return False
    place, begin = _PLACE.match(one[2]), _PLACE.match(other[1])
    if not place or not begin or place[1] != begin[1]:
        return True
    first, of_vector = int(place[2] or 0), VECTOR_BYTES * int(begin[2] or 0)
    return first < of_vector + VECTOR_BYTES and of_vector < first + _BYTES[one[1]]


def _makes(line: str, store: str) -> bool:
    """Whether a line makes the vector that a store takes within their packet."""
    return any(f"{name}.new" in store for name in instruction(line).writes)
