"""What a call of a network costs: bytes, packets, critical path, VTCM and arena; its convs apart, and as planned.

Bytes of chains are the traffic of their plans; those of operators are what they read and write, weights and tables
included. Packets are a model: of chains the search's, of operators prices for each kind, which
`reports.operator_prices` fits to `reports/operators.csv`, and of which it tells the error. `hexconv verify` counts the
packets of each step.
Steps run one after the other, and those that have threads share their work evenly, so the critical path is the sum of
each step's packets over its threads; on the matrix engine it is the engine's time, and the packets of the slowest
thread beside it.
"""

from functools import cache
from importlib.resources import files
from math import inf, prod
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from hexconv.network.arena import arena_of, lives_of
from hexconv.network.pairs import ADD, PAIRS
from hexconv.network.program_steps import (
    NHWC,
    OTHER,
    Filters,
    Operand,
    Operation,
    Program,
    Resident,
    View,
    Window,
    is_codes,
)
from hexconv.network.resident_sets import handed_bytes
from hexconv.search.adds_apart import moved_by_add
from hexconv.search.grid import Figures
from hexconv.search.question import Question
from hexconv.spec import Chain
from hexconv.spec.case import parse_table

if TYPE_CHECKING:
    from hexconv.network.planned_model import PlannedModel

VECTOR_ELEMENTS = 128


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
        operators_error: nine of ten operators differ from the model of packets by no more than this share.
        threads: the threads that a plan may have.
        vtcm_bytes: the VTCM of the piece that takes the most, or of all pieces and the tensors that stay beside them.
        residents: the tensors that stay in VTCM from one step to a later one.
        arena_bytes: the memory of all other tensors between steps.
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
    operators_error: float
    threads: int
    vtcm_bytes: int
    residents: tuple[Resident, ...]
    arena_bytes: int
    least_arena_bytes: int
    left: tuple[str, ...]
    parts: tuple[PartCost, ...]


def call_cost(planned: "PlannedModel") -> CallCost:
    """Add up what a call of a planned model costs."""
    program, threads = planned.open_program, planned.question.plan.threads
    answers = planned.account.planned
    parts = [_chains(planned), *_operators(planned)]
    chains, operators = parts[0], parts[1:]
    cuts = [answer.cuts.best for answer in answers if answer.cuts.best]
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
        operators_error=operator_prices().error,
        threads=threads,
        vtcm_bytes=program.vtcm_bytes or max((cut.footprint_bytes for cut in cuts), default=0),
        residents=program.residents,
        arena_bytes=arena.bytes,
        least_arena_bytes=arena.least_bytes,
        left=tuple(step.node for step in program.others),
        parts=tuple(parts),
    )


def _chains(planned: "PlannedModel") -> PartCost:
    """The chains as one part: the figures of their best cuts, and of all convs apart."""
    answers = planned.account.planned
    best = [answer.cuts.best for answer in answers if answer.cuts.best]
    apart = [answer.separate for answer in answers]
    fitting = [cut for cut in apart if cut]
    is_whole = len(fitting) == len(apart)
    pieces = [piece.figures for cut in best for piece in cut.pieces]
    adds = [(answer.chain, index) for answer in answers for index, conv in enumerate(answer.chain.conv) if conv.add]
    added = sum(price_of_add(*add, planned.question)["latency_packets"] for add in adds)
    return PartCost(
        part="chains",
        steps=len(pieces),
        before_bytes=sum(cut.traffic_bytes for cut in fitting) if is_whole else None,
        after_bytes=sum(cut.traffic_bytes for cut in best) - planned.handed.chains_bytes,
        before_packets=round(added + sum(cut.latency_packets for cut in fitting)) if is_whole else None,
        after_packets=round(sum(figures.latency_packets for figures in pieces)),
        critical_packets=round(sum(map(_critical_packets, pieces))),
    )


def _critical_packets(figures: Figures) -> float:
    """Return the packets of the slowest thread of a plan; of the matrix engine, which all wait for, its whole time."""
    if figures.plan.kernel == "hmx":
        return figures.time_packets(inf)
    return figures.latency_packets / figures.plan.threads


def _operators(planned: "PlannedModel") -> list[PartCost]:
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
        count / (threads if in_vectors(step, on_hexagon) or _by_rows(step, on_hexagon) else 1)
        for step, count in zip(steps, packets, strict=True)
    ]
    moved, whole = sum(sum(program.moved_bytes(step)) for step in steps), round(sum(packets))
    names = [each.tensor for each in program.residents]
    handed = sum(sum(handed_bytes(step, names)) for step in steps)
    return PartCost(kind, len(steps), moved, moved - handed, whole, whole, round(sum(spread)))


def price_of_add(chain: Chain, index: int, question: Question) -> dict[str, float]:
    """Return what the Add of conv `index` costs as an operator, by the figures that a search compares."""
    on_hexagon = question.target != "llvm"
    operand = Operand("", chain.shapes[index + 1], chain.dtype, integers="form")
    step = Operation(ADD, "", (operand, operand), operand)
    packets, moved = packets_of(step, on_hexagon), moved_by_add(chain, index)
    threads = question.plan.threads if on_hexagon else 1
    return {
        "latency_packets": packets,
        "traffic_bytes": float(moved),
        "time_packets": max(packets / threads, moved / question.beta),
        "footprint_bytes": 0.0,
    }


def in_vectors(step: Operation, on_hexagon: bool = True) -> bool:
    """Whether an operator is computed in HVX, on all threads: it has an integer form."""
    return on_hexagon and bool(step.result.integers)


def _by_rows(step: Operation, on_hexagon: bool) -> bool:
    """Whether plain C computes rows of two tensors on all threads: an image's, one after the other in memory."""
    operands = (*step.sources, step.result)
    return (
        on_hexagon
        and step.operator in PAIRS
        and step.result.extents[1] > 1
        and all(each.extents[0] == 1 and each.layout == NHWC and (each.is_float or is_codes(each)) for each in operands)
    )


def packets_of(step: Operation, on_hexagon: bool = True) -> float:
    """Estimate the packets of an operator, of all threads together."""
    prices = operator_prices().kinds
    parts = prices.get(kind_of(step, on_hexagon)) or prices[_way(step, on_hexagon)]
    return sum(price * parts_of(step)[part] for part, price in parts.items())


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class OperatorPrices:
    """The packets of the parts of operators, as `reports.operator_prices` fits them to runs on the simulator.

    Attributes:
        source: how they were measured.
        error: nine of ten drawn operators that they were not fitted to differ by no more than this share.
        errors: the same by kind.
        kinds: the packets of one occurrence of each part, by kind; `hvx` and `plain` are of kinds without an own one.
    """

    source: str
    error: float
    errors: dict[str, float]
    kinds: dict[str, dict[str, float]]


PRICES = files("hexconv.network") / "operator_prices.toml"


@cache
def operator_prices() -> OperatorPrices:
    """Read the prices."""
    return TypeAdapter(OperatorPrices).validate_python(parse_table(PRICES.read_text(encoding="utf-8"), "prices"))


def _way(step: Operation, on_hexagon: bool) -> str:
    return "hvx" if in_vectors(step, on_hexagon) else "plain"


def kind_of(step: Operation, on_hexagon: bool = True) -> str:
    """Return the kind of an operator, by which it has prices: how it is computed, and what it does."""
    word, source, result = step.operator, step.sources[0], step.result
    if word == "convert":
        turns = source.layout != result.layout and not source.is_one_order
        word = "quantise" if source.is_float else "dequantise" if result.is_float else "requantise"
        word = "turn" if turns and not (source.is_float or result.is_float) else word
    elif any(each.is_float for each in step.sources[1:]):
        word = f"{word} by floats"
    return f"{_way(step, on_hexagon)} {word}"


def parts_of(step: Operation) -> dict[str, float]:
    """Return how often each part occurs that an operator's packets are made of.

    A part is a call, an element, a vector of 128, a pixel, a block of up to 128 channels of a pixel, with its taps, a
    channel, a product, or a line of a view: its innermost loop.
    """
    source, result = step.sources[0], step.result
    elements, read = prod(result.extents), sum(prod(each.extents) for each in step.sources)
    batch, rows, columns, channels = result.extents
    blocks = batch * rows * columns * _vectors(channels)
    taps, products, lines, line_vectors = 1.0, 0.0, 1.0, 0.0
    for how in step.how:
        if isinstance(how, Window):
            taps = float(prod(how.kernel))
        elif isinstance(how, Filters):
            products = float(prod(source.extents[:3]) * prod(how.shape))
        elif isinstance(how, View):
            lines = float(prod(each.size for each in how.dimensions[:-1]))
            line_vectors = lines * _vectors(how.dimensions[-1].size)
    return {
        "call": 1.0,
        "element": float(elements),
        "read": float(read),
        "vector": float(_vectors(elements)),
        "vector_read": float(sum(_vectors(prod(each.extents)) for each in step.sources)),
        "pixel": float(batch * rows * columns),
        "pixel_read": float(prod(source.extents[:3])),
        "block": float(blocks),
        "block_tap": blocks * taps,
        "element_tap": elements * taps,
        "channel": float(channels),
        "channel_vector": float(_vectors(channels)),
        "product": products,
        "product_vector": products / VECTOR_ELEMENTS,
        "line": lines,
        "line_vector": line_vectors,
    }


def _vectors(elements: int) -> int:
    return -(-elements // VECTOR_ELEMENTS)
