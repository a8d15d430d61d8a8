"""What a plan moves and computes: predicted by the closed form, counted in the lowered module, needed at least."""

from dataclasses import dataclass

from hexconv.analyze.in_flight import copies_in_flight
from hexconv.analyze.needed import needed_work
from hexconv.analyze.planned import Planned
from hexconv.lower.counting import Counts
from hexconv.spec import Case
from hexconv.spec.vectors import vectors_bytes


@dataclass(frozen=True)
class TrafficUsage:
    """The bytes of one tensor that are copied between memory and caches, or that kernels access outside of VTCM.

    Attributes:
        name: `input`, `filter1`, ..., `output`; `bias1`, `multiplier1`, `table1`, ..., which go through no cache and
            count once; or the name of a cache outside of VTCM.
        direction: `in` to a cache or kernel, `out` of one, or `outside` for accesses to a cache outside of VTCM.
        bytes: the bytes that are counted in the lowered module; of what no cache stages, its size.
        predicted_bytes: the bytes that the closed form predicts.
        needed_bytes: the lower bound: every element that is needed, once.
        copies_in_flight: the most copies under way at once, counted in the lowered module.
        predicted_copies_in_flight: the most copies under way at once that the closed form predicts.
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
        macs: the MACs that are counted in the lowered module.
        predicted_macs: the MACs that the closed form predicts.
        needed_macs: the lower bound: the MACs of the outputs that are read, once.
    """

    name: str
    macs: int
    predicted_macs: int
    needed_macs: int


@dataclass(frozen=True)
class WorkUsage:
    """All traffic and all MACs of one case.

    Attributes:
        traffic_bytes: the counted bytes of all tensors together.
        needed_traffic_bytes: the lower bound of the bytes of all tensors together.
        macs: the counted MACs of all convs together.
        needed_macs: the lower bound: the MACs of the outputs that are read, once.
        traffic: the figures of each tensor.
        convs: the figures of each conv.
        copies_in_flight: the sum over all tensors of the most copies under way at once.
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
    planned, needed = Planned.of(case), needed_work(case.chain)
    in_flight = copies_in_flight(planned)
    traffic = tuple(
        TrafficUsage(
            name=name,
            direction=_direction(name) if name in needed.traffic_bytes else "outside",
            bytes=counted,
            predicted_bytes=planned.work.traffic_bytes.get(name, 0),
            needed_bytes=needed.traffic_bytes.get(name, 0),
            copies_in_flight=counts.copies_in_flight.get(name, 0),
            predicted_copies_in_flight=in_flight.get(name, 0),
        )
        for name, counted in (counts.traffic_bytes | vectors_bytes(case.chain)).items()
    )
    convs = tuple(
        MacUsage(name, counted, planned.work.macs[name], needed.macs[name]) for name, counted in counts.macs.items()
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
