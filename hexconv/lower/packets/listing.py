"""Read LLVM's assembly as blocks of packets, and find the vector registers that are needed at the end of each.

.LBB0_7:                        a label: where a block begins, if some instruction names it
        {
                v2 = vmem(r1+#0)
                r3 = add(r3,#1)
        } :endloop0             a packet, which ends a block if it may jump
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hexconv.lower.packets.instruction import Instruction, Packet, instruction

ALL = frozenset(f"v{number}" for number in range(32))
"""Vector registers."""

_LABEL = re.compile(r"^([.\w$]+):")
_NAMED = re.compile(r"\.L\w+")
_JUMP = re.compile(
    r"(?:^|[\s:(])(?:jump|jumpr|call|callr|callrh|jumprh|dealloc_return|trap0|trap1|rte|pause)(?=[\s:(]|$)"
)
_TARGET = re.compile(r"jump(?::\w+)? +#*([.\w$]+)")
_LOOP = re.compile(r"loop([01])\(#*([.\w$]+),")


@dataclass(frozen=True)
class Line:
    """A packet's place in the text.

    Attributes:
        packet: the instructions of the packet.
        end: the last line of the packet, with the ends of loops.
    """

    packet: Packet
    end: str

    @property
    def text(self) -> str:
        """The text of the packet as an assembler reads it."""
        return "\n".join(["\t{", *(f"\t\t{each.text}" for each in self.packet), self.end])


@dataclass
class Block:
    """Packets that are always executed one after the other.

    Attributes:
        lines: the packets of the block.
        labels: the labels in front of it that some instruction names.
        needed: vector registers whose values are read behind it.
        next: places of the blocks that may come next.
    """

    lines: list[Line]
    labels: list[str]
    needed: frozenset[str] = ALL
    next: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Listing:
    """A text, cut into packets and what stands between them.

    Attributes:
        blocks: the blocks of all functions, in the order of the text.
        parts: the pieces of the text in order: text, or the place (block, packet) of a packet.
    """

    blocks: list[Block]
    parts: list[str | tuple[int, int]]

    def text(self) -> str:
        """The whole text as an assembler reads it; a packet that has lost all of its instructions is left out."""
        return "".join(f"{part}\n" for part in self._texts() if part is not None)

    def _texts(self) -> Iterator[str | None]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
                continue
            line = self.blocks[part[0]].lines[part[1]]
            yield line.text if line.packet or "endloop" in line.end else None


def listing(text: str) -> Listing | None:
    """Cut a text into blocks; return None where this module can't follow the text."""
    named = {name for line in text.splitlines() if line.startswith("\t\t") for name in _NAMED.findall(line)}
    blocks, parts = _cut(text, named)
    found = Listing(blocks, parts)
    return found if _follow(blocks) else None


def _cut(text: str, named: set[str]) -> tuple[list[Block], list[str | tuple[int, int]]]:
    """Return the blocks, and the text around their packets."""
    blocks, parts = [Block([], [])], list[str | tuple[int, int]]()
    inside: list[str] | None = None
    for line in text.splitlines():
        label = _LABEL.match(line)
        if line.strip() == "{":
            inside = []
        elif inside is not None and line.lstrip().startswith("}"):
            packet = tuple(instruction(each) for each in inside)
            parts.append((len(blocks) - 1, len(blocks[-1].lines)))
            blocks[-1].lines.append(Line(packet, line))
            inside = None
            if _may_jump(blocks[-1].lines[-1]):
                blocks.append(Block([], []))
        elif inside is not None:
            inside.append(line)
        else:
            parts.append(line)
            if label and (label[1] in named or not label[1].startswith(".L")):
                if blocks[-1].lines:
                    blocks.append(Block([], []))
                blocks[-1].labels.append(label[1])
    return blocks, parts


def _may_jump(line: Line) -> bool:
    return "endloop" in line.end or any(_jump(each) for each in line.packet)


def _jump(each: Instruction) -> bool:
    return _JUMP.search(each.text) is not None


def _follow(blocks: list[Block]) -> bool:
    """Find the blocks that may come after each block, and the registers needed there; False if they are unknown."""
    places = {label: place for place, block in enumerate(blocks) for label in block.labels}
    for place, block in enumerate(blocks):
        if not _add_next(place, block, places):
            return False
    return _add_loops(blocks, places) and _find_needed(blocks)


def _add_next(place: int, block: Block, places: dict[str, int]) -> bool:
    """Find the blocks that may come after a block, except by the ends of loops."""
    last = block.lines[-1] if block.lines else None
    jumps = [each for each in last.packet if _jump(each)] if last else []
    if not any(_always(each) for each in jumps):
        block.next.add(place + 1)
    for each in jumps:
        for target in _TARGET.findall(each.text):
            if target not in places:
                return False
            block.next.add(places[target])
        if "jumpr" in each.text and "r31" not in each.text:
            return False
    return True


def _always(each: Instruction) -> bool:
    """Whether an instruction never goes on to the next packet."""
    return each.text.startswith(("jump", "dealloc_return")) and not each.is_guarded


def _add_loops(blocks: list[Block], places: dict[str, int]) -> bool:
    """Add the ways back of hardware loops: from each end to the start that was set on some way to it."""
    for loop in "01":
        starts: list[set[str]] = [set() for _ in blocks]
        changed = True
        while changed:
            changed = False
            for place, block in enumerate(blocks):
                given = {target for line in block.lines for which, target in _loops(line) if which == loop}
                behind = given or starts[place]
                if block.lines and f":endloop{loop}" in block.lines[-1].end.replace(" ", ""):
                    if not behind or not behind <= places.keys():
                        continue
                    block.next |= {places[target] for target in behind}
                for after in block.next:
                    if after < len(blocks) and not behind <= starts[after]:
                        starts[after] |= behind
                        changed = True
        for place, block in enumerate(blocks):
            ends = bool(block.lines) and f":endloop{loop}" in block.lines[-1].end.replace(" ", "")
            if ends and not any(places[target] in block.next for target in starts[place] if target in places):
                return False
    return True


def _loops(line: Line) -> list[tuple[str, str]]:
    return [found for each in line.packet for found in _LOOP.findall(each.text)]


def _find_needed(blocks: list[Block]) -> bool:
    """Find the registers needed behind each block: those that the next blocks read before they write them.

    A function need not keep vector registers for its caller: behind a return none is needed. A call may read all of
    them.
    """
    first: list[frozenset[str]] = [frozenset() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for place in reversed(range(len(blocks))):
            block = blocks[place]
            block.needed = frozenset().union(*(first[after] for after in block.next if after < len(blocks)))
            now = needed_before(block.lines, block.needed)
            if now != first[place]:
                first[place], changed = now, True
    return True


def needed_before(lines: Sequence[Line], needed: frozenset[str]) -> frozenset[str]:
    """Return the vector registers whose values count before some packets: read first, or kept and needed behind."""
    for line in reversed(lines):
        needed = (needed - killed(line.packet)) | used(line.packet)
    return needed


def used(packet: Packet) -> frozenset[str]:
    """Return the vector registers whose values from before a packet it reads."""
    if any(each.operation in ("call", "callr", "callrh") for each in packet):
        return ALL
    forwarded = {register for each in packet if each.forwards for register in each.writes}
    kept = {register for each in packet if each.is_guarded for register in each.writes}
    read = {register for each in packet for register in each.reads if register not in forwarded}
    return ALL & (read | kept | {register for each in packet for register in each.accumulates})


def killed(packet: Packet) -> frozenset[str]:
    """Return the vector registers that a packet writes whatever happens."""
    return ALL & {register for each in packet if not each.is_guarded for register in each.writes}


def with_packet(line: Line, packet: Packet) -> Line:
    """Return the same line with other instructions."""
    return replace(line, packet=packet)
