"""Straight code for one order of bytes: each vector of the sources is read once, and changes before it is moved.

    loops around a unit of bytes  ->  the turns after which all vectors lie as before: a period  ->  C for it

A network's library has the code of its own orders; one without it weaves the same bytes of strands
(`hexconv.network.strands`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm

import numpy as np

from hexconv.network.integer_form import DOWN, UP, VECTOR_BYTES
from hexconv.network.strands import ONCE, Loop, Unit, rises, routes
from hexconv.run.tensors import Array

MOST_SOURCES, MOST_PHASES = 8, 2
MOST_VECTORS, MOST_READ, MOST_PIECES = 16, 32, 8
"""Vectors of a result in a period, and of its sources; pieces of a vector."""
FEW_VECTORS = 15
"""Vectors of a result that are made together, where as many are written in a row."""
FEW_FOR_A_THREAD = 16
"""Vectors that no other thread is woken for."""
TOGETHER = 4
"""Vectors that change together."""
HELD = 26
"""Constants that stay in registers; another one is read in each period."""
BUSY, BUSY_CONSTANTS, BUSY_VECTORS = 1.5, 20, 8
CROWDED, REGISTERS = 2.5, 40
"""How many times the packets of a period are taken where registers are full: of so many constants and vectors, or of
more predicates than there are registers; or of more than all registers hold."""
PREDICATES, HELD_ENDS = 4, 8
"""Registers of predicates; how many are made anew of registers in each place, where there are more."""
LOOSE, FULL, AROUND, ROW, WHOLE_ROW, EDGE_VECTOR = 1.2, 1.05, 1.5, 60, 4, 8
"""How many times the packets are taken that all fits in, or that one unit takes; packets around a period, of a row with
an edge or without one, of a vector at an edge."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a source that go to some lanes of a vector in one step.

    Attributes:
        code: what makes a vector of them, in C.
        moves: the instructions that it takes.
        lanes: the lanes.
    """

    code: str
    moves: int
    lanes: Array


@dataclass
class _Body:
    """The statements of a period: what they read, and what they take."""

    reads: dict[tuple[int, int], str]
    moved: dict[str, str]
    constants: dict[bytes, str]
    ends: dict[int, str]
    lines: list[str]
    moves: int = 0
    simple: int = 0

    def vector(self, source: int, number: int) -> str:
        return self.reads.setdefault((source, number), f"s{source}_{number}")

    def constant(self, value: Array) -> str:
        return self.constants.setdefault(value.astype(np.uint8).tobytes(), f"c{len(self.constants)}")

    def end(self, lane: int) -> str:
        return self.ends.setdefault(lane, f"q{lane}")

    def move(self, code: str) -> str:
        """Name a vector that some code makes; the same code makes it once."""
        if code not in self.moved:
            self.moved[code] = f"m{len(self.moved)}"
            self.lines.append(f"const V {self.moved[code]} = {code};")
            self.moves += 1
        return self.moved[code]


@dataclass(frozen=True)
class Phase:
    """A period of a row: where it lies in the sources and the result, and its code.

    Attributes:
        to: where the row of the result begins.
        firsts: for each source where its first vector lies.
        reach: for each source how many vectors from there on are read.
        text: the code, but for its name.
        packets: about what a period takes.
    """

    to: int
    firsts: tuple[int, ...]
    reach: tuple[int, ...]
    text: str
    packets: float

    @cached_property
    def number(self) -> int:
        """What C calls the code."""
        return int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:4], "little") & 0x7FFFFFFF

    @property
    def function(self) -> str:
        """The code in C."""
        return f"static __attribute__((noinline)) void periods_{self.number}{self.text}"


@dataclass(frozen=True)
class Periods:
    """A result in rows of periods.

    Attributes:
        vectors: the vectors of the result in a period.
        row: the bytes of a row.
        rows: the loop of all rows.
        steps: for each source the bytes of a period.
        times: how often the result is written, `apart` bytes further on each time.
        phases: the rows of one turn of the loop.
    """

    vectors: int
    row: int
    rows: Loop
    steps: tuple[int, ...]
    times: int
    apart: int
    phases: tuple[Phase, ...]

    @property
    def packets(self) -> float:
        """About what all takes."""
        size = self.vectors * VECTOR_BYTES
        whole, rest = divmod(self.row, size)
        found = 150.0
        for phase in self.phases:
            edge = phase.packets + EDGE_VECTOR * (sum(phase.reach) + self.vectors * self.times) if rest else 0
            found += self.rows.turns * ((ROW if rest else WHOLE_ROW) + whole * phase.packets + edge)
        return found

    @property
    def laid_out(self) -> bytes:
        """What C reads: struct hexconv_periods."""
        count = len(self.steps)
        rows = self.rows.steps or (0,) * count
        each, few = -(-self.row // (self.vectors * VECTOR_BYTES)), FEW_FOR_A_THREAD // (self.vectors * self.times) + 1
        told = [self.vectors, self.row, each, few, self.rows.turns, self.rows.step, self.times, self.apart]
        told += [count, len(self.phases)]
        told += [each for pair in zip(self.steps, rows, strict=True) for each in pair]
        told += [0] * (2 * (MOST_SOURCES - count))
        for phase in self.phases:
            firsts, reach = (list(each) + [0] * (MOST_SOURCES - count) for each in (phase.firsts, phase.reach))
            told += [phase.number, phase.to, *firsts, *reach]
        return np.array(told, np.int32).tobytes().ljust(PERIODS_BYTES, b"\0")


PERIODS_BYTES = 2 * VECTOR_BYTES
"""Of struct hexconv_periods."""


def periods_of(
    unit: Unit, loops: Sequence[Loop], ways: Sequence[str], again: Loop = ONCE, most: float = np.inf
) -> Periods | None:
    """Find a period for a unit and the loops around it, the innermost one last; None where another way takes less.

    Args:
        unit: what all loops repeat; its bytes fill a turn of the innermost loop.
        loops: the loops.
        ways: how the codes of each source change: what C's `on_line` is told, nothing where they don't.
        again: how often all is written.
        most: the packets that another way takes.
    """
    count = len(ways)
    if not loops or loops[-1].step != unit.size:
        loops = [*loops, Loop(1, (0,) * count, unit.size)]
    *outer, inner = loops
    if count > MOST_SOURCES or len(outer) > 2:
        return None
    units = lcm(*(VECTOR_BYTES // np.gcd(VECTOR_BYTES, each) for each in (unit.size, *inner.steps)))
    if inner.turns == 1 and unit.size % VECTOR_BYTES == 0:
        units = 1
    best, least = None, units * unit.size // VECTOR_BYTES
    for times in range(1, max(FEW_VECTORS // max(least, 1), 1) + 1):
        if units * times > inner.turns or least * times > MOST_VECTORS or units * unit.size % VECTOR_BYTES:
            break
        for at in (*range(len(outer)), None):
            found = _rows_of(unit, inner, units * times, outer, at, ways, again)
            if found and found.packets < most:
                best, most = found, found.packets
    return best


def _rows_of(
    unit: Unit, inner: Loop, units: int, outer: Sequence[Loop], at: int | None, ways: Sequence[str], again: Loop
) -> Periods | None:
    """Periods of so many units, in rows of one of the loops outside."""
    count, vectors = len(ways), units * unit.size // VECTOR_BYTES
    rows = ONCE if at is None else outer[at]
    phases = _phases([each for number, each in enumerate(outer) if number != at], count)
    if len(phases) > MOST_PHASES:
        return None
    row_steps = (*(rows.steps or (0,) * count), rows.step)
    aligned = tuple(step % VECTOR_BYTES == 0 for step in row_steps)
    if any(each % VECTOR_BYTES for each in (again.step, *(place[-1] for place in phases))):
        aligned = (*aligned[:-1], False)
    made = list[Phase]()
    for *firsts, to in phases:
        phase = _phase(unit, inner, units, vectors, tuple(firsts), to, ways, again.turns, row_steps, aligned)
        if phase is None:
            return None
        made.append(phase)
    period = tuple(units * each for each in inner.steps)
    return Periods(vectors, inner.turns * unit.size, rows, period, again.turns, again.step, tuple(made))


def _phases(loops: Sequence[Loop], count: int) -> list[tuple[int, ...]]:
    """Where the sources and the result begin in each turn of loops."""
    found = [(0,) * (count + 1)]
    for loop in loops:
        if loop.turns * len(found) > MOST_PHASES:
            return [found[0]] * (MOST_PHASES + 1)
        steps = (*loop.steps, loop.step)
        found = [
            tuple(first + turn * step for first, step in zip(place, steps, strict=True))
            for place in found
            for turn in range(loop.turns)
        ]
    return found


def _phase(
    unit: Unit,
    inner: Loop,
    units: int,
    vectors: int,
    firsts: tuple[int, ...],
    to: int,
    ways: Sequence[str],
    times: int,
    row_steps: Sequence[int],
    aligned: tuple[bool, ...],
) -> Phase | None:
    turn, place = np.divmod(np.arange(units * unit.size), unit.size)
    sources = unit.sources[place]
    steps = np.array(inner.steps, np.int64)
    places = unit.places[place] + turn * steps[sources] + np.array(firsts, np.int64)[sources]
    count = len(ways)
    begins = [int(places[sources == each].min()) if np.any(sources == each) else 0 for each in range(count)]
    begins = [each // VECTOR_BYTES * VECTOR_BYTES if aligned[at] else each for at, each in enumerate(begins)]
    places = places - np.array(begins, np.int64)[sources]
    body, results = _Body({}, {}, {}, {}, []), list[str]()
    for number in range(vectors):
        own = slice(number * VECTOR_BYTES, (number + 1) * VECTOR_BYTES)
        made = _made(body, sources[own], places[own])
        if made is None or len(body.reads) > MOST_READ:
            return None
        results.append(made)
    reach = tuple(max((1 + at for source, at in body.reads if source == each), default=0) for each in range(count))
    period = [units * each for each in inner.steps]
    text = _text(body, results, ways, times, period, row_steps, vectors, aligned)
    return Phase(to, tuple(begins), reach, text, _packets(body, vectors, ways, times, aligned))


def _made(body: _Body, sources: Array, places: Array) -> str | None:
    """Name a vector of the result, after the statements that make it."""
    pieces = list[Piece]()
    for source in np.unique(sources).tolist():
        lanes = np.flatnonzero(sources == source)
        ways = [list(_by_shifts(source, lanes, places[lanes])), _by_windows(source, lanes, places[lanes])]
        if len(fitting := [each for each in ways if each and len(each) <= MOST_PIECES]) == 0:
            return None
        pieces += min(fitting, key=lambda found: 2 * len(found) + sum(each.moves for each in found))
    if len(pieces) > MOST_PIECES:
        return None
    names, owner = list[str](), np.full(len(sources), -1)
    for number, piece in enumerate(pieces):
        owner[piece.lanes] = number
        names.append(_written(body, piece))
    return _merged(body, names, owner, pieces)


def _by_shifts(source: int, lanes: Array, places: Array) -> Iterator[Piece]:
    """Bytes that are moved alike: vectors at any address."""
    for shift in dict.fromkeys((places - lanes).tolist()):
        own = lanes[places - lanes == shift]
        first, by = divmod(shift, VECTOR_BYTES)
        is_low, is_high = own.min() + by < VECTOR_BYTES, own.max() + by >= VECTOR_BYTES
        low, high = (f"{{{source},{first + more}}}" for more in (0, 1))
        if by == 0:
            yield Piece(low, 0, own)
        elif is_low and is_high:
            yield Piece(f"Q6_V_valign_VVR({high}, {low}, {by})", 1, own)
        else:
            yield Piece(f"Q6_V_vror_VR({low if is_low else high}, {by})", 1, own)


def _by_windows(source: int, lanes: Array, places: Array) -> list[Piece]:
    """The bytes of each vector of a source by a network, or by more where they cross; none where these are too many."""
    found = list[Piece]()
    for number in np.unique(places // VECTOR_BYTES).tolist():
        own = places // VECTOR_BYTES == number
        window = places[own] - number * VECTOR_BYTES
        if np.array_equal(window, lanes[own]):
            found.append(Piece(f"{{{source},{number}}}", 0, lanes[own]))
            continue
        if rises(window).max() >= 3:
            return []
        some = [
            [
                Piece(f"{way}({{{source},{number}}}, [{control.astype(np.uint8).tobytes().hex()}])", 1, at)
                for control, at in made
            ]
            for way, distances in (("Q6_V_vdelta_VV", DOWN), ("Q6_V_vrdelta_VV", UP))
            if (made := routes(window, lanes[own], distances, MOST_PIECES))
        ]
        if not some:
            return []
        found += min(some, key=len)
    return found


def _written(body: _Body, piece: Piece) -> str:
    code = piece.code
    while "{" in code:
        begin, end = code.index("{"), code.index("}")
        source, number = map(int, code[begin + 1 : end].split(","))
        code = code[:begin] + body.vector(source, number) + code[end + 1 :]
    if "[" in code:
        begin, end = code.index("["), code.index("]")
        code = (
            code[:begin]
            + body.constant(np.frombuffer(bytes.fromhex(code[begin + 1 : end]), np.uint8))
            + code[end + 1 :]
        )
    return body.move(code) if piece.moves else code


def _merged(body: _Body, names: list[str], owner: Array, pieces: Sequence[Piece]) -> str:
    """Put pieces together: from the last one on, each before what is made; or in its lanes, where that is less."""
    ends = np.append(np.flatnonzero(np.diff(owner)) + 1, len(owner)).tolist()
    if 2 * (len(ends) - 1) <= 3 * (len(pieces) - 1):
        made = names[owner[-1]]
        for end in reversed(ends[:-1]):
            made = f"Q6_V_vmux_QVV({body.end(end)}, {names[owner[end - 1]]}, {made})"
        body.simple += len(ends) - 1
        return made
    made = names[0]
    for name, piece in zip(names[1:], pieces[1:], strict=True):
        mask = np.zeros(VECTOR_BYTES, np.uint8)
        mask[piece.lanes] = 255
        made = f"Q6_V_vmux_QVV(Q6_Q_vand_VR({body.constant(mask)}, -1), {name}, {made})"
        body.simple += 2
    return made


def _text(
    body: _Body,
    results: Sequence[str],
    ways: Sequence[str],
    times: int,
    steps: Sequence[int],
    row_steps: Sequence[int],
    vectors: int,
    aligned: tuple[bool, ...],
) -> str:
    """Write the parameters and the body of a function of C."""
    read = sorted({source for source, _ in body.reads})
    sources = ", ".join(f"const uint8_t *restrict s{each}" for each in range(MOST_SOURCES))
    own = "uint8_t *restrict to, ptrdiff_t apart, const struct source_line *lines, size_t rows, size_t count"
    text = [f"({sources}, {own}) {{"]
    text += [f"(void)s{each};" for each in range(MOST_SOURCES) if each not in read]
    text += ["(void)lines, (void)apart, (void)rows;"]
    text += [f"const struct source_line l{each} = lines[{each}];" for each in read if ways[each]]
    for value, name in body.constants.items():
        numbers = ",".join(map(str, value))
        text.append(f"static const uint8_t of_{name}[VECTOR] __attribute__((aligned(128))) = {{{numbers}}};")
        text.append(f"const V {name} = *(const V *)(const void *)of_{name};")
    few = len(body.ends) <= PREDICATES
    text += [f"const HVX_VectorPred q{end} = Q6_Q_vsetq_R({end});" for end in body.ends if few]
    text += [f"V e{end} = Q6_V_vand_QR(Q6_Q_vsetq_R({end}), -1);" for end in body.ends if not few]
    walked = ", ".join(f"s{each} += {row_steps[each]}" for each in read)
    if any(row_steps):
        text.append(f"ROLLED for (; rows > 0; rows--, {walked}, to += {row_steps[-1]})")
    text.append("{")
    text += [f"const uint8_t *restrict r{each} = s{each};" for each in read]
    text.append("uint8_t *restrict on = to;")
    walked = ", ".join(f"r{each} += {steps[each]}" for each in read)
    text.append(f"ROLLED for (size_t left = count; left > 0; left--, {walked}, on += {vectors * VECTOR_BYTES}) {{")
    if not few:  # predicates that are made where they are needed take fewer packets than such as are kept in memory
        told = ", ".join(f'"+v"(e{end})' for end in body.ends)
        text.append(f'__asm__("" : {told});')
        text += [f"const HVX_VectorPred q{end} = Q6_Q_vand_VR(e{end}, -1);" for end in body.ends]
    for source, number in body.reads:
        text.append(f"V s{source}_{number} = vector_of({int(aligned[source])}, r{source} + {number * VECTOR_BYTES});")
    changed = [each for each in body.reads if ways[each[0]]]
    for at in range(0, len(changed), TOGETHER):
        text += _changed(changed[at : at + TOGETHER], ways)
    text += body.lines
    text += [f"const V made{at} = {code};" for at, code in enumerate(results)]
    for time in range(times):
        text += [
            f"put_vector({int(aligned[-1])}, on + {time} * apart + {VECTOR_BYTES * at}, made{at});"
            for at in range(vectors)
        ]
    return "\n    ".join(text) + "\n    }\n    }\n}\n"


def _changed(reads: Sequence[tuple[int, int]], ways: Sequence[str]) -> Iterator[str]:
    """Change some vectors step by step, so that they overlap."""
    for step in ("low", "carried", "made", "even", "odd", "code"):
        for source, number in reads:
            vector = f"s{source}_{number}"
            if step == "code":
                yield f"{vector} = coded({ways[source]}, &l{source}, even_{vector}, odd_{vector});"
            elif step in ("even", "odd"):
                half = f"Q6_V_{'lo' if step == 'even' else 'hi'}_W(made_{vector})"
                yield f"const V {step}_{vector} = summed_on_line({ways[source]}, &l{source}, {half});"
            else:
                before = {"low": "", "carried": f"low_{vector}", "made": f"carried_{vector}, "}[step]
                own = "" if step == "carried" else f"{ways[source]}, &l{source}, "
                codes = "" if step == "carried" else vector
                yield f"const W {step}_{vector} = {step}_on_line({own}{before}{codes});"


def _packets(body: _Body, vectors: int, ways: Sequence[str], times: int, aligned: tuple[bool, ...]) -> float:
    loads, stores = len(body.reads) + max(0, len(body.constants) - HELD), vectors * times
    changed = sum(bool(ways[source]) for source, _ in body.reads)
    loose = sum(not aligned[source] for source, _ in body.reads) + (0 if aligned[-1] else stores)
    moves = body.moves
    made = len(body.ends) if len(body.ends) > PREDICATES else 0
    loads += max(0, 2 * (made - HELD_ENDS))
    slots = loads + stores + loose + moves + made + body.simple + 7 * changed
    units = moves + loose + made + body.simple + 9 * changed
    of_memory = loads + stores if loose else max(loads, stores)
    held = len(body.constants) + made
    is_full = vectors >= BUSY_VECTORS and (len(body.constants) > BUSY_CONSTANTS or made > 0)
    busy = CROWDED if held > REGISTERS else BUSY if is_full else 1.0
    return AROUND + busy * max(FULL * max(of_memory, moves + loose, 2 * changed), LOOSE * max(slots, units) / 4)


def functions_of(found: Sequence[Periods]) -> str:
    """Write the code of all periods of a network in C, each once, and name it as C calls it."""
    functions = {phase.number: phase.function for each in found for phase in each.phases}
    names = " ".join(f"of({number})" for number in sorted(functions))
    return "\n".join(functions[number] for number in sorted(functions)) + f"#define EACH_PERIODS(of) {names}\n"
