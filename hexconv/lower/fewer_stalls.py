"""Remove stalls from LLVM's packets: loads into earlier packets, products exchanged, where that costs nothing.

LLVM's scheduler knows how long a load takes, but packets are put together after it, and loads go down into the last
packet that has room. Two kinds of change cure that and add no packet: a load moves up by a few packets
(`hexconv.lower.fewer_stalls`), or a product that doesn't wait takes the place of one that does
(`hexconv.lower.fewer_stalls`). A change is kept if it saves a slot. Code that can't be followed stays as it is.

before: { v4.uw += vrmpy(v18.ub,r0.ub) }        after:  { v4.uw += vrmpy(v18.ub,r0.ub)
            { v5.uw += vrmpy(v18.ub,r1.ub)                    v20 = vmem(r25+#1) }
              v18 = vmem(r25+#1) }                          { v5.uw += vrmpy(v18.ub,r1.ub) }
            { v6.uw += vrmpy(v18.ub,r2.ub) }                { v6.uw += vrmpy(v20.ub,r2.ub) }

A load moves into a packet that has room. If its register is still in use there, one of two values moves to a free
register: the value that is loaded, or the value that the register had before. Loads stay within their block, and behind
stores.

before: { v18 = vmem(r5+#-2) }                          after: { v18 = vmem(r5+#-2) }
            { v3.uw += vrmpy(v18.ub,r2.ub) }                       { v6.uw += vrmpy(v20.ub,r3.ub) }
            { v6.uw += vrmpy(v20.ub,r3.ub) }                       { v3.uw += vrmpy(v18.ub,r2.ub) }

Both instructions are the same operation, so each packet takes as many slots and units as before. Nothing between the
two writes a register that either reads, and nothing between them reads or writes a register that either writes.

A packet has four words (a long constant takes one more) and two accesses to memory, of which one may be a vector load.
Vector instructions share four units; a load takes any one that is left.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from hexconv.lower.assembly import (
    ALL,
    Block,
    Instruction,
    Line,
    assignment,
    instruction,
    killed,
    listing,
    needed_before,
    used,
    with_packet,
)
from hexconv.lower.stalls import stall, waits

WORDS, UNITS, MEMORY, MULTIPLIERS = 4, 4, 2, 2

_PAIR = re.compile(r"\bv\d+:\d+")
_VECTOR_BY_VECTOR = re.compile(r"\(v\d+\.\w+, ?v\d+\.\w+\)")
"""Operands of a product of two vectors of bytes, which takes both multipliers before v69."""
_ALONE = ("vmemu", "vgather", "vscatter", "vhist", "vwhist", "vextract", "barrier", "isync", "syncht", "trap", "call")
_WIDE = ("vmpy", "vdmpy", "vmpa", "vtmpy", "vdsad")
_PRODUCTS = (*_WIDE, "vrmpy")
_ON_MEMORY = ("dc", "l2", "alloc", "dealloc")


def has_room(line: Line) -> bool:
    """Whether a packet takes one more vector load; an instruction that must be alone in its packet leaves no room."""
    texts = [each.text for each in line.packet]
    if "mem_noshuf" in line.end or any(each.loads_vector or _is_alone(each) for each in line.packet):
        return False
    words = sum(1 + ("##" in text) for text in texts)
    accesses = sum("mem" in text or text.startswith(_ON_MEMORY) for text in texts)
    return words < WORDS and accesses < MEMORY and sum(map(_units, line.packet)) < UNITS


def least_packets(found: Iterable[Instruction]) -> int:
    """Return how many packets instructions take at least, by the words, accesses, stores and units of a packet."""
    texts = list(found)
    accesses = [each for each in texts if "mem" in each.text]
    products = sum(_units(each) for each in texts if each.operation.startswith(_PRODUCTS))
    takes = (
        (len(texts), WORDS),
        (len(accesses), MEMORY),
        (sum(each.stores for each in accesses if "vmem" in each.text), 1),
        (sum(map(_units, texts)), UNITS),
        (products, MULTIPLIERS),
    )
    return max(-(-count // most) for count, most in takes)


def _is_alone(each: Instruction) -> bool:
    return each.operation.startswith(_ALONE)


def _units(each: Instruction) -> int:
    """Count the vector units that an instruction takes at most: two for pairs of registers and wide products.

    A product of two vectors takes two as well, while one of a vector and a scalar takes one. A lookup that adds to
    earlier results takes the unit of shifts beside that of permutations.
    """
    if not any(register in ALL for register in each.reads | each.writes):
        return 0
    is_wide = each.operation.startswith(_WIDE)
    is_wide |= each.operation.startswith("vlut") and bool(each.accumulates)
    is_wide |= each.operation.startswith("vrmpy") and _VECTOR_BY_VECTOR.search(each.text) is not None
    return 2 if is_wide or _PAIR.search(each.text) else 1


FARTHEST = 6
"""The most packets by which a load moves."""

_PLAIN_LOAD = re.compile(r"^v(\d+) = vmem\((r\d+)\+#(-?\d+)\)$")
_STEPPED = re.compile(r"\((r\d+)\+\+#(-?\d+)\)$")
_ADDED = re.compile(r"^(r\d+) = add\((r\d+),#(-?\d+)\)$")
_VECTOR_BYTES, _LEAST_STEP, _MOST_STEP = 128, -8, 7


def is_movable(each: Instruction) -> bool:
    """Whether an instruction is a load that this module moves: a whole vector, from a register and an offset."""
    return _PLAIN_LOAD.match(each.text) is not None


def earlier(block: Block, place: int, load: Instruction) -> Iterator[list[Line]]:
    """Yield the block's packets with a load of packet `place` moved up, in every way; the nearest packet is first."""
    for target in range(place - 1, max(-1, place - 1 - FARTHEST), -1):
        if not has_room(block.lines[target]):
            continue
        moved = _moved_address(block.lines, target, place, load)
        if moved is None:
            return
        yield from _ways(block, target, place, load, moved)


def _moved_address(lines: Sequence[Line], target: int, place: int, load: Instruction) -> Instruction | None:
    """Return the load as it has to be in an earlier packet; None where an instruction in between forbids the move.

    Instructions in between may step its address register by constants: these go into the offset.
    """
    found = _PLAIN_LOAD.match(load.text)
    assert found
    base, offset = found[2], int(found[3])
    for index in range(target, place + 1):
        for each in lines[index].packet:
            if each.stores or _writes_memory(each):
                return None
            if base not in each.writes or index == place:
                continue
            step = _step(each, base)
            if step is None:
                return None
            offset += step
    if not _LEAST_STEP <= offset <= _MOST_STEP:
        return None
    return instruction(f"v{found[1]} = vmem({base}+#{offset})")


def _writes_memory(each: Instruction) -> bool:
    return each.operation.startswith(("allocframe", "dczero", "release", "memw_locked", "memd_locked"))


def _step(each: Instruction, base: str) -> int | None:
    """Return the vectors by which an instruction steps a register; None where it changes it in another way."""
    if each.is_guarded:
        return None
    stepped, added = _STEPPED.search(each.text), _ADDED.match(each.text)
    if stepped and stepped[1] == base and each.loads_vector:
        return int(stepped[2])
    if added and added[1] == added[2] == base and int(added[3]) % _VECTOR_BYTES == 0:
        return int(added[3]) // _VECTOR_BYTES
    return None


def _ways(block: Block, target: int, place: int, load: Instruction, moved: Instruction) -> Iterator[list[Line]]:
    """Yield the block with the load moved: as it is, or with the new or the old value in a free register."""
    register = next(iter(load.writes))
    lines = list(block.lines)
    lines[place] = _without(lines[place], load)
    between = lines[target : place + 1]
    is_read = any(register in used(line.packet) for line in between[1:])
    is_written = any(register in each.writes for line in between for each in line.packet)
    if not is_read and not is_written:
        yield _with(lines, target, moved)
    yield from _new_value_renamed(block, lines, target, place, moved, register)
    if is_read:
        yield from _old_value_renamed(block, lines, target, place, moved, register)


def _new_value_renamed(
    block: Block, lines: list[Line], target: int, place: int, moved: Instruction, register: str
) -> Iterator[list[Line]]:
    """Put the value that is loaded into a free register, and let all its readers read that."""
    last = _last_reader(lines, place + 1, register, block.needed)
    if last is None:
        return
    for free in _free(block, target, last):
        renamed = [_renamed(line, register, free) for line in lines[place + 1 : last + 1]]
        if all(renamed):
            changed = [*lines[: place + 1], *filter(None, renamed), *lines[last + 1 :]]
            yield _with(changed, target, _written_to(moved, free))
        return


def _old_value_renamed(
    block: Block, lines: list[Line], target: int, place: int, moved: Instruction, register: str
) -> Iterator[list[Line]]:
    """Put the value that the register has before the load into a free register, so that the load can go up."""
    makers = [index for index in range(place) if register in killed(lines[index].packet)]
    if makers and makers[-1] > target:  # the load would overwrite an older value than that
        return
    if not makers or _last_reader(lines, makers[-1] + 1, register, frozenset(), place) is None:
        return
    maker = makers[-1]
    sources = [each for each in lines[maker].packet if register in each.writes]
    if len(sources) != 1 or sources[0].accumulates or not re.match(rf"{register}(\.\w+)? = ", sources[0].text):
        return
    if sources[0].forwards:
        return
    for free in _free(block, maker, place):
        renamed = [_renamed(line, register, free) for line in lines[maker + 1 : place + 1]]
        if all(renamed):
            changed = [*lines[: maker + 1], *filter(None, renamed), *lines[place + 1 :]]
            changed[maker] = _with_written(changed[maker], sources[0], register, free)
            yield _with(changed, target, moved)
        return


def _last_reader(
    lines: Sequence[Line], first: int, register: str, needed: frozenset[str], end: int | None = None
) -> int | None:
    """Return the last packet that reads a value from packet `first`; None if the value may outlive the block."""
    last = first - 1
    stop = len(lines) if end is None else end + 1
    for index in range(first, stop):
        packet = lines[index].packet
        if register in used(packet):
            last = index
        if register in killed(packet):
            return last
    return None if register in needed else last


def _free(block: Block, first: int, last: int) -> list[str]:
    """Return the registers that hold nothing from behind packet `first` to packet `last`."""
    busy = needed_before(block.lines[first + 1 :], block.needed)
    for line in block.lines[first : last + 1]:
        busy |= {register for each in line.packet for register in each.writes}
    return sorted(ALL - busy, key=lambda register: int(register[1:]))


def _renamed(line: Line, register: str, free: str) -> Line | None:
    """Let a packet read register `free` in the place of `register`; None if its text can't say so."""
    packet: list[Instruction] = []
    for each in line.packet:
        if register not in each.reads | each.accumulates:
            if each.is_guarded and register in each.writes:
                return None
            packet.append(each)
            continue
        target, sign, source = assignment(each.text)
        if register in each.accumulates or each.is_guarded or not sign:
            return None
        text = f"{target} {sign} " + re.sub(rf"\b{register}\b(?!:)", free, source)
        again = instruction(text)
        if register in again.reads or again.writes != each.writes:
            return None
        packet.append(again)
    return with_packet(line, tuple(packet))


def _without(line: Line, load: Instruction) -> Line:
    return with_packet(line, tuple(each for each in line.packet if each is not load))


def _with(lines: Sequence[Line], target: int, load: Instruction) -> list[Line]:
    changed = with_packet(lines[target], (*lines[target].packet, load))
    return [*lines[:target], changed, *lines[target + 1 :]]


def _written_to(load: Instruction, register: str) -> Instruction:
    return instruction(f"{register} = " + assignment(load.text)[2])


def _with_written(line: Line, maker: Instruction, register: str, free: str) -> Line:
    """Let one instruction of a packet write `free` in the place of `register`, and let the packet's store name that."""
    again = {id(maker): instruction(re.sub(r"^v\d+", free, maker.text))}
    for each in line.packet:
        if f"{register}.new" in each.text:
            again[id(each)] = instruction(each.text.replace(f"{register}.new", f"{free}.new"))
    return with_packet(line, tuple(again.get(id(each), each) for each in line.packet))


FARTHEST_PRODUCT = 12
"""The most packets from one product to the other."""

OPERATIONS = ("vrmpy",)


def exchanges(lines: Sequence[Line], place: int, waiting: Instruction) -> Iterator[list[Line]]:
    """Yield the lines with an instruction of packet `place` exchanged with one of a later packet; the nearest first."""
    if waiting.operation not in OPERATIONS or waiting.is_guarded:
        return
    for other in range(place + 1, min(len(lines), place + 1 + FARTHEST_PRODUCT)):
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


def with_fewer_stalls(text: str, arch: str) -> str:
    """Rewrite assembly so that it does the same in as many packets or fewer, with fewer stalls.

    Args:
        text: assembly as LLVM writes it.
        arch: the architecture whose rules of stalls hold, such as `v68`.
    """
    found = listing(text)
    if found is None:
        return text
    for block in found.blocks:
        places = sorted(place for place in block.next if place < len(found.blocks))
        behind = [found.blocks[place].lines[0] for place in places if found.blocks[place].lines]
        _load_earlier(block, behind, arch)
        _multiply_later(block, behind, arch)
    return found.text()


def _load_earlier(block: Block, behind: Sequence[Line], arch: str) -> None:
    """Move loads up, from the block's end to its start: a load that goes up leaves room for the next."""
    for place in reversed(range(1, len(block.lines))):
        for load in [each for each in block.lines[place].packet if is_movable(each)]:
            if _is_awaited(block, place, load, behind, arch):
                _keep_first(block, earlier(block, place, load), behind, arch)


def _is_awaited(block: Block, place: int, load: Instruction, behind: Sequence[Line], arch: str) -> bool:
    """Whether a packet right behind a load stalls for it."""
    following = block.lines[place + 1 : place + 2] or behind
    return any(stall((load,), line.packet, arch) for line in following)


def _multiply_later(block: Block, behind: Sequence[Line], arch: str) -> None:
    for place in range(1, len(block.lines)):
        for wait in waits(block.lines[place - 1].packet, block.lines[place].packet, arch):
            if any(each is wait.reader for each in block.lines[place].packet):
                _keep_first(block, exchanges(block.lines, place, wait.reader), behind, arch)


def _keep_first(block: Block, ways: Iterable[list[Line]], behind: Sequence[Line], arch: str) -> None:
    """Change a block in the first way that saves a slot, if there is such a way."""
    for lines in ways:
        if _saves(block.lines, lines, behind, arch):
            block.lines[:] = lines
            return


def _saves(lines: Sequence[Line], changed: Sequence[Line], behind: Sequence[Line], arch: str) -> bool:
    """Whether a change saves issue slots, counted over the packets that it touches and those right behind them."""
    touched = [place for place, (old, new) in enumerate(zip(lines, changed, strict=True)) if old is not new]
    first, last = max(0, touched[0] - 1), touched[-1] + 2
    beyond = behind if last > len(lines) else ()
    return _slots(changed[first:last], beyond, arch) < _slots(lines[first:last], beyond, arch)


def _slots(lines: Sequence[Line], behind: Sequence[Line], arch: str) -> tuple[int, int]:
    """Count the issue slots of packets and their stalls, and the registers that wait; an empty packet takes none."""
    packets = [line.packet for line in lines if line.packet or "endloop" in line.end]
    pairs = [*pairwise(packets), *((packets[-1], line.packet) for line in behind)]
    found = [len(waits(before, after, arch)) for before, after in pairs]
    return len(packets) + sum(map(bool, found)), sum(found)
