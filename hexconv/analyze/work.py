"""What a plan moves and computes: predicted by the closed form, counted in the lowered module, needed at least."""

from dataclasses import dataclass

from hexconv.analyze.needed import needed_work
from hexconv.analyze.traffic import planned_work
from hexconv.lower.counting import Counts
from hexconv.spec import Case


@dataclass(frozen=True)
class TrafficUsage:
    """The copies of one tensor between memory and caches.

    Attributes:
        name: `input`, `filter1`, ..., `output`.
        direction: `in` to a cache, or `out` of one.
        bytes: counted.
        predicted_bytes: of the closed form.
        needed_bytes: every element that matters once.
    """

    name: str
    direction: str
    bytes: int
    predicted_bytes: int
    needed_bytes: int


@dataclass(frozen=True)
class MacUsage:
    """The multiply-accumulates of one conv.

    Attributes:
        name: `conv1`, ...
        macs: counted.
        predicted_macs: of the closed form.
        needed_macs: those of the logical outputs, once.
    """

    name: str
    macs: int
    predicted_macs: int
    needed_macs: int


@dataclass(frozen=True)
class WorkUsage:
    """All traffic and all MACs of one case.

    Attributes:
        traffic_bytes: counted, all tensors together; None where the kernel can't be counted.
        needed_traffic_bytes: the least, all tensors together.
        macs: counted, all convs together; None where the kernel can't be counted.
        needed_macs: those of the logical outputs, once.
        traffic: by tensor, of what is counted.
        convs: by conv, of what is counted.
    """

    traffic_bytes: int | None
    needed_traffic_bytes: int
    macs: int | None
    needed_macs: int
    traffic: tuple[TrafficUsage, ...]
    convs: tuple[MacUsage, ...]

    @property
    def agrees(self) -> bool:
        """Whether closed form and count say the same of every tensor and every conv."""
        traffic = all(tensor.bytes == tensor.predicted_bytes for tensor in self.traffic)
        return traffic and all(conv.macs == conv.predicted_macs for conv in self.convs)


def work_usage(case: Case, counts: Counts) -> WorkUsage:
    """Compare the closed form of a case with what was counted in its lowered module."""
    planned, needed = planned_work(case.chain, case.plan), needed_work(case.chain)
    traffic = tuple(
        TrafficUsage(name, _direction(name), counted, planned.traffic_bytes[name], needed.traffic_bytes[name])
        for name, counted in counts.traffic_bytes.items()
    )
    convs = tuple(
        MacUsage(name, counted, planned.macs[name], needed.macs[name]) for name, counted in counts.macs.items()
    )
    return WorkUsage(
        traffic_bytes=sum(tensor.bytes for tensor in traffic),
        needed_traffic_bytes=sum(tensor.needed_bytes for tensor in traffic),
        macs=sum(conv.macs for conv in convs),
        needed_macs=sum(conv.needed_macs for conv in convs),
        traffic=traffic,
        convs=convs,
    )


def uncounted_work(case: Case) -> WorkUsage:
    """What a case needs, where its kernel says nothing else: HVX instructions move and multiply vectors."""
    needed = needed_work(case.chain)
    return WorkUsage(None, sum(needed.traffic_bytes.values()), None, sum(needed.macs.values()), (), ())


def _direction(tensor: str) -> str:
    """Which way a tensor is copied."""
    return "out" if tensor == "output" else "in"
