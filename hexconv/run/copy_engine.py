"""The asynchronous copies of a run: when the copy engine performs them, and which faults it found."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from hexconv.errors import RunFailed
from hexconv.run.simulator.structures import MAX_QUEUES

Moment = Literal["early", "late", "random"]
MOMENTS: tuple[Moment, ...] = ("early", "late", "random")  # in the order of harness/copies.h


@dataclass(frozen=True)
class Copies:
    """When each copy is performed, between its start and the wait for it.

    Attributes:
        moment: as early as possible, as late as possible, or at random.
        seed: the seed of the random moments.
    """

    moment: Moment = "random"
    seed: int = 0

    def ask(self, copies: Any) -> None:
        """Write these settings into the structure that the engine reads."""
        copies["moment"], copies["seed"] = MOMENTS.index(self.moment), self.seed % 2**32


ANY_MOMENT = Copies()


@dataclass(frozen=True)
class CopyCounts:
    """What the copy engine did in one run.

    Attributes:
        moved_bytes: the bytes that each queue moved.
        most_in_flight: the most groups of copies that each queue had under way at a time.
        sizes: how many copies had rows of how many bytes, smallest first; sizes beyond the first 64 are left out.
        pieces: the number of copies; a copy of many rows counts once.
        pieces_2d: the number of copies with more than one row.
        short_pieces: the number of copies of one row below 128 bytes for which no descriptor is needed: those before
        them in their group, a row that it goes on or rows of its size at its distance, could hold it too.
    """

    moved_bytes: tuple[int, ...]
    most_in_flight: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]
    pieces: int
    pieces_2d: int
    short_pieces: int

    @property
    def copy_bytes(self) -> tuple[int, int, int] | None:
        """The least, the median and the most bytes in a row of a copy.

        None where nothing was copied, or where there were too many sizes to know.
        """
        if not self.pieces or sum(count for _, count in self.sizes) != self.pieces:
            return None
        rank = 0
        for size, count in self.sizes:
            rank += count
            if 2 * rank >= self.pieces:
                return self.sizes[0][0], size, self.sizes[-1][0]
        raise AssertionError("half of the copies are in some size")


class Fault(IntEnum):
    """What a kernel can do wrong with its copies, in the order of harness/copies.h."""

    FINE = 0
    NEVER_WAITED_FOR = 1
    SOURCE_CHANGED = 2
    TARGET_CHANGED = 3
    TOO_MANY = 4
    UNKNOWN_QUEUE = 5


def counts_of(copies: Any) -> CopyCounts:
    """Read what the engine did, from a run whose kernel used its copies correctly.

    Raises:
        RunFailed: the kernel used a copy wrongly; the text names the fault and the copy.
    """
    queue, group, size = int(copies["queue"]), int(copies["group"]), int(copies["bytes"])
    what = f"copy {group} of queue {queue}"
    match Fault(int(copies["fault"])):
        case Fault.NEVER_WAITED_FOR:
            raise RunFailed(
                f"the kernel ended while {size} copies of queue {queue} were under way, from copy {group} on"
            )
        case Fault.SOURCE_CHANGED:
            raise RunFailed(f"the source of {what} changed while it was under way, within {size} bytes")
        case Fault.TARGET_CHANGED:
            raise RunFailed(f"something else wrote to the target of {what} while it was under way, within {size} bytes")
        case Fault.TOO_MANY:
            raise RunFailed(f"{what} is one piece more under way than the copy engine keeps; use smaller steps")
        case Fault.UNKNOWN_QUEUE:
            raise RunFailed(f"the kernel copies through queue {queue}; there are 0 to {MAX_QUEUES - 1}")
    known = [(int(copies["size_bytes"][i]), int(copies["size_pieces"][i])) for i in range(int(copies["sizes"]))]
    used = _used(copies["moved_bytes"]), _used(copies["most_in_flight"])
    pieces = (int(copies[name]) for name in ("pieces", "pieces_2d", "short_pieces"))
    return CopyCounts(*used, tuple(sorted(known)), *pieces)


def _used(counts: Sequence[int]) -> tuple[int, ...]:
    """Return the counts of all queues up to the last one that did something."""
    values = [int(count) for count in counts]
    last = max((queue for queue, count in enumerate(values) if count), default=-1)
    return tuple(values[: last + 1])
