"""The events of a run: the calls of the harness by the kernel, each with the packets and the stalls before it.

The harness records every call that stops its counters: the start of a part of the nest (`lower/marks.py`), and every
request to the copy engine and for memory. So events divide a run into stretches, one before each event and one more
after the last.
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
"""The number of stretches at the start in which the harness counts nothing but itself."""


class Kind(IntEnum):
    """The kinds of events, in the order of harness/events.h."""

    PART = 0
    START = 1
    COPY = 2
    END = 3
    WAIT = 4
    MEMORY = 5


@dataclass(frozen=True)
class Event:
    """One call of the harness by the kernel.

    Attributes:
        kind: what the kernel asked for.
        number: the number of the part, of the queue, or of the memory.
        amount: the bytes of a copy, the groups that a wait leaves under way, or the bytes in use from here on.
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
