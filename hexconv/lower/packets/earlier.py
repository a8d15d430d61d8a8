"""Move a vector load into an earlier packet, so that no packet waits for it.

    before: { v4.uw += vrmpy(v18.ub,r0.ub) }        after:  { v4.uw += vrmpy(v18.ub,r0.ub)
            { v5.uw += vrmpy(v18.ub,r1.ub)                    v20 = vmem(r25+#1) }
              v18 = vmem(r25+#1) }                          { v5.uw += vrmpy(v18.ub,r1.ub) }
            { v6.uw += vrmpy(v18.ub,r2.ub) }                { v6.uw += vrmpy(v20.ub,r2.ub) }

A load moves into a packet that has room. If its register is still in use there, one of two values moves to a free
register: the value that is loaded, or the value that the register had before. Loads stay within their block, and behind
stores.
"""

import re
from collections.abc import Iterator, Sequence

from hexconv.lower.packets.instruction import Instruction, assignment, instruction
from hexconv.lower.packets.listing import ALL, Block, Line, killed, needed_before, used, with_packet
from hexconv.lower.packets.room import has_room

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
