"""Issue slots of a run: packets plus stalls by public rules, per thread, block and call of the harness.

A stall lies between two packets that run one right after the other. So the blocks that ran, and the pairs of blocks
that followed each other, determine all stalls.

The harness records every call that stops its counters: the start of a part of the nest (`lower/marks.py`), every
packet of the matrix engine, and every request to the copy engine and for memory. So events divide a run into stretches,
one before each event and one more after the last.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise
from typing import Any, Literal

from hexconv.errors import RunFailed, Unsupported
from hexconv.lower.assembly import Packet
from hexconv.lower.stalls import stall
from hexconv.run.simulator.structures import MAX_EVENTS
from hexconv.run.simulator.trace import Blocks


@dataclass(frozen=True)
class Hot:
    """A block of packets that took many issue slots: as a rule the body of an inner loop.

    Attributes:
        times: how often the block ran.
        packets: its packets, each as the text of its instructions.
        stalls: the stalls in front of each packet, with the cause; those in front of the first packet follow the last
            one, where the block repeats itself.
        slots: the issue slots of all runs of the block.
    """

    times: int
    packets: tuple[tuple[str, ...], ...]
    stalls: tuple[str, ...]
    slots: int


HOTTEST = 3
"""How many of the hottest blocks are kept."""


@dataclass(frozen=True)
class Slots:
    """The issue slots of a kernel. These are not cycles: the rules cover no cache, no bank and no scalar register.

    Attributes:
        packets: the packets that were issued, one in each slot.
        stalls: the slots that were lost, by cause, such as "load to multiply".
        vector_loads: the loads of vector registers that were executed.
        scalar_loads: the loads of scalar registers that were executed, from any memory; None without a trace.
        vtcm_scalar_loads: the scalar loads that read VTCM; None where they weren't counted.
        hottest: the blocks that took most slots, the most first.
    """

    packets: int
    stalls: dict[str, int]
    vector_loads: int
    scalar_loads: int | None
    vtcm_scalar_loads: int | None = None
    hottest: tuple[Hot, ...] = ()

    @property
    def stall_slots(self) -> int:
        """All slots that were lost to stalls."""
        return sum(self.stalls.values())

    @property
    def issue_slots(self) -> int:
        """The sum of packets and stalls."""
        return self.packets + self.stall_slots

    @property
    def stall_share(self) -> float:
        """The ratio of stalls to packets."""
        return self.stall_slots / self.packets


def without_vectors(packets: int) -> Slots:
    """Return the slots of a kernel without vector instructions: it has no stalls, since the rules are about vectors."""
    return Slots(packets, {}, 0, None)


def slots_of(blocks: Blocks, arch: str, counted_packets: int) -> Slots:
    """Count the issue slots of a run from its trace.

    Args:
        blocks: the blocks that ran, with the packets of each.
        arch: the architecture whose rules hold, `v68`.
        counted_packets: the packets that the simulator's counter says.

    Raises:
        RunFailed: the trace and the counter have different numbers of packets.
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
    """Return the number of stalls in each traced stretch, in order."""
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
    """Return the blocks that took most slots."""
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
    """Return the stalls between the packets of one block."""
    found = (stall(before, packet, arch) for before, packet in pairwise(packets))
    return Counter(each.cause for each in found if each)


def _loads(packets: tuple[Packet, ...], kind: Literal["vector", "scalar"]) -> int:
    loads = (each.loads_vector if kind == "vector" else each.loads_scalar for packet in packets for each in packet)
    return sum(loads)


@dataclass(frozen=True)
class Threads:
    """What the threads of a kernel did: how its packets divide among them, not how long they would take.

    Attributes:
        packets: the packets of each thread.
        slots: the issue slots of each thread; empty where they weren't asked for.
        waits: how often each thread waited for copies. The simulator doesn't know how long.
        switches: how often the simulator switched to another thread.
    """

    packets: tuple[int, ...]
    slots: tuple[int, ...]
    waits: tuple[int, ...]
    switches: int


def threads_of(found: Any, blocks: Blocks | None, arch: str) -> Threads | None:
    """Return what the threads of a run did; None where the kernel has no threads.

    Args:
        found: the structure that the harness filled in.
        blocks: the blocks that ran; None where the run wasn't traced.
        arch: the architecture whose rules of stalls hold.

    Raises:
        RunFailed: the trace and the counter have different numbers of packets for a thread.
    """
    count = int(found["count"])
    if not count:
        return None
    packets = tuple(int(each) for each in found["packets"][:count])
    numbers = range(1, count + 1) if blocks else ()
    slots = [slots_of(blocks.of_thread(number), arch, packets[number - 1]) for number in numbers] if blocks else []
    waits = tuple(int(each) for each in found["waits"][:count])
    return Threads(packets, tuple(each.issue_slots for each in slots), waits, int(found["switches"]))


BEFORE_EVENTS = 1
"""The number of stretches at the start in which the harness counts nothing but itself."""


class Kind(IntEnum):
    """The kinds of events, in the order of harness/events.h."""

    PART = 0
    START = 1
    COPY = 2
    END = 3
    WAIT = 4
    MEMORY = 5
    ENGINE = 6


@dataclass(frozen=True)
class Event:
    """One call of the harness by the kernel.

    Attributes:
        kind: what the kernel asked for.
        number: the number of the part, of the queue, or of the memory.
        amount: the bytes of a copy, the groups that a wait leaves under way, the bytes in use from here on, or the taps
            of the matrix engine's packets.
        slots: the issue slots of the kernel before this event.
    """

    kind: Kind
    number: int
    amount: int
    slots: int


def events_of(found: Any, blocks: Blocks | None, arch: str, slots: Slots | None) -> tuple[Event, ...]:
    """Return the events of a run, in order.

    Args:
        found: the structure that the harness filled in.
        blocks: the blocks that ran, by stretch; None for a kernel without vectors, which has no stalls.
        arch: the architecture whose rules of stalls hold.
        slots: the issue slots of the whole run; None where only packets were counted, which slots then are.

    Raises:
        Unsupported: more events than the harness keeps.
        RunFailed: the trace has other stretches or stalls than the run.
    """
    count = int(found["count"])
    if count > MAX_EVENTS:
        raise Unsupported(
            f"the run has {count} events; {MAX_EVENTS} can be kept: take larger steps, or a smaller chain"
        )
    stalls = stalls_by_stretch(blocks, arch)[BEFORE_EVENTS:] if blocks else [0] * (count + 1)
    stalled = slots.stall_slots if slots else 0
    if (len(stalls), sum(stalls)) != (count + 1, stalled):
        raise RunFailed(
            f"the trace of the run has {len(stalls)} stretches with {sum(stalls)} stalls, and its account "
            f"{count + 1} with {stalled}; please report it with the version of QEMU"
        )
    before = accumulate(stalls)
    return tuple(
        Event(Kind(int(each["kind"])), int(each["number"]), int(each["amount"]), int(each["packets"]) + stalls_before)
        for each, stalls_before in zip(found["event"][:count], before, strict=False)
    )
