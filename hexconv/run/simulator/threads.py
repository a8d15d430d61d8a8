"""What each thread of a run did. A thread computes one band of rows, and the simulator runs the threads by turns."""

from dataclasses import dataclass
from typing import Any

from hexconv.run.simulator.slots import slots_of
from hexconv.run.simulator.trace import Blocks


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
