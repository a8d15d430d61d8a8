"""Choose which tensors stay in VTCM, the plans beside them and where chains are cut, before addresses are known.

    chain of three convs     0 ──────────── 3      one piece, with rings and filters of all
                             0 ── 1 ─────── 3      two pieces with smaller caches; what is between them may stay, too
                             0 ── 1 ── 2 ── 3

Steps are looked at in order, a chain piece after piece. A state is which tensors stay at a place; a step fits where its
caches and all tensors that stay are no more than VTCM has bytes. Of equal states the one with the least cost is kept.
So no choice of tensors, of cuts and of plans costs less, as long as no place has more than `MOST_STATES` states.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Generic, TypeVar

from hexconv.network.arena import Life
from hexconv.network.pairs import may_lie_over
from hexconv.network.plan_choices import Cost, PlanChoices
from hexconv.network.program_steps import Operation, Program, Step
from hexconv.search.grid import Figures

MOST_STATES = 2000
"""The most states of a step that are kept, those of the least cost."""
FEW_STATES = 50
"""As many find a way quickly; then no state is kept that can only lead to a way which costs more."""

Names = frozenset[str]


@dataclass(frozen=True)
class Run:
    """Steps of a program that call the pieces of one chain, and all pieces that it may have instead.

    Attributes:
        first: the number of the first of these steps, from 0 on.
        last: the number of the last one.
        between_bytes: the bytes of VTCM that the result of each conv but the last takes.
        pieces: the plans of each piece, by its first conv, from 0, and by the one behind its last.
    """

    first: int
    last: int
    between_bytes: tuple[int, ...]
    pieces: Mapping[tuple[int, int], PlanChoices]

    @property
    def count(self) -> int:
        """The number of convs, of a chain whose cut is fixed of its one piece."""
        return len(self.between_bytes) + 1

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The bytes of all tensors between pieces, by name."""
        return {self.name(place): size for place, size in enumerate(self.between_bytes, 1)}

    def name(self, place: int) -> str:
        """Name the result of so many of the convs."""
        return f"step {self.first} conv{place}"


Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Way(Generic[Kept]):
    """A way to run the first steps.

    Attributes:
        cost: what they move, and their packets.
        kept: the tensors that stay in VTCM at the last of them: their names, or where they lie, too.
        before: the way before the last of them; None of no step.
        plan: its plan, if it is a piece of a chain.
        piece: the first step of its chain, its first conv and the one behind its last, if it is a piece.
    """

    cost: Cost
    kept: Kept
    before: "Way[Kept] | None" = None
    plan: Figures | None = None
    piece: tuple[int, int, int] | None = None

    @property
    def steps(self) -> "list[Way[Kept]]":
        """The ways to each step, the first one first."""
        found, at = [], self
        while at.before is not None:
            found.append(at)
            at = at.before
        return found[::-1]


Ways = dict[Names, Way[Names]]


def least_way(
    program: Program, runs: Iterable[Run], stay: Mapping[str, Life], vtcm_bytes: int
) -> tuple[Way[Names] | None, bool]:
    """Return the way through all steps that costs least, and whether no state was dropped; None where nothing fits.

    Args:
        program: the steps.
        runs: the chains; every other step has no caches.
        stay: the tensors that may stay, by name, at the numbers of steps from 0 on.
        vtcm_bytes: the VTCM of the whole program.
    """
    known = {run.first: run for run in runs}
    later_bytes = least_later_bytes(program, known, stay, vtcm_bytes)

    def way(most_states: int, below: Cost | None) -> tuple[Way[Names] | None, bool]:
        nothing, at, is_exact = Names(), 0, True
        ways: Ways = {nothing: Way((0, 0.0), nothing)}
        while at < len(program.steps):
            if run := known.get(at):
                found, at = _past_chain(program, run, ways, stay, vtcm_bytes), run.last + 1
            else:
                found, at = _past_operator(program, at, ways, stay, vtcm_bytes), at + 1
            ways = _promising(found, later_bytes[at], below)
            kept = _cheapest(ways, most_states)
            is_exact, ways = is_exact and len(kept) == len(ways), kept
        return ways.get(nothing), is_exact

    known_way, _ = way(FEW_STATES, None)
    return way(MOST_STATES, known_way.cost if known_way else None)


def least_later_bytes(
    program: Program, runs: Mapping[int, Run], stay: Mapping[str, Life], vtcm_bytes: int
) -> list[int]:
    """Return for each number of steps the bytes that all steps behind these move if every tensor that may stay does.

    Args:
        program: the steps.
        runs: the chains, by the number of their first step.
        stay: the tensors that may stay.
        vtcm_bytes: the VTCM of the whole program.
    """
    alone, at = [0] * len(program.steps), 0
    while at < len(program.steps):
        if run := runs.get(at):
            alone[at] = _least_bytes(program, run, stay, vtcm_bytes)
            at = run.last + 1
        else:
            ends = bytes_by_tensor(program.steps[at])
            alone[at] = sum(program.moved_bytes(program.steps[at])) - sum(ends[each] for each in ends if each in stay)
            at += 1
    return list(accumulate(reversed(alone), initial=0))[::-1]


def _least_bytes(program: Program, run: Run, stay: Mapping[str, Life], vtcm_bytes: int) -> int:
    """Return what a chain moves at least, by the best of its cuts; nothing where no plan fits."""
    least = {0: 0}
    reads = program.steps[run.first].sources[0].buffer in stay
    writes = program.steps[run.last].result.buffer in stay
    for start, end in sorted(run.pieces):
        flags = (reads if start == 0 else True, writes if end == run.count else True)
        if start in least and (done := run.pieces[start, end].best(vtcm_bytes, flags)):
            least[end] = min(least.get(end, done[0][0] + least[start]), done[0][0] + least[start])
    return least.get(run.count, 0)


def _promising(ways: Ways, later_bytes: int, below: Cost | None) -> Ways:
    """Return the ways that may still cost no more than a known one."""
    if below is None:
        return ways
    return {kept: way for kept, way in ways.items() if (way.cost[0] + later_bytes, way.cost[1]) <= below}


def _cheapest(ways: Ways, most: int) -> Ways:
    if len(ways) <= most:
        return ways
    return {kept: ways[kept] for kept in sorted(ways, key=lambda kept: (ways[kept].cost, sorted(kept)))[:most]}


def _past_operator(program: Program, at: int, ways: Ways, stay: Mapping[str, Life], vtcm_bytes: int) -> Ways:
    """Extend all ways by a step without caches."""
    step, found = program.steps[at], Ways()
    moved, name, ends = sum(program.moved_bytes(step)), step.result.buffer, bytes_by_tensor(step)
    sizes, ending = {each: life.bytes for each, life in stay.items()}, {each for each in stay if stay[each].last <= at}
    is_first = name in stay and stay[name].first == at
    under = ends_under(step, at, stay)
    for live, before in ways.items():
        for kept in (live, live | {name}) if is_first else (live,):
            over = sizes[name] if name in kept and any(each in kept for each in under) else 0
            if sum([sizes[each] for each in kept]) - over <= vtcm_bytes:
                handed = sum([size for each, size in ends.items() if each in kept])
                _keep(found, kept - ending, Way((before.cost[0] + moved - handed, before.cost[1]), kept, before))
    return found


def _past_chain(program: Program, run: Run, ways: Ways, stay: Mapping[str, Life], vtcm_bytes: int) -> Ways:
    """Extend all ways by all cuts of a chain."""
    source, result = program.steps[run.first].sources[0].buffer, program.steps[run.last].result.buffer
    sizes = {name: life.bytes for name, life in stay.items()} | run.sizes
    at: dict[int, Ways] = {0: ways}
    for start, end in sorted(run.pieces):
        choices = run.pieces[start, end]
        read = run.name(start) if start else source
        made = run.name(end) if end < run.count else result
        found = at.setdefault(end, {})
        for live, before in at.get(start, {}).items():
            for kept in (live, live | {made}) if made in sizes else (live,):
                room = vtcm_bytes - sum(sizes[each] for each in kept)
                done = choices.best(room, (read in kept, made in kept))
                if done is None:
                    continue
                cost = before.cost[0] + done[0][0], before.cost[1] + done[0][1]
                later = (each for each in kept if each == made or (each in stay and stay[each].last > run.last))
                left = frozenset(later)
                _keep(found, left, Way(cost, kept, before, done[1], (run.first, start, end)))
    return at.get(run.count, {})


def _keep(found: Ways, left: Names, way: Way[Names]) -> None:
    if left not in found or way.cost < found[left].cost:
        found[left] = way


def lies_over(step: Step, at: int, kept: Names, stay: Mapping[str, Life]) -> str | None:
    """Name the tensor in VTCM that ends at a step, and in whose place the step writes its result, if that stays."""
    if step.result.buffer not in kept:
        return None
    return next((name for name in ends_under(step, at, stay) if name in kept), None)


def ends_under(step: Step, at: int, stay: Mapping[str, Life]) -> list[str]:
    """Name the tensors that no later step reads, and in whose place a step may write its result: it is as large."""
    result = stay.get(step.result.buffer)
    sources = [source.buffer for source in step.sources if source.buffer in stay and may_lie_over(step, source)]
    return [name for name in sources if result and stay[name].last == at and stay[name].bytes == result.bytes]


def in_one_place(steps: Sequence[Step], kept: Names, stay: Mapping[str, Life]) -> dict[str, str]:
    """Return for each tensor that stays the first one in whose place it lies: itself, mostly."""
    found: dict[str, str] = {}
    for at, step in enumerate(steps):
        over = lies_over(step, at, kept, stay)
        found[step.result.buffer] = found[over] if over else step.result.buffer
    return {name: found[name] for name in kept}


def bytes_by_tensor(step: Step) -> dict[str, int]:
    """Return the bytes that an operator reads or writes of each tensor; none of a call, whose plan says them."""
    found = dict[str, int]()
    for operand in (step.result, *step.sources) if isinstance(step, Operation) else ():
        found[operand.buffer] = found.get(operand.buffer, 0) + operand.bytes
    return found


def handed_bytes(step: Step, tops: Iterable[str]) -> tuple[int, int]:
    """Return the bytes that a step reads and writes in VTCM, where these tensors stay."""
    names = set(tops)
    read = sum(source.bytes for source in step.sources if source.buffer in names)
    return read, step.result.bytes if step.result.buffer in names else 0


ROUNDS = 64
"""How often tensors are given addresses anew, the one that found none before all others."""


def addresses(lives: Mapping[str, Life], taken_bytes: list[int], vtcm_bytes: int) -> dict[str, int] | str:
    """Give every tensor a place that no tensor beside it has, nor the caches of any step while it lives.

    Args:
        lives: the tensors.
        taken_bytes: the VTCM that each step's caches take, at the other end.
        vtcm_bytes: the VTCM of the whole program.

    Returns:
        The bytes from the top of VTCM to the end of each; of a tensor that found no place most often, its name.
    """
    order = sorted(lives, key=lambda name: (-lives[name].bytes, lives[name].first, name))
    failed = dict.fromkeys(order, 0)
    for _ in range(ROUNDS):
        tops: dict[str, int] = {}
        for name in order:
            most = vtcm_bytes - max(taken_bytes[lives[name].first : lives[name].last + 1])
            top = _top(name, lives, tops)
            if top > most:
                failed[name] += 1
                order = [name, *(other for other in order if other != name)]
                break
            tops[name] = top
        else:
            return tops
    return max(failed, key=lambda name: failed[name])


def _top(name: str, lives: Mapping[str, Life], tops: Mapping[str, int]) -> int:
    """Return the place nearest to the top that no tensor beside has."""
    size, top = lives[name].bytes, lives[name].bytes
    spans = sorted((tops[other] - lives[other].bytes, tops[other]) for other in tops if lives[other].meets(lives[name]))
    for begin, end in spans:
        if top <= begin:
            break
        top = max(top, end + size)
    return top
