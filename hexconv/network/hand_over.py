"""Hand tensors over in VTCM: from the step of a program that writes one to the last that reads it, none moves.

    address 0                                                            VTCM of the program
    | caches of the step, as its plan has them |  free  | tensor b | tensor a |
                                                          written by an earlier step, read by a later one

A tensor that stays in VTCM lies at one address all the while that it lives, in whole granules, beside the caches of all
steps in between. A chain may be planned again with less VTCM where what is saved is more than what that costs. Chains
copy from it and to it as from memory, by the same code; those copies move no byte of memory. The sum of an Add takes
the place of an operand that nobody reads later.

First tensors are chosen by their sizes, as if VTCM had no fragments (`hexconv.network.resident_sets`), and then given
addresses. Where these are found, the answer is exact among the plans of each chain's front. Else tensors that find none
are left out one by one, and the answer is held against that of a second search, over addresses: steps are looked at in
order, and a state is which tensors stay at a step, and where; a tensor goes to the top, or below one that is there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hexconv.analyze import planned_work
from hexconv.network.arena import Life, lives_of
from hexconv.network.plan_choices import Cost, PlanChoices
from hexconv.network.program_steps import OTHER, Call, Operation, Program, Resident, Step
from hexconv.network.resident_sets import (
    MOST_STATES,
    Run,
    Way,
    addresses,
    bytes_by_tensor,
    ends_under,
    handed_bytes,
    in_one_place,
    least_later_bytes,
    least_way,
)
from hexconv.search.grid import Figures
from hexconv.spec.capacities import granules_bytes

LEFT_OUT = 4
"""The most tensors that are left out since they find no address."""

Top = tuple[str, int]
"""A tensor in VTCM by name, and the bytes from the top of VTCM to its end: its own and those above it."""
Tops = tuple[Top, ...]
Done = tuple[Cost, Figures | None] | None
"""What a step costs beside tensors in VTCM, and its plan; None where it doesn't fit."""


@dataclass(frozen=True)
class HandOver:
    """Which tensors stay in VTCM, and the plan of each chain beside them.

    Attributes:
        residents: the tensors that stay.
        plans: the plan of each call, by the name of its case.
        vtcm_bytes: the VTCM that the whole program takes.
        chains_bytes: the bytes that chains would move besides by these plans, if no tensor stayed.
        operators_bytes: the same of operators.
        cost: the bytes of memory that all steps move, and the packets of chains.
        is_exact: whether no other tensors and plans cost less, of those that may be chosen.
    """

    residents: tuple[Resident, ...] = ()
    plans: Mapping[str, Figures] = field(default_factory=dict)
    vtcm_bytes: int = 0
    chains_bytes: int = 0
    operators_bytes: int = 0
    cost: Cost = (0, 0.0)
    is_exact: bool = True


def hand_over(program: Program, choices: Mapping[str, PlanChoices], vtcm_bytes: int, in_vectors: bool) -> HandOver:
    """Choose which tensors stay in VTCM, and the plan of each chain beside them.

    Args:
        program: the steps.
        choices: the plans of each call, by the name of its case; a call without any hands nothing over.
        vtcm_bytes: the VTCM of the whole program.
        in_vectors: whether operators on scalars leave their tensors in memory: scalar loads from VTCM are slow.
    """
    if not program.steps:
        return HandOver()
    stay = candidates(program, choices, vtcm_bytes, in_vectors)
    least, loose = _by_sizes(program, choices, stay, vtcm_bytes)
    ways = [loose] if loose else []
    if loose is None or loose[-1].cost > least:
        below = loose[-1].cost if loose else None
        ways += filter(None, [_by_addresses(program, choices, stay, vtcm_bytes, below)])
    if not ways:
        return HandOver(is_exact=False)
    best = min(ways, key=lambda way: way[-1].cost)
    return _chosen(program, best, stay, best[-1].cost <= least)


def _by_sizes(
    program: Program, choices: Mapping[str, PlanChoices], stay: Mapping[str, Life], vtcm_bytes: int
) -> tuple[Cost, Sequence[Way[Tops]] | None]:
    """Return what no way costs less than, and the least way whose tensors find addresses; None where none does."""
    runs = _runs(program, choices).values()
    least: Cost = (0, 0.0)
    for left_out in range(LEFT_OUT + 1):
        way, is_exact = least_way(program, runs, stay, vtcm_bytes)
        if way is None:
            break
        if not left_out and is_exact:
            least = way.cost
        taken = [each.plan.footprint_bytes if each.plan else 0 for each in way.steps]
        kept = frozenset(name for each in way.steps for name in each.kept)
        place = in_one_place(program.steps, kept, stay)
        tops = addresses(_together(place, stay), taken, vtcm_bytes)
        if not isinstance(tops, str):
            return least, [
                Way(each.cost, tuple((name, tops[place[name]]) for name in sorted(each.kept)), plan=each.plan)
                for each in way.steps
            ]
        stay = {name: life for name, life in stay.items() if name != tops}
    return least, None


def _runs(program: Program, choices: Mapping[str, PlanChoices]) -> dict[int, Run]:
    """Return the calls of chains, whose cuts are fixed, by their numbers."""
    fixed = (choices.get(step.node) if isinstance(step, Call) else None for step in program.steps)
    return {at: Run(at, at, (), {(0, 1): plans}) for at, plans in enumerate(fixed) if plans}


def _together(place: Mapping[str, str], stay: Mapping[str, Life]) -> dict[str, Life]:
    """Return the lives of all tensors in one place as that of the first one of them."""
    lives: dict[str, Life] = {}
    for name, first in place.items():
        life = stay[name]
        known = lives.get(first, life)
        lives[first] = Life(min(known.first, life.first), max(known.last, life.last), life.bytes)
    return lives


def _by_addresses(
    program: Program, choices: Mapping[str, PlanChoices], stay: Mapping[str, Life], vtcm_bytes: int, below: Cost | None
) -> Sequence[Way[Tops]] | None:
    """Return the least way among those whose tensors go to the top, or below one that is there; None if none is less.

    Args:
        program: the steps.
        choices: the plans of each call, by the name of its case.
        stay: the tensors that may stay.
        vtcm_bytes: the VTCM of the whole program.
        below: what the way has to cost less than; None of any cost.
    """
    states = {(): Way((0, 0.0), Tops())}
    later_bytes = least_later_bytes(program, _runs(program, choices), stay, vtcm_bytes)[1:]
    for at, step in enumerate(program.steps):
        costs = _cost_of(program, step, choices)
        found: dict[Tops, Way[Tops]] = {}
        for live, before in states.items():
            for tops in _placed(live, step, at, stay):
                room = vtcm_bytes - max((top for _, top in tops), default=0)
                if room < 0 or (done := costs(room, tops)) is None:
                    continue
                cost = before.cost[0] + done[0][0], before.cost[1] + done[0][1]
                if below and (cost[0] + later_bytes[at], cost[1]) >= below:
                    continue
                left = tuple(each for each in tops if stay[each[0]].last > at)
                if left not in found or cost < found[left].cost:
                    found[left] = Way(cost, tops, before, done[1])
        kept = sorted(found, key=lambda tops: (found[tops].cost, tops))[:MOST_STATES]
        states = {tops: found[tops] for tops in kept}
    return states[()].steps if () in states else None


def candidates(
    program: Program, choices: Mapping[str, PlanChoices], vtcm_bytes: int, in_vectors: bool
) -> dict[str, Life]:
    """Return the tensors that may stay, by name: none that the caller's own code touches, or that is not read."""
    kept = [name for step in program.steps if not _may_touch(step, choices, in_vectors) for name in _touched(step)]
    lives = {name: life for name, life in lives_of(program).items() if name not in kept and life.last > life.first}
    sized = {name: Life(life.first, life.last, granules_bytes(life.bytes)) for name, life in lives.items()}
    return {name: life for name, life in sized.items() if life.bytes <= vtcm_bytes}


def _may_touch(step: Step, choices: Mapping[str, PlanChoices], in_vectors: bool) -> bool:
    if isinstance(step, Call):
        return step.node in choices
    return step.operator != OTHER and (bool(step.result.integers) or not in_vectors)


def _touched(step: Step) -> Iterator[str]:
    yield from (operand.buffer for operand in (step.result, *step.sources))


def _placed(live: Tops, step: Step, at: int, stay: Mapping[str, Life]) -> Iterator[Tops]:
    """Yield the tensors in VTCM at a step: those before it, and the one that it writes at each place, or in memory.

    A place may be that of an operand which nobody reads later.
    """
    yield live
    name = step.result.buffer
    if name not in stay or stay[name].first != at:
        return
    size, spans = stay[name].bytes, [(top - stay[other].bytes, top) for other, top in live]
    for start in sorted({0, *(top for _, top in live)}):
        if all(start + size <= begin or end <= start for begin, end in spans):
            yield tuple(sorted((*live, (name, start + size))))
    under = ends_under(step, at, stay)
    for top in [top for other, top in live if other in under]:
        yield tuple(sorted((*live, (name, top))))


def _cost_of(program: Program, step: Step, choices: Mapping[str, PlanChoices]) -> Callable[[int, Iterable[Top]], Done]:
    """Return what tells a step's cost, by the room for its caches and the tensors in VTCM."""
    if isinstance(step, Call) and step.node in choices:
        read, made, plans = step.sources[0].buffer, step.result.buffer, choices[step.node]

        def by_plan(room_bytes: int, tops: Iterable[Top]) -> Done:
            names = {name for name, _ in tops}
            return plans.best(room_bytes, (read in names, made in names))

        return by_plan
    moved = sum(program.moved_bytes(step))
    sizes = bytes_by_tensor(step)
    return lambda _room_bytes, tops: ((moved - sum(sizes.get(name, 0) for name, _ in tops), 0.0), None)


def _chosen(program: Program, way: Sequence[Way[Tops]], stay: Mapping[str, Life], is_exact: bool) -> HandOver:
    """Return what a way through all steps hands over, the tensors at their addresses."""
    whole = max(_bytes(state) for state in way)
    tops = {name: top for state in way for name, top in state.kept}
    residents = tuple(
        Resident(name, stay[name].first + 1, stay[name].last + 1, whole - top, stay[name].bytes)
        for name, top in sorted(tops.items(), key=lambda each: (stay[each[0]].first, each[0]))
    )
    plans = {step.node: state.plan for step, state in zip(program.steps, way, strict=True) if state.plan}
    chains = sum(
        planned_work(step.case.chain, plans[step.node].plan).traffic_bytes[end]
        for step in program.calls
        for end, name in (("input", step.sources[0].buffer), ("output", step.result.buffer))
        if name in tops
    )
    others = sum(sum(handed_bytes(step, tops)) for step in program.steps if isinstance(step, Operation))
    return HandOver(residents, plans, whole, chains, others, way[-1].cost, is_exact)


def _bytes(state: Way[Tops]) -> int:
    """The VTCM of one step: its caches, and the tensors beside them."""
    return max((top for _, top in state.kept), default=0) + (state.plan.footprint_bytes if state.plan else 0)
