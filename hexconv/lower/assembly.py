"""Read LLVM's Hexagon assembly: blocks of packets, what each instruction reads and writes, live vector registers.

.LBB0_7:                        a label: where a block begins, if some instruction names it
        {
                v2 = vmem(r1+#0)
                r3 = add(r3,#1)
        } :endloop0             a packet, which ends a block if it may jump

LLVM's assembly and QEMU's disassembly write the same language, LLVM in small letters, QEMU in capitals:

    v15.uw += vrmpy(v18.ub,r8.ub)       reads v18, r8 and v15 (as an accumulator), writes v15
    v17.cur = vmem(r25++#1)             reads r25, writes v17 and r25
    if (q0) vmem(r2+#0) = v3            reads q0, r2, v3

Registers are named as singles: `v5:4` is `v4` and `v5`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

_REGISTERS = re.compile(r"\b([vrqpm])(\d+)(?::(\d+))?(?![\w:])")
_GUARD = re.compile(r"^if \(([^)]*)\)\s*")
_OPERATION = re.compile(r"^[!~]?([a-z]\w*)")
_MOVED_BASE = re.compile(r"\b(r\d+)\+\+|\((r\d+)=")
_MEMORY = re.compile(r"^v?mem\w*")
_EXCHANGED = ("vshuff", "vdeal", "vswap")
_INTO = ("vinsert", "vasrinto", "insert", "tableidx")
"""Operations that change a part of their target, and keep the rest."""


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        text: the instruction as it was written.
        operation: `vrmpy`, `vmem`, `jump`; `=` where a register is copied.
        writes: registers that have other values behind the packet.
        accumulates: those written registers that are read too.
        reads: all other registers that are read.
        stores: whether it writes memory.
        forwards: a load whose value its own packet already gets (`.cur`, `.tmp`).
        is_guarded: whether it may do nothing.
    """

    text: str
    operation: str
    writes: frozenset[str]
    accumulates: frozenset[str]
    reads: frozenset[str]
    stores: bool
    forwards: bool
    is_guarded: bool

    @property
    def loads_vector(self) -> bool:
        """Whether it loads a vector register."""
        return self.operation.startswith("vmem") and not self.stores

    @property
    def loads_scalar(self) -> bool:
        """Whether it loads a scalar register, or a pair of them."""
        return self.operation.startswith("mem") and bool(self.writes)


Packet = tuple[Instruction, ...]


def packet(lines: list[str]) -> Packet:
    """Read a packet from its lines of text, with or without braces and ends of loops."""
    parts = (part for line in lines for part in _bare(line).split(";"))
    return tuple(instruction(part) for part in parts if part.strip())


def instruction(text: str) -> Instruction:
    """Read one instruction from its text; two of the same text are two objects.

    >>> read = instruction("v15.uw += vrmpy(v18.ub,r8.ub)")
    >>> read.operation, sorted(read.writes), sorted(read.accumulates), sorted(read.reads)
    ('vrmpy', ['v15'], ['v15'], ['r8', 'v18'])
    >>> sorted(instruction("v17 = vmem(r25++#1)").writes)
    ['r25', 'v17']
    >>> sorted(instruction("v2.w = vinsert(r5)").accumulates)
    ['v2']
    """
    made = object.__new__(Instruction)
    vars(made).update(vars(_instruction(text.strip())))  # as `copy` does, in a fifth of its time
    return made


@lru_cache(maxsize=1 << 16)
def _instruction(text: str) -> Instruction:
    """Read an instruction; code that a compiler unrolls says much the same again and again."""
    small = text.lower()
    guard = _GUARD.match(small)
    rest = small[guard.end() :] if guard else small
    target, sign, source = assignment(rest)
    moved = {name for pair in _MOVED_BASE.findall(rest) for name in pair if name}
    guards = _old(guard[1]) if guard else frozenset[str]()
    stores = bool(_MEMORY.match(target))
    if not sign or stores:  # a jump, an exchange, a store
        exchanged = _old(rest) if rest.startswith(_EXCHANGED) else frozenset[str]()
        vectors = frozenset(name for name in exchanged if name[0] == "v")
        reads = (_old(rest) | guards) - vectors
        operation = _operation(target if stores else rest)
        return Instruction(text, operation, vectors | moved, vectors, reads, stores, False, guard is not None)
    written = _registers(target)
    keeps = sign != "=" or source.startswith(_INTO)
    added = written if keeps else frozenset[str]()
    forwards = ".cur" in target or ".tmp" in target
    reads = _old(source) | guards
    return Instruction(text, _operation(source), written | moved, added, reads, False, forwards, guard is not None)


def _bare(line: str) -> str:
    """Strip braces, ends of loops and comments from a line of a packet."""
    line = line.split("//")[0].strip().lstrip("{").strip()
    return re.sub(r"}?\s*(:endloop\d*|:mem_noshuf|:mem_no_order)*\s*$", "", line.rstrip()).rstrip("} \t")


def assignment(text: str) -> tuple[str, str, str]:
    """Split `target += source` into target, sign and source; without a sign all of the text is the target."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "=" and depth == 0:
            first = place - 1 if text[place - 1] in "+-|&^" else place
            return text[:first].strip(), text[first : place + 1], text[place + 1 :].strip()
    return text, "", ""


def _operation(text: str) -> str:
    found = _OPERATION.match(text)
    if found is None or _REGISTERS.fullmatch(text.split(".")[0]):
        return "="
    return found[1]


def _registers(text: str) -> frozenset[str]:
    """Find every register in a text; a pair counts as two."""
    found: set[str] = set()
    for kind, one, other in _REGISTERS.findall(text):
        ends = (int(one), int(other or one))
        found |= {f"{kind}{number}" for number in range(min(ends), max(ends) + 1)}
    return frozenset(found)


def _old(text: str) -> frozenset[str]:
    """Find the registers whose values come from before the packet, not from the packet itself."""
    return _registers(re.sub(r"\b[vrqp]\d+(:\d+)?\.new", "", text))


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
    set_up = [[found for line in block.lines for found in _loops(line)] for block in blocks]
    for loop in "01":
        given = [{target for which, target in found if which == loop} for found in set_up]
        starts: list[set[str]] = [set() for _ in blocks]
        changed = True
        while changed:
            changed = False
            for place, block in enumerate(blocks):
                behind = given[place] or starts[place]
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
    them. Whatever is needed behind a block, it reads the same ones, and leaves the same ones alone.
    """
    reads, leaves = ([needed_before(block.lines, behind) for block in blocks] for behind in (frozenset[str](), ALL))
    first: list[frozenset[str]] = [frozenset() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for place in reversed(range(len(blocks))):
            block = blocks[place]
            block.needed = frozenset().union(*(first[after] for after in block.next if after < len(blocks)))
            now = reads[place] | (block.needed & leaves[place])
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


_DEBUG = re.compile(
    r"^\t\.section\t\.debug_.*\n(?:(?!\t\.section\t(?!\.debug_)).*\n)*|^\t\.(?:loc|file\t\d).*\n", re.MULTILINE
)


def without_debug(text: str) -> str:
    r"""Leave out what a debugger reads: it tells of TVM's code, which nobody wrote, and is half of the text.

    >>> code, rest = '\t.text\n\t{\n\t\tjumpr r31\n\t}\n', '\t.section\t".note.GNU-stack","",@progbits\n'
    >>> debug = '\t.section\t.debug_loc,"",@progbits\n\t.word\t0\n\t.section\t.debug_str,"MS",@progbits,1\n'
    >>> without_debug("\t.loc\t1 0 0\n" + code + debug + rest) == code + rest
    True
    """
    return _DEBUG.sub("", text)


Change = Callable[[Sequence[str], str], Iterable[str]]
"""From the lines inside of a packet, and the line that ends it, to the lines that stand in its place."""


def whole(packet: Sequence[str], end: str) -> tuple[str, ...]:
    """Return the lines of a packet, braces included."""
    return ("\t{", *packet, end)


def each_packet(text: str, change: Change) -> str:
    """Return assembly in which every packet is changed; lines between packets stay."""
    changed: list[str] = []
    packet: list[str] | None = None
    for line in text.splitlines():
        if line.strip() == "{":
            packet = []
        elif packet is None:
            changed.append(line)
        elif line.lstrip().startswith("}"):
            changed += change(packet, line)
            packet = None
        else:
            packet.append(line)
    return "\n".join(changed) + "\n"
