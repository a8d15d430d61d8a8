"""What a kernel told the harness as it went, each with the packets and the stalls before it.

The harness notes every call that stops its counters: where a part of the nest begins (`lower/marks.py`), and all that
is asked of the copy engine and of memory. So a run is cut into as many stretches as there are events, and one more
behind the last.
"""

from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Any

from hexconv.errors import RunFailed, Unsupported
from hexconv.run.simulator.slots import Slots, stalls_by_stretch
from hexconv.run.simulator.structures import MAX_EVENTS
from hexconv.run.simulator.trace import Blocks

BEFORE_EVENTS = 1
"""Stretches in which the harness counts nothing but itself."""


class Kind(IntEnum):
    """What an event is; the order is that of harness/events.h."""

    PART = 0
    START = 1
    COPY = 2
    END = 3
    WAIT = 4
    MEMORY = 5


@dataclass(frozen=True)
class Event:
    """One call of the harness.

    Attributes:
        kind: what was asked.
        number: of the part, of the queue, or of the memory.
        amount: bytes of a copy, the groups that a wait leaves under way, or the bytes in use from here on.
        slots: issue slots of the kernel before it.
    """

    kind: Kind
    number: int
    amount: int
    slots: int


def events_of(found: Any, blocks: Blocks | None, arch: str, slots: Slots) -> tuple[Event, ...]:
    """The events of a run, in order.

    Args:
        found: the harness's structure.
        blocks: what ran, by stretch; None of a kernel without vectors, which has no stalls.
        arch: whose rules of stalls hold.
        slots: the account of the whole run.

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
    if (len(stalls), sum(stalls)) != (count + 1, slots.stall_slots):
        raise RunFailed(
            f"the trace of the run has {len(stalls)} stretches with {sum(stalls)} stalls, and its account "
            f"{count + 1} with {slots.stall_slots}; please report it with the version of QEMU"
        )
    before = accumulate(stalls)
    return tuple(
        Event(Kind(int(each["kind"])), int(each["number"]), int(each["amount"]), int(each["packets"]) + stalled)
        for each, stalled in zip(found["event"][:count], before, strict=False)
    )
