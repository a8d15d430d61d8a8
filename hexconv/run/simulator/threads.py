"""What each thread of a run did: bands of rows that the simulator runs by turns."""

from dataclasses import dataclass
from typing import Any

from hexconv.run.simulator.slots import slots_of
from hexconv.run.simulator.trace import Blocks


@dataclass(frozen=True)
class Threads:
    """What the threads of a kernel did. A split of packets: it says nothing of the time that they would take.

    Attributes:
        packets: of each thread.
        slots: packets and stalls of each; nothing where these weren't asked for.
        waits: how often each waited for copies. How long is not in the simulator.
        switches: how often the simulator let another thread go on.
    """

    packets: tuple[int, ...]
    slots: tuple[int, ...]
    waits: tuple[int, ...]
    switches: int


def threads_of(found: Any, blocks: Blocks | None, arch: str) -> Threads | None:
    """The threads of a run; None of a kernel that has none.

    Args:
        found: the harness's structure.
        blocks: what ran; None where that wasn't traced.
        arch: whose rules of stalls hold.

    Raises:
        RunFailed: the trace of a thread has another number of packets than the counter.
    """
    count = int(found["count"])
    if not count:
        return None
    packets = tuple(int(each) for each in found["packets"][:count])
    numbers = range(1, count + 1) if blocks else ()
    slots = [slots_of(blocks.of_thread(number), arch, packets[number - 1]) for number in numbers] if blocks else []
    waits = tuple(int(each) for each in found["waits"][:count])
    return Threads(packets, tuple(each.issue_slots for each in slots), waits, int(found["switches"]))
