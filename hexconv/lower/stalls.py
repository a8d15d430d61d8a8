"""Find the packets that stall, by the published rules: issue slots are packets plus stalls.

A thread issues a packet in each of its slots. A vector register that a packet writes can be read by the next one; but
some operations need their sources early, and stall for one slot when the packet right before them wrote one.
Accumulators aren't sources. A load that forwards its value within its packet (`.cur`) has it early enough for the next
packet too: this reading of the rules is the one that finds fewer stalls.

Two published sources say the same. Qualcomm's manuals list the early sources by kind of operation: "HVX Programmer's
Reference Manual", chapters "Instruction latency" and "Slot, resource and latency summary" (80-N2040-35 for v60,
80-N2040-61 for v79). LLVM's itineraries have the stages at which operands are written and read
(llvm/lib/Target/Hexagon/HexagonDepIICHVX.td): results are written at stage 9, sources are read at stage 7, early ones
at stage 5. `slots_between` is LLVM's own formula for the packets from one to the other.

The rules know nothing of caches, banks and scalar registers, nor of how long `vextract` takes: stalls are a lower
bound.
"""

from dataclasses import dataclass
from functools import lru_cache

from hexconv.lower.assembly import Instruction, Packet

WRITTEN, LATE, EARLY = 9, 7, 5
"""Stages of LLVM's itineraries at which a vector register is written, and read."""


@dataclass(frozen=True)
class Rule:
    """When operations of one kind read their sources.

    Attributes:
        unit: the unit that executes the operations.
        operations: the names of the operations.
        stage: the stage at which they read their sources.
        source: the class of LLVM's itineraries that says so.
        since: the first architecture for which the rule holds.
    """

    unit: str
    operations: tuple[str, ...]
    stage: int
    source: str
    since: int = 0


RULES = (
    Rule(
        "alu",
        (
            *("vadd", "vsub", "vand", "vor", "vxor", "vnot", "vmux", "vmax", "vmin", "vabs", "vavg", "vnavg", "vcmp"),
            *("vcombine", "vswap", "vsat", "vsatdw", "vshuffe", "vshuffo", "vshuffoe", "vzxt", "vsxt", "=", "not"),
            *("and", "or", "xor", "vcmov", "vextract"),
        ),
        LATE,
        "VA [9, 7, 7], VA_DV [9, 7, 7]",
    ),
    Rule("alu", ("vinsert", "vsplat"), LATE, "VX [9, 7, 2]: they move a scalar register"),
    Rule("store", ("vmem",), LATE, "STORE,VA [1, 2, 7]"),
    Rule("load", ("vmem", "vmemu"), LATE, "LOAD,VA [9, 1, 2]: of vectors only predicates are read"),
    Rule("store", ("vmemu",), EARLY, "STORE,VP [1, 2, 5]"),
    Rule(
        "multiply",
        (
            *("vmpy", "vmpye", "vmpyo", "vmpyi", "vmpyie", "vmpyio", "vmpyieo", "vmpa", "vdmpy", "vrmpy", "vrmpyz"),
            *("vtmpy", "vdsad", "vrsad", "vabsdiff", "vmps"),
        ),
        EARLY,
        "VX [9, 7, 5, 2], VX_DV [9, 7, 5, 5]",
    ),
    Rule(
        "shift",
        (
            *("vasr", "vasl", "vlsr", "vrotr", "vround", "vcl0", "vpopcount", "vnormamt", "vaddclb", "vclb"),
            *("vprefixq", "vasrinto"),
        ),
        EARLY,
        "VS [9, 5, 5, 2], VP_VS [9, 5]",
    ),
    Rule(
        "permute",
        (
            *("vpack", "vpacke", "vpacko", "vunpack", "vunpacko", "vdeal", "vdeale", "vshuff", "valign", "vlalign"),
            *("vror", "vdelta", "vrdelta", "vlut16", "vlut32", "vhist", "vwhist128", "vwhist256"),
        ),
        EARLY,
        "VP [9, 5, 5], VP_VS [9, 9, 5, 5, 2]",
    ),
    Rule("guarded move", ("guarded =", "guarded vcombine"), LATE, "SLOT0123 [9, 7, 7]"),
    Rule("guarded move", ("guarded =", "guarded vcombine"), EARLY, "SLOT0123 [9, 5, 5]", 71),
)
"""By kind of operation; a later rule for the same operations takes the place of an earlier one."""

UNLISTED = Rule("other", (), EARLY, "no rule: taken for early, which never counts too few stalls")


def slots_between(written: int, read: int) -> int:
    """Count the slots from a packet to the first that can read what it wrote, if their units forward to each other.

    >>> slots_between(WRITTEN, LATE), slots_between(WRITTEN, EARLY)
    (1, 2)
    """
    return (written - read + 1) >> 1


@dataclass(frozen=True)
class Stall:
    """One slot that is lost in front of a packet.

    Attributes:
        register: the register that the packet waits for.
        writer: the instruction of the packet before that writes it.
        reader: the instruction that needs it early.
        cause: the two kinds of operation in words, such as "load to multiply".
    """

    register: str
    writer: Instruction
    reader: Instruction
    cause: str


def stall(before: Packet, packet: Packet, arch: str) -> Stall | None:
    """Say why a packet stalls right behind another; None where it doesn't. Several reasons make one stall."""
    found = waits(before, packet, arch)
    return min(found, key=lambda each: (not each.writer.loads_vector, each.cause), default=None)


def waits(before: Packet, packet: Packet, arch: str) -> list[Stall]:
    """Find every register that a packet needs earlier than the packet before it has it ready, and its reader.

    Args:
        before: the packet in the slot before.
        packet: the one that may wait.
        arch: the architecture whose rules hold, such as `v68`.
    """
    writers = {
        register: each for each in before if not each.forwards for register in each.writes if _is_vector(register)
    }
    if not writers:
        return []
    forwarded = frozenset(register for each in packet if each.forwards for register in each.writes)
    return [
        Stall(register, writers[register], reader, f"{_maker(writers[register], arch)} to {unit}")
        for reader in packet
        for unit, sources in [_early(reader, arch)]
        for register in sorted((sources & writers.keys()) - forwarded)
    ]


def _early(instruction: Instruction, arch: str) -> tuple[str, frozenset[str]]:
    """Return the unit of an instruction, and the vector registers that it needs early."""
    sources = instruction.reads
    if instruction.operation in ("vshuff", "vdeal"):  # two registers are exchanged in place: both are sources
        sources = sources | instruction.accumulates
    vectors = frozenset(filter(_is_vector, sources))
    if not vectors:
        return "", vectors
    rule = _rule(instruction, arch)
    waits = slots_between(WRITTEN, rule.stage) > 1
    return rule.unit, vectors if waits else frozenset()


def _maker(instruction: Instruction, arch: str) -> str:
    return "load" if instruction.loads_vector else _rule(instruction, arch).unit


def _rule(instruction: Instruction, arch: str) -> Rule:
    name, moves = instruction.operation, instruction.operation in ("=", "vcombine")
    if instruction.is_guarded and moves:
        name = f"guarded {name}"
    unit = "store" if instruction.stores else "load" if instruction.loads_vector else ""
    return _rules(arch).get((unit, name), UNLISTED)


@lru_cache
def _rules(arch: str) -> dict[tuple[str, str], Rule]:
    """Return the rules of one architecture by operation; those of loads and stores also by their kind."""
    number = int(arch.removeprefix("v"))
    return {
        (rule.unit if rule.unit in ("load", "store") else "", operation): rule
        for rule in sorted(RULES, key=lambda rule: rule.since)
        if rule.since <= number
        for operation in rule.operations
    }


def _is_vector(register: str) -> bool:
    return register[0] in "vq"
