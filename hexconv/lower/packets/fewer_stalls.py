"""Change LLVM's packets so that fewer of them stall, where that costs nothing.

LLVM's scheduler knows how long a load takes, but packets are put together after it, and loads go down into the last
packet that has room. Two kinds of change cure that and add no packet: a load moves up by a few packets
(`hexconv.lower.packets.earlier`), or a product that doesn't wait takes the place of one that does
(`hexconv.lower.packets.exchange`). A change is kept if it saves a slot. Code that can't be followed stays as it is.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hexconv.lower.packets.earlier import earlier, is_movable
from hexconv.lower.packets.exchange import exchanges
from hexconv.lower.packets.instruction import Instruction
from hexconv.lower.packets.issue import stall, waits
from hexconv.lower.packets.listing import Block, Line, listing


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
