"""What a call of a network costs: bytes, packets, critical path, VTCM and arena; its convs apart, and as planned.

Bytes of chains are the traffic of their plans, those of operators what they read and write. Packets are a model:
of chains the search's, of operators rates for each kind, fitted to `reports/operators.csv`, which runs leave by a
quarter as a rule. `hexconv verify` counts the packets of each step. Steps run one after the other, and those that have
threads share their work evenly, so the critical path is the sum of each step's packets over its threads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from hexconv.network.compiled import arena_of, lives_of
from hexconv.network.planned_model import PlannedModel
from hexconv.network.program_steps import OTHER, Filters, Operation, Program, Window

VECTOR_ELEMENTS = 128
EIGHT_BITS = ("uint8", "int8")


@dataclass(frozen=True)
class PartCost:
    """What the steps of one kind cost.

    Attributes:
        part: `chains`, or the name of an operator.
        steps: how many steps there are.
        before_bytes: the bytes that they move with every conv apart; None where a conv does not fit.
        after_bytes: the same as planned.
        before_packets: the packets of all threads with every conv apart, by the model; None likewise.
        after_packets: the same as planned.
        critical_packets: the packets of the slowest thread as planned.
    """

    part: str
    steps: int
    before_bytes: int | None
    after_bytes: int
    before_packets: int | None
    after_packets: int
    critical_packets: int


@dataclass(frozen=True)
class CallCost:
    """What a call of a network costs.

    Attributes:
        before_packets: the packets of all threads with every conv apart, by the model; None where a conv does not fit.
        after_packets: the same as planned.
        chains_before_packets: the part of `before_packets` that chains execute.
        chains_after_packets: the same part of `after_packets`.
        operators_before_packets: the part of `before_packets` that operators between chains execute.
        operators_after_packets: the same part of `after_packets`.
        critical_packets: the packets of the slowest thread, step by step, as planned.
        threads: the threads that a plan may have.
        vtcm_bytes: the VTCM of the piece that takes the most.
        arena_bytes: the memory of all tensors between steps.
        least_arena_bytes: a lower bound of any arena: the tensors of the fullest step.
        left: nodes and chains that hexconv computes by no step, which these figures leave out.
        parts: the same by kind of step.
    """

    before_packets: int | None
    after_packets: int
    chains_before_packets: int | None
    chains_after_packets: int
    operators_before_packets: int
    operators_after_packets: int
    critical_packets: int
    threads: int
    vtcm_bytes: int
    arena_bytes: int
    least_arena_bytes: int
    left: tuple[str, ...]
    parts: tuple[PartCost, ...]


def call_cost(planned: PlannedModel) -> CallCost:
    """Add up what a call of a planned model costs."""
    program, threads = planned.open_program, planned.question.plan.threads
    parts = [_chains(planned), *_operators(planned)]
    chains, operators = parts[0], parts[1:]
    cuts = [answer.cuts.best for answer in planned.network.planned if answer.cuts.best]
    arena = arena_of(lives_of(program))
    of_operators = sum(part.after_packets for part in operators)
    before = chains.before_packets
    return CallCost(
        before_packets=None if before is None else before + of_operators,
        after_packets=chains.after_packets + of_operators,
        chains_before_packets=before,
        chains_after_packets=chains.after_packets,
        operators_before_packets=of_operators,
        operators_after_packets=of_operators,
        critical_packets=sum(part.critical_packets for part in parts),
        threads=threads,
        vtcm_bytes=max((cut.footprint_bytes for cut in cuts), default=0),
        arena_bytes=arena.bytes,
        least_arena_bytes=arena.least_bytes,
        left=tuple(step.node for step in program.others),
        parts=tuple(parts),
    )


def _chains(planned: PlannedModel) -> PartCost:
    """The chains as one part: the figures of their best cuts, and of all convs apart."""
    answers = planned.network.planned
    best = [answer.cuts.best for answer in answers if answer.cuts.best]
    apart = [answer.cuts.separate for answer in answers]
    fitting = [cut for cut in apart if cut]
    is_whole = len(fitting) == len(apart)
    pieces = [piece.figures for cut in best for piece in cut.pieces]
    return PartCost(
        part="chains",
        steps=len(pieces),
        before_bytes=sum(cut.traffic_bytes for cut in fitting) if is_whole else None,
        after_bytes=sum(cut.traffic_bytes for cut in best),
        before_packets=round(sum(cut.latency_packets for cut in fitting)) if is_whole else None,
        after_packets=round(sum(figures.latency_packets for figures in pieces)),
        critical_packets=round(sum(figures.latency_packets / figures.plan.threads for figures in pieces)),
    )


def _operators(planned: PlannedModel) -> list[PartCost]:
    """The operators by kind, in the order in which kinds first come."""
    kinds: dict[str, list[Operation]] = {}
    for step in planned.open_program.steps:
        if isinstance(step, Operation) and step.operator != OTHER:
            kinds.setdefault(step.operator, []).append(step)
    on_hexagon = planned.question.target != "llvm"
    threads = planned.question.plan.threads
    return [_kind(planned.open_program, kind, steps, on_hexagon, threads) for kind, steps in kinds.items()]


def _kind(program: Program, kind: str, steps: list[Operation], on_hexagon: bool, threads: int) -> PartCost:
    packets = [packets_of(step, on_hexagon) for step in steps]
    spread = [
        count / (threads if in_vectors(step, on_hexagon) else 1) for step, count in zip(steps, packets, strict=True)
    ]
    moved, whole = sum(sum(program.moved_bytes(step)) for step in steps), round(sum(packets))
    return PartCost(kind, len(steps), moved, moved, whole, whole, round(sum(spread)))


def in_vectors(step: Operation, on_hexagon: bool = True) -> bool:
    """Whether an operator is computed in HVX, on all threads: it has an integer form."""
    return on_hexagon and bool(step.result.integers)


def packets_of(step: Operation, on_hexagon: bool = True) -> float:
    """Estimate the packets of an operator, of all threads together."""
    if in_vectors(step, on_hexagon):
        return IN_VECTORS.get(step.operator, lambda step: _unknown(step) / VECTOR_ELEMENTS)(step)
    return IN_C.get(step.operator, _unknown)(step)


def _vectors(elements: int) -> int:
    return -(-elements // VECTOR_ELEMENTS)


def _results(step: Operation) -> int:
    return prod(step.result.extents)


def _read(step: Operation) -> int:
    return prod(step.sources[0].extents)


def _taps(step: Operation) -> int:
    return prod(step.told(Window).kernel)


def _pooled(step: Operation) -> float:
    batch, rows, columns, channels = step.result.extents
    return batch * rows * columns * (19 + _vectors(channels) * (37 + 2.4 * _taps(step)))


def _converted(step: Operation) -> float:
    source, result = step.sources[0], step.result
    if source.layout != result.layout and not source.is_one_order:
        return 40 * _vectors(_results(step))
    return (52 if source.is_float else 60 if result.is_float else 8.2) * _vectors(_results(step)) + 60


def _converted_in_c(step: Operation) -> float:
    source, result = step.sources[0], step.result
    if source.is_float and result.is_float:
        return 28 * _results(step)
    return (8.2 if source.is_float else 2.9) * _results(step)


def _products(step: Operation) -> int:
    """The products of a matrix product or a transposed conv."""
    filters = step.told(Filters)
    if step.operator == "matmul":
        return _results(step) * filters.shape[3]
    return prod(step.sources[0].extents[:3]) * prod(filters.shape)


def _of_product(step: Operation) -> float:
    """Packets of one product: of codes, or of floats, which are added up in float64."""
    return 0.4 if step.sources[0].dtype in EIGHT_BITS and step.told(Filters).dtype == "int8" else 22.0


def _multiplied(step: Operation) -> float:
    """Two products of a vector a packet, and what makes codes of 128 sums of a pixel; of few outputs, of 32 pixels."""
    pixels = prod(step.sources[0].extents[:3])
    outputs = prod(step.told(Filters).shape[:3])
    return _products(step) / 200 + pixels * (22 if outputs <= 8 else 100 * _vectors(outputs))


def _unknown(step: Operation) -> float:
    return 30.0 * max(_results(step), _read(step))


Model = Callable[[Operation], float]
IN_VECTORS: Mapping[str, Model] = {
    "add": lambda step: 7 * _vectors(_results(step)) + 60,
    "multiply": lambda step: 20 * _vectors(_results(step)) + 12 * step.result.extents[3],
    "max_pool": _pooled,
    "global_average_pool": lambda step: 3.5 * _vectors(_read(step)) + 19 * step.result.extents[3],
    "convert": _converted,
    "concat": lambda step: 25 * _vectors(_results(step)),
    "matmul": _multiplied,
    "conv_transpose": _multiplied,
    "softmax": lambda step: 180 * _vectors(_results(step)),
}
"""Packets of operators in HVX."""
IN_C: Mapping[str, Model] = {
    "add": lambda step: 10.7 * _results(step),
    "multiply": lambda step: 10.1 * _results(step),
    "max_pool": lambda step: (11 + 0.55 * _taps(step)) * _results(step),
    "average_pool": lambda step: (11 + 0.55 * _taps(step)) * _results(step),
    "global_average_pool": lambda step: 14 * _read(step),
    "convert": _converted_in_c,
    "concat": lambda step: 2.8 * _results(step),
    "softmax": lambda step: 90.0 * _results(step),
    "matmul": lambda step: _of_product(step) * _products(step) + 20 * _results(step),
    "conv_transpose": lambda step: _of_product(step) * _products(step) + 15 * _results(step),
}
"""Packets of operators in plain C on Hexagon."""
