"""What a plan moves and computes: predicted by the closed form, counted in the lowered module, needed at least."""

from dataclasses import dataclass

from hexconv.analyze.in_flight import copies_in_flight
from hexconv.analyze.needed import needed_work
from hexconv.analyze.predicted import planned_work
from hexconv.lower.counting import Counts
from hexconv.spec import Case


@dataclass(frozen=True)
class TrafficUsage:
    """The copies of one tensor between memory and caches, or what kernels do in a cache outside of VTCM.

    Attributes:
        name: `input`, `filter1`, ..., `output`; or of a cache.
        direction: `in` to a cache, or `out` of one; `outside`.
        bytes: counted.
        predicted_bytes: of the closed form.
        needed_bytes: every element that matters once.
        copies_in_flight: the most copies that were under way, counted.
        predicted_copies_in_flight: of the closed form.
    """

    name: str
    direction: str
    bytes: int
    predicted_bytes: int
    needed_bytes: int
    copies_in_flight: int
    predicted_copies_in_flight: int

    @property
    def agrees(self) -> bool:
        """Whether closed form and count say the same."""
        return (self.bytes, self.copies_in_flight) == (self.predicted_bytes, self.predicted_copies_in_flight)


@dataclass(frozen=True)
class MacUsage:
    """The multiply-accumulates of one conv.

    Attributes:
        name: `conv1`, ...
        macs: counted.
        predicted_macs: of the closed form.
        needed_macs: those of the outputs that are read, once.
    """

    name: str
    macs: int
    predicted_macs: int
    needed_macs: int


@dataclass(frozen=True)
class WorkUsage:
    """All traffic and all MACs of one case.

    Attributes:
        traffic_bytes: counted, all tensors together.
        needed_traffic_bytes: the least, all tensors together.
        macs: counted, all convs together.
        needed_macs: those of the outputs that are read, once.
        traffic: by tensor, of what is counted.
        convs: by conv, of what is counted.
        copies_in_flight: the most of each tensor, all tensors together.
    """

    traffic_bytes: int
    needed_traffic_bytes: int
    macs: int
    needed_macs: int
    traffic: tuple[TrafficUsage, ...]
    convs: tuple[MacUsage, ...]
    copies_in_flight: int

    @property
    def agrees(self) -> bool:
        """Whether closed form and count say the same of every tensor and every conv."""
        return all(tensor.agrees for tensor in self.traffic) and all(
            conv.macs == conv.predicted_macs for conv in self.convs
        )


def work_usage(case: Case, counts: Counts) -> WorkUsage:
    """Compare the closed form of a case with what was counted in its lowered module."""
    planned, needed = planned_work(case.chain, case.settled), needed_work(case.chain)
    in_flight = copies_in_flight(case.chain, case.settled)
    traffic = tuple(
        TrafficUsage(
            name=name,
            direction=_direction(name) if name in in_flight else "outside",
            bytes=counted,
            predicted_bytes=planned.traffic_bytes.get(name, 0),
            needed_bytes=needed.traffic_bytes.get(name, 0),
            copies_in_flight=counts.copies_in_flight.get(name, 0),
            predicted_copies_in_flight=in_flight.get(name, 0),
        )
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
        copies_in_flight=sum(tensor.copies_in_flight for tensor in traffic),
    )


def _direction(tensor: str) -> str:
    """Which way a tensor is copied."""
    return "out" if tensor == "output" else "in"
