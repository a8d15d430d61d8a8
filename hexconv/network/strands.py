"""How bytes of sources become the vectors of a result: strands of vectors that are alike, which HVX weaves.

    loops around a unit of bytes  ->  candidates for strands  ->  the ones of the fewest packets

A strand is a loop of two levels whose turns make one vector each, of pieces of vectors of the sources: what tells the
bytes of a piece where they go is the same in all turns. Where a result and its sources begin with vectors, so do all
pieces after some units: then no access is unaligned, and no byte is written twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, inf, prod

import numpy as np

from hexconv.network.integer_form import DOWN, UP, VECTOR_BYTES, routed
from hexconv.run.tensors import Array

PLAIN, SPREADS, GATHERS, HALF_TABLE, WHOLE_TABLE = range(5)
"""How bytes of a piece go where they belong: by where it is read, `vdelta`, `vrdelta`, or two or four `vlut32`."""
MOST_PIECES, MOST_TABLES, MOST_STRANDS = 8, 3, 320
NO_BYTE = 255
"""An index that no table of a vector has."""
LONG_RUN = 2 * VECTOR_BYTES
"""Bytes side by side in a source and in a result that are a strand of their own, where units don't come together."""
MOST_APART = 16
"""How many turns of loops outside of the two of a strand have strands of their own."""

STRAND, TURN, PIECE, CHANGES, EDGE = 120, 60, 12, 30, 90
"""Packets of a strand, of a turn of its outer loop, of a piece of it, of what changes in it, of a turn at an edge."""
EACH, CHANGED, MASKED, FREE_MASKS = 0.6, 2.5, 1.4, 5
"""Packets of a vector besides its pieces, and where it changes; of a piece that a mask keeps apart, of more."""
OF_PIECE = {
    PLAIN: (1.1, 1.7),
    SPREADS: (1.25, 2.2),
    GATHERS: (1.25, 2.2),
    HALF_TABLE: (2.3, 3.3),
    WHOLE_TABLE: (4.1, 5.3),
}
"""Packets of a piece by its way: where all accesses are aligned, and where they are not."""


@dataclass(frozen=True)
class Loop:
    """A loop around a unit.

    Attributes:
        turns: how many turns it has.
        steps: for each source, how far its bytes lie from those of the turn before.
        step: the same of the result.
    """

    turns: int
    steps: tuple[int, ...]
    step: int

    @property
    def is_aligned(self) -> bool:
        """Whether whole vectors stay whole vectors."""
        return all(each % VECTOR_BYTES == 0 for each in (*self.steps, self.step))


ONCE = Loop(1, (), 0)


@dataclass(frozen=True)
class Unit:
    """Bytes that lie side by side in a result: of which source each is, and which byte of it."""

    sources: Array
    places: Array

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.sources)


@dataclass(frozen=True)
class Piece:
    """A vector of a source.

    Attributes:
        source: the number of the source.
        first: where the vector lies in the first turn.
        control: what its way is told for each lane.
        lanes: the lanes of the result that are its own.
    """

    source: int
    first: int
    control: Array
    lanes: Array


@dataclass(frozen=True)
class Strand:
    """Vectors of a result that are made alike.

    Attributes:
        way: how bytes go where they belong.
        size: the bytes of a vector that are made; more are written only where a next turn writes over them.
        to: where the first one lies.
        loops: the outer and the inner one.
        pieces: what a vector is made of.
        packets: about what all turns take.
    """

    way: int
    size: int
    to: int
    loops: tuple[Loop, Loop]
    pieces: tuple[Piece, ...]
    packets: float

    @property
    def is_aligned(self) -> bool:
        """Whether all vectors begin with a vector."""
        own = {each.source for each in self.pieces}
        steps = [step for loop in self.loops for at, step in enumerate(loop.steps) if at in own]
        places = [self.to, *(loop.step for loop in self.loops), *steps, *(each.first for each in self.pieces)]
        return all(each % VECTOR_BYTES == 0 for each in places)


@dataclass(frozen=True)
class Woven:
    """A result as strands."""

    strands: tuple[Strand, ...]

    @property
    def packets(self) -> float:
        """About what they take."""
        return sum(each.packets for each in self.strands)

    def laid_out(self, changes: Sequence[int], tables: Sequence[bool], before: int) -> tuple[tuple[int, ...], bytes]:
        """Return what C is told of strands, and their bytes: strands, then controls.

        Args:
            changes: for each source how its codes change.
            tables: for each source whether its codes are looked up.
            before: where in the form these bytes begin.
        """
        rows, controls = [], {bytes(VECTOR_BYTES): 0}
        for strand in self.strands:
            pieces = [*strand.pieces]
            own = {each.source for each in pieces}
            fields = [strand.way, max(changes[each] for each in own), int(any(tables[each] for each in own))]
            fields += [int(strand.is_aligned), strand.size]
            outer, inner = strand.loops
            told = list[int]()
            for each in pieces:
                mask = np.zeros(VECTOR_BYTES, np.uint8)
                mask[each.lanes] = 255
                numbers = [controls.setdefault(it.tobytes(), len(controls)) for it in (each.control, mask)]
                steps = [loop.steps[each.source] if loop.steps else 0 for loop in (outer, inner)]
                told += [each.source, each.first, *steps, *numbers]
            if strand.way < HALF_TABLE and len(pieces) == MOST_PIECES - 1:
                told += [*told[-6:-1], 0]
                pieces = [*pieces, pieces[-1]]
            fields += [len(pieces), outer.turns, inner.turns, strand.to, outer.step, inner.step]
            rows.append(np.array([*fields, *told], np.int32).tobytes().ljust(STRAND_BYTES, b"\0"))
        strands = b"".join(rows)
        return (len(rows), before, before + len(strands)), strands + b"".join(controls)


STRAND_BYTES = 2 * VECTOR_BYTES
HALVES_LOOP = 63
"""HEXCONV_HALVES: the bit of the loop that exchanges two halves, which a form of no strands has."""


def loops_of_form(form: Array) -> set[int]:
    """Return which loops a form of a view or of tensors side by side takes: HEXCONV_WAY_OF_STRAND of each strand."""
    count, first = form[2 * 4 :][: 2 * 4].view("<i4").tolist()
    rows = form[first : first + count * STRAND_BYTES].view("<i4").reshape(count, STRAND_BYTES // 4)
    found = set[int]()
    for way, change, looks_up, _, _, pieces in rows[:, :6].tolist():
        number = pieces if pieces < MOST_PIECES - 1 else MOST_PIECES
        found.add(
            53 + way * 3 - 6 + number if way >= HALF_TABLE else way * 24 + (0 if looks_up else change) * 8 + number - 1
        )
    return found


def woven(unit: Unit, loops: Sequence[Loop], changes: bool = False, most: float = inf) -> Woven | None:
    """Find strands for a unit and the loops around it, the innermost one last; None where there are none.

    Args:
        unit: what all loops repeat; its bytes fill a turn of the innermost loop.
        loops: the loops.
        changes: whether codes change, which tables can't.
        most: the packets that another way takes.
    """
    best = None
    if not loops or loops[-1].step != unit.size:
        loops = [*loops, Loop(1, (0,) * (int(unit.sources.max()) + 1), unit.size)]
    for outer, bases in _outer_loops(loops[:-1], len(loops[-1].steps)):
        for way in (_by_periods, _by_units, _by_runs):
            made = list[Strand]()
            for to, firsts in bases:
                is_alone = len(bases) == 1
                some = way(_Region(unit, loops[-1], outer, to, firsts, is_alone, changes, most / len(bases)))
                if some is None or len(made) + len(some) > MOST_STRANDS:
                    break
                made += some
            else:
                found = Woven(tuple(made))
                if found.packets < most:
                    best, most = found, found.packets
    return best


def _outer_loops(loops: Sequence[Loop], sources: int) -> Iterator[tuple[Loop, list[tuple[int, tuple[int, ...]]]]]:
    """One of the loops as the outer one of strands, and where these begin in the turns of all others."""
    for own in (*range(len(loops)), None):
        others = [each for at, each in enumerate(loops) if at != own]
        if prod(each.turns for each in others) > MOST_APART:
            continue
        bases = [(0, (0,) * sources)]
        for each in others:
            bases = [
                (
                    to + turn * each.step,
                    tuple(first + turn * step for first, step in zip(firsts, each.steps, strict=True)),
                )
                for to, firsts in bases
                for turn in range(each.turns)
            ]
        yield ONCE if own is None else loops[own], bases


@dataclass(frozen=True)
class _Region:
    """The turns of an inner loop, from one place of the result on, and again in the turns of an outer one.

    It is alone where no other strands lie between the turns of the outer loop.
    """

    unit: Unit
    inner: Loop
    outer: Loop
    to: int
    firsts: tuple[int, ...]
    is_alone: bool
    changes: bool
    most: float

    @property
    def bytes(self) -> int:
        return self.inner.turns * self.unit.size

    @cached_property
    def steps(self) -> Array:
        return np.array(self.inner.steps, np.int64)

    def strand(self, begin: int, size: int, inner: Loop, is_aligned: bool) -> Strand | None:
        """Make a strand of vectors of which the first one begins with a byte of the region."""
        turn, place = np.divmod(np.arange(begin, begin + size), self.unit.size)
        sources = self.unit.sources[place]
        places = self.unit.places[place] + turn * self.steps[sources] + np.array(self.firsts, np.int64)[sources]
        aligned = is_aligned and self.outer.is_aligned and inner.is_aligned
        found = _pieces(sources, places, aligned, self.changes)
        if found is None:
            return None
        way, pieces, each = found
        if size < VECTOR_BYTES and inner.step != size:
            each = EDGE
        turns = inner.turns * self.outer.turns
        edges = EDGE * (VECTOR_BYTES // size) if size < VECTOR_BYTES else 0.0
        once = STRAND + PIECE * len(pieces) + (CHANGES + PIECE * len(pieces) if self.changes else 0)
        packets = once + self.outer.turns * TURN + turns * each + edges
        return Strand(way, size, self.to + begin, (self.outer, inner), pieces, packets)

    def times(self, turns: int, units: int) -> Loop:
        """Turns of so many units each."""
        return Loop(turns, tuple(units * each for each in self.inner.steps), units * self.unit.size)


def _by_periods(region: _Region) -> list[Strand] | None:
    """Whole vectors of the result: after some units all of them and their sources lie as before."""
    numbers = (region.unit.size, *region.inner.steps)
    units = max(VECTOR_BYTES // gcd(VECTOR_BYTES, each) for each in numbers)
    apart = units * region.unit.size // VECTOR_BYTES
    start = -region.to % VECTOR_BYTES
    vectors = (region.bytes - start) // VECTOR_BYTES
    if region.outer.turns > 1 and not region.outer.is_aligned:
        return None
    if vectors <= 0 or min(apart, vectors) > MOST_STRANDS:
        return None
    made = list[Strand]()
    for phase in range(min(apart, vectors)):
        loop = region.times(-(-(vectors - phase) // apart), units)
        strand = region.strand(start + phase * VECTOR_BYTES, VECTOR_BYTES, loop, True)
        if strand is None or (len(made) + 1) * STRAND + sum(each.packets for each in made) > region.most:
            return None
        made.append(strand)
    ends = [_part(region, 0, start), _part(region, start + vectors * VECTOR_BYTES, region.bytes)]
    return None if None in ends else [*made, *(each for some in ends if some for each in some)]


def _part(region: _Region, begin: int, end: int) -> list[Strand] | None:
    """Less than a vector."""
    if begin == end:
        return []
    strand = region.strand(begin, end - begin, region.times(1, 0), False)
    if strand is not None:
        return [strand]
    halves = [_part(region, *each) for each in ((begin, (begin + end) // 2), ((begin + end) // 2, end))]
    return None if None in halves or end - begin < 2 else [each for some in halves if some for each in some]


def _by_units(region: _Region) -> list[Strand] | None:
    """Some units at a time that fit a vector; what it has behind them, the next one writes over."""
    size, turns, best = region.unit.size, region.inner.turns, None
    gap = region.outer.step - turns * size if region.outer.turns > 1 else 0
    is_free = gap == 0 or (region.is_alone and gap >= VECTOR_BYTES)  # what lies between turns is made again of them
    if size > VECTOR_BYTES or not is_free:
        return None
    most = min(VECTOR_BYTES // size, turns)
    for units in dict.fromkeys((most, 1 << (most.bit_length() - 1), most // 2, most // 4)):
        if units == 0 or (region.outer.turns > 1 and turns % units):
            continue
        whole = region.strand(0, units * size, region.times(turns // units, units), False)
        rest = _part(region, turns // units * units * size, region.bytes)
        if whole is not None and rest is not None:
            made = [whole, *rest]
            if best is None or Woven(tuple(made)).packets < Woven(tuple(best)).packets:
                best = made
    return best


def _by_runs(region: _Region) -> list[Strand] | None:
    """Long runs of a source in each unit, and vectors between them; in as many turns as there are units, or in one."""
    unit, made, begin = region.unit, list[Strand](), 0
    if region.outer.turns > 1:
        return None
    ends = np.flatnonzero((np.diff(unit.places) != 1) | (np.diff(unit.sources) != 0)) + 1
    ends = np.append(ends, unit.size)
    while begin < unit.size:
        run = int(ends[np.searchsorted(ends, begin, side="right")]) - begin
        if len(made) > MOST_STRANDS or len(made) * STRAND > region.most:
            return None
        if run >= LONG_RUN:
            source, place = int(unit.sources[begin]), int(unit.places[begin])
            made += _long_run(region, begin, run, source, place + region.firsts[source])
            begin += run
            continue
        strand = _vector(region, begin)
        if strand is None:
            return None
        made.append(strand)
        begin = strand.to - region.to + strand.size
    return made


def _vector(region: _Region, begin: int) -> Strand | None:
    """A vector of each unit from a byte on, or one that ends with the unit; fewer bytes of it, of too many pieces."""
    last, loop = region.unit.size - VECTOR_BYTES, region.times(region.inner.turns, 1)
    if 0 <= last < begin and (strand := region.strand(last, VECTOR_BYTES, loop, False)):
        return strand
    size = min(VECTOR_BYTES, region.unit.size - begin)
    while (strand := region.strand(begin, size, loop, False)) is None and size > 1:
        size //= 2
    return strand


def _long_run(region: _Region, begin: int, run: int, source: int, place: int) -> list[Strand]:
    """Vectors of a run, and one more that ends with it."""
    own, made = np.arange(VECTOR_BYTES), list[Strand]()
    units = Loop(region.inner.turns, region.inner.steps, region.inner.step)
    none = np.zeros(VECTOR_BYTES, np.uint8)
    lead = min(-(region.to + begin) % VECTOR_BYTES, run - VECTOR_BYTES) if units.step % VECTOR_BYTES == 0 else 0
    rest = (run - lead) % VECTOR_BYTES
    for at, turns in ((0, int(lead > 0)), (lead, (run - lead) // VECTOR_BYTES), (run - VECTOR_BYTES, int(rest > 0))):
        if turns == 0:
            continue
        along = Loop(turns, tuple(VECTOR_BYTES for _ in units.steps), VECTOR_BYTES)
        outer, inner = (units, along) if turns >= units.turns else (along, units)
        piece = Piece(source, place + at, none, own)
        aligned = (place + at) % VECTOR_BYTES == 0 and (region.to + begin + at) % VECTOR_BYTES == 0 and units.is_aligned
        each = (1.0 if aligned else EACH + OF_PIECE[PLAIN][1]) + CHANGED * region.changes
        packets = STRAND + PIECE + (CHANGES if region.changes else 0) + outer.turns * (TURN + inner.turns * each)
        made.append(Strand(PLAIN, VECTOR_BYTES, region.to + begin + at, (outer, inner), (piece,), packets))
    return made


def _pieces(sources: Array, places: Array, aligned: bool, changes: bool) -> tuple[int, tuple[Piece, ...], float] | None:
    """What a vector is made of, in the way of the fewest packets, and these; None where it takes too many pieces.

    Args:
        sources: of which source each byte is.
        places: which byte of it.
        aligned: whether vectors of sources that begin at a multiple of a vector are read at aligned addresses.
        changes: whether codes change.
    """
    best = None
    for way, found in _ways(sources, places, aligned, changes):
        are_aligned = aligned and all(each.first % VECTOR_BYTES == 0 for each in found)
        packets = EACH + len(found) * OF_PIECE[way][0 if are_aligned else 1] + CHANGED * changes
        packets += MASKED * len(found) if len(found) > FREE_MASKS else 0.0
        if way == PLAIN and are_aligned and len(found) == 1 and not changes:
            packets = 1.0
        if best is None or packets < best[2]:
            best = way, tuple(found), packets
    return best


def _ways(sources: Array, places: Array, aligned: bool, changes: bool) -> Iterator[tuple[int, list[Piece]]]:
    lanes, nothing = np.arange(len(places)), np.zeros(VECTOR_BYTES, np.uint8)
    shifts = list(dict.fromkeys(zip(sources.tolist(), (places - lanes).tolist(), strict=True)))
    if len(shifts) <= MOST_PIECES:
        shifted = places - lanes
        yield PLAIN, [Piece(one, at, nothing, lanes[(sources == one) & (shifted == at)]) for one, at in shifts]
    windows = list(_windows(sources, places, aligned))
    if len(windows) > MOST_PIECES:
        return
    ways = ((SPREADS, DOWN),) if changes else ((SPREADS, DOWN), (GATHERS, UP))
    for way, distances in ways:
        found = list[Piece]()
        for source, first, own in windows:
            made = routes(places[own] - first, own, distances, MOST_PIECES - len(found))
            found += [Piece(source, first, *each) for each in made]
            if not made:
                break
        else:
            yield way, found
    if not changes and len(windows) <= MOST_TABLES:
        way = (
            HALF_TABLE
            if all(np.max(places[own] - first) < VECTOR_BYTES // 2 for _, first, own in windows)
            else WHOLE_TABLE
        )
        yield way, [Piece(source, first, _indices(places[own] - first, own), own) for source, first, own in windows]


def _windows(sources: Array, places: Array, aligned: bool) -> Iterator[tuple[int, int, Array]]:
    """Vectors of sources that have all bytes, and the lanes of each."""
    for source in np.unique(sources).tolist():
        own = np.flatnonzero(sources == source)
        while len(own):
            least = int(places[own].min())
            first = least // VECTOR_BYTES * VECTOR_BYTES if aligned else least
            inside = places[own] < first + VECTOR_BYTES
            yield source, first, own[inside]
            own = own[~inside]


def routes(source: Array, lanes: Array, distances: tuple[int, ...], most: int) -> list[tuple[Array, Array]]:
    """Controls of a network for bytes of a window, and the lanes of each: one, or one for each rise of the places.

    None where they are more than `most`.
    """
    if most <= 0:
        return []
    control = routed(source, lanes, distances)
    if control is not None:
        return [(control, lanes)]
    chains = rises(source)
    if chains.max() >= most:
        return []
    if chains.max() == 0:  # a rise that meets on its way
        chains = (np.arange(len(source)) >= len(source) // 2).astype(np.int64)
    found = list[tuple[Array, Array]]()
    for chain in range(int(chains.max()) + 1):
        some = routes(source[chains == chain], lanes[chains == chain], distances, most - len(found))
        if not some:
            return []
        found += some
    return found


def rises(places: Array) -> Array:
    """Number as few rising parts of places as there can be."""
    lasts, chains = list[int](), np.zeros(len(places), np.int64)
    for at, place in enumerate(places.tolist()):
        fitting = [chain for chain, last in enumerate(lasts) if last < place]
        chain = max(fitting, key=lambda each: lasts[each]) if fitting else len(lasts)
        if chain == len(lasts):
            lasts.append(place)
        lasts[chain], chains[at] = place, chain
    return chains


def _indices(source: Array, target: Array) -> Array:
    """Bytes of a vector at the places to which they go, as `vlut32` numbers the bytes of its tables."""
    indices = np.full(VECTOR_BYTES, NO_BYTE, np.uint8)
    indices[target] = source // 2 + source % 2 * (VECTOR_BYTES // 2)
    return indices
