"""The account of a run: packets plus the stalls that public rules say, what the kernel loaded, and where it was.

A stall is between two packets, the first right in front of the second, so that the blocks that ran and the pairs of
blocks that followed each other decide all of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from hexconv.errors import RunFailed
from hexconv.lower.packets.instruction import Packet
from hexconv.lower.packets.issue import stall
from hexconv.run.simulator.trace import Blocks


@dataclass(frozen=True)
class Hot:
    """Packets that ran one behind the other more often than others: the body of an inner loop, as a rule.

    Attributes:
        times: how often they ran.
        packets: as text, an instruction each.
        stalls: in front of each packet, why it stalls; the first one behind the last, where the block repeats itself.
        slots: of all of these runs.
    """

    times: int
    packets: tuple[tuple[str, ...], ...]
    stalls: tuple[str, ...]
    slots: int


HOTTEST = 3
"""How many of these are kept."""


@dataclass(frozen=True)
class Slots:
    """What the kernel's packets take to issue. No cycles: caches, banks and scalar registers aren't in the rules.

    Attributes:
        packets: what is issued, one in each slot.
        stalls: slots that are lost, by cause: "load to multiply".
        vector_loads: executed loads of vector registers.
        scalar_loads: executed loads of scalar registers, wherever from; None without a trace.
        vtcm_scalar_loads: those of them that read VTCM; None where they weren't counted.
        hottest: the packets that took most slots, the most first.
    """

    packets: int
    stalls: dict[str, int]
    vector_loads: int
    scalar_loads: int | None
    vtcm_scalar_loads: int | None = None
    hottest: tuple[Hot, ...] = ()

    @property
    def stall_slots(self) -> int:
        """All slots that are lost."""
        return sum(self.stalls.values())

    @property
    def issue_slots(self) -> int:
        """Packets and stalls."""
        return self.packets + self.stall_slots

    @property
    def stall_share(self) -> float:
        """Stalls over packets."""
        return self.stall_slots / self.packets


def without_vectors(packets: int) -> Slots:
    """The account of a kernel without vector instructions: the rules are about nothing else."""
    return Slots(packets, {}, 0, None)


def slots_of(blocks: Blocks, arch: str, counted_packets: int) -> Slots:
    """The account of what ran.

    Args:
        blocks: what ran, with the packets of each block.
        arch: whose rules hold, `v68`.
        counted_packets: what the simulator's counter says.

    Raises:
        RunFailed: the trace has another number of packets than the counter.
    """
    packets, runs = blocks.packets(), blocks.runs()
    traced = sum(times * len(packets[block]) for block, times in runs.items())
    if traced != counted_packets:
        raise RunFailed(
            f"the trace of the run has {traced} packets, the simulator's counter {counted_packets}; leave the account "
            "of issue slots out with --no-slots, and report the version of QEMU"
        )
    causes: Counter[str] = Counter()
    for block, times in runs.items():
        for cause, stalls in _inside(packets[block], arch).items():
            causes[cause] += stalls * times
    for before, block, times in blocks.pairs():
        found = stall(packets[before][-1], packets[block][0], arch)
        if found:
            causes[found.cause] += times
    vectors, scalars = (
        sum(times * _loads(packets[block], kind) for block, times in runs.items()) for kind in ("vector", "scalar")
    )
    found = {cause: causes[cause] for cause in sorted(causes) if causes[cause]}
    return Slots(traced, found, vectors, scalars, hottest=tuple(_hottest(blocks, packets, arch)))


def stalls_by_stretch(blocks: Blocks, arch: str) -> list[int]:
    """The stalls of each stretch that was traced apart, in order."""
    packets = blocks.packets()
    inside = {block: _inside(each, arch).total() for block, each in packets.items()}
    seams: dict[tuple[bytes, bytes], int] = {}

    def stalls(pair: tuple[bytes, bytes]) -> int:
        if pair not in seams:
            before, block = (int(each, 16) if each else None for each in pair)
            assert block is not None
            seam = before is not None and stall(packets[before][-1], packets[block][0], arch)
            seams[pair] = inside[block] + bool(seam)
        return seams[pair]

    return [sum(times * stalls(pair) for pair, times in followed.items()) for followed in blocks.by_stretch or ()]


def _hottest(blocks: Blocks, packets: Mapping[int, tuple[Packet, ...]], arch: str) -> Iterator[Hot]:
    """The blocks that took most slots."""
    repeats = {block for before, block, times in blocks.pairs() if before == block and times}
    slots = {
        block: times * (len(packets[block]) + _inside(packets[block], arch).total())
        for block, times in blocks.runs().items()
    }
    for block in sorted(slots, key=lambda block: (-slots[block], block))[:HOTTEST]:
        run = packets[block]
        befores = (run[-1] if block in repeats else (), *run)
        found = [stall(before, packet, arch) for before, packet in zip(befores, run, strict=False)]
        texts = tuple(tuple(each.text.lower() for each in packet) for packet in run)
        yield Hot(blocks.runs()[block], texts, tuple(each.cause if each else "" for each in found), slots[block])


def _inside(packets: tuple[Packet, ...], arch: str) -> Counter[str]:
    """Stalls between the packets of one block."""
    found = (stall(before, packet, arch) for before, packet in pairwise(packets))
    return Counter(each.cause for each in found if each)


def _loads(packets: tuple[Packet, ...], kind: Literal["vector", "scalar"]) -> int:
    loads = (each.loads_vector if kind == "vector" else each.loads_scalar for packet in packets for each in packet)
    return sum(loads)
