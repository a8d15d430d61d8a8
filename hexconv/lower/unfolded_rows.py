"""Unfold rows of pixels into croutons by HVX: channels hold taps of a kernel (`hexconv.spec.unfolded`).

A vector of a crouton is four pixels of 32 channels. Of a row of taps each pixel takes a run of bytes out of a row in
memory, and neighbouring pixels' runs begin some bytes apart, or overlap:

    3 channels, 7 columns of taps, stride 2        a row in memory, from the pixel's first byte on
        pixel 0    bytes 0 .. 20                   ├────────────────────┤
        pixel 1    bytes 6 .. 26                         ├────────────────────┤
        ...

One `vdelta` takes all of them to their places where no two bytes meet on the way, which is seen by trying; else pixels,
or taps, are loaded one by one. Several rows of taps are loads of several rows, of which predicates choose the bytes.

Taps that leave the image hold the fill byte: those of rows by a predicate of the rows that are there, those of columns
in the first and the last tiles of a row alone. Nothing outside of the image is read: a load that would begin before it,
or end behind it, is moved inside, and its result is rotated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from math import prod

import tvm_ffi
from tvm import tirx

from hexconv.kernel.engine import CROUTON_BYTES
from hexconv.lower.crouton_rows import HALVES, PIXELS_OF_VECTOR, READ, CroutonRow, copied_or_filled, predicate
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.instructions import BYTES, VECTOR
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, REMEMBERED
from hexconv.spec.unfolded import Unfolding
from hexconv.tir import marks
from hexconv.tir.statements import Block, Number, int32

EXCHANGES = (64, 32, 16, 8, 4, 2, 1)
"""The distances of the exchanges of `vdelta`, in their order."""


@dataclass(frozen=True)
class Move:
    """Bytes of one tap: from some byte of a row in memory, counted from a pixel's first one, to a place in a vector.

    Attributes:
        pixel: the pixel of the vector.
        row, column: the tap.
        source: the first byte, from where the taps of the vector's first pixel begin.
        target: the byte of the vector.
    """

    pixel: int
    row: int
    column: int
    source: int
    target: int


@dataclass(frozen=True)
class Gathered:
    """Moves that one load and one `vdelta` make.

    Attributes:
        moves: the moves, all of one row of taps.
        way: the controls of `vdelta`, of each byte of a vector.
    """

    moves: tuple[Move, ...]
    way: tuple[int, ...]

    @property
    def begin(self) -> int:
        """The first byte that is loaded."""
        return min(move.source for move in self.moves)


def delta_way(places: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
    """Return the controls by which `vdelta` takes bytes from some places to others; None where two meet on the way.

    Args:
        places: for each byte, where it is and where it goes.

    >>> way = delta_way([(6 * pixel + byte, 32 * pixel + byte) for pixel in range(4) for byte in range(21)])
    >>> way is None, delta_way([(0, 0), (64, 1)]) is None
    (False, True)
    """
    held, way = dict[tuple[int, int], int](), [0] * BYTES
    for source, target in places:
        for over in EXCHANGES:
            at = target & -over | source & over - 1
            if held.setdefault((over, at), source) != source:
                return None
            way[at] |= (source ^ target) & over
    return tuple(way)


@lru_cache(REMEMBERED)
def gathered(by: Unfolding, apart: int) -> tuple[Gathered, ...]:
    """Return the loads of four pixels, as few as there are ways for.

    Args:
        by: how the input is unfolded.
        apart: the bytes between the first bytes of neighbouring pixels.
    """
    channels, found = by.image[3], list[Gathered]()

    def take(moves: Sequence[Move]) -> None:
        begin = min(move.source for move in moves)
        places = [(move.source - begin + byte, move.target + byte) for move in moves for byte in range(channels)]
        way = delta_way(places) if max(source for source, _ in places) < BYTES else None
        if way is not None:
            found.append(Gathered(tuple(moves), way))
            return
        pixels = sorted({move.pixel for move in moves})
        middle = pixels[len(pixels) // 2]
        if len(pixels) > 1:
            parts = [[m for m in moves if m.pixel < middle], [m for m in moves if m.pixel >= middle]]
        else:
            parts = [moves[: len(moves) // 2], moves[len(moves) // 2 :]]
        for part in parts:
            take(part)

    for row in range(by.kernel[0]):
        take(
            [
                Move(
                    pixel,
                    row,
                    column,
                    pixel * apart + column * by.dilation[1] * channels,
                    pixel * CHANNEL_BLOCK + (row * by.kernel[1] + column) * channels,
                )
                for pixel in range(PIXELS_OF_VECTOR)
                for column in range(by.kernel[1])
            ]
        )
    return tuple(found)


@dataclass(frozen=True)
class UnfoldedRows:
    """The rows of an unfolded input, in memory and in croutons.

    Attributes:
        extents: the unfolded input.
        by: how it is unfolded.
        dtype: of its elements, of one byte each.
    """

    extents: Extents
    by: Unfolding
    dtype: str

    @property
    def _channels(self) -> int:
        return self.by.image[3]

    @property
    def _row_bytes(self) -> int:
        return self.by.image[2] * self._channels

    @property
    def _leaves_rows(self) -> bool:
        return any(self.by.leaves(0))

    def emit_read(self, row: CroutonRow) -> tirx.Stmt:
        """Emit HVX code that makes a row of the unfolded input, or fills it where the input has no such row."""
        return copied_or_filled(row, self._read, self._fill)

    def _fill(self, block: Block, row: CroutonRow) -> None:
        def crouton(at: Block, number: tirx.Expr) -> None:
            for half in range(HALVES):
                self._store(at, row.croutons, number * CROUTON_BYTES + half * BYTES, instructions.filled(row.fill))

        block.loop("crouton", self.extents.phase_columns, crouton)

    def _read(self, block: Block, row: CroutonRow) -> None:
        """Bind where each row of taps begins, and which are there; then make the tiles of the row."""
        first, number = row.pixels.indices[0], row.number
        assert number is not None, "a row of an unfolded input has its number"
        begins = list[tirx.Expr]()
        bits: Number = int32(0)
        for tap in range(self.by.kernel[0]):
            at = number + tap * self.by.dilation[0]
            held = tirx.max(tirx.min(at, int32(self.by.image[1] - 1)), int32(0)) if self._leaves_rows else at
            begins.append(block.bind("begin", first + held * self._row_bytes))
            if self._leaves_rows:
                is_there = tirx.all(at >= 0, at < self.by.image[1])
                bits = bits + tirx.Select(is_there, int32(instructions.signed(0x01010101 << tap)), int32(0))
        there = block.bind("there", bits) if self._leaves_rows else None
        for kind, some in groupby(range(self.extents.phase_columns), lambda tile: self._is_inside(row.image, tile)):
            same = [*some]
            if not kind:
                for tile in same:
                    self._tile(block, row, begins, there, tile, is_inside=False)
                continue

            def one(at: Block, number: tirx.Expr, first: int = same[0]) -> None:
                self._tile(at, row, begins, there, number + first, is_inside=True)

            block.loop("wo", len(same), one)

    def _column(self, image: int, stored: Number) -> Number:
        """Return the column of the unfolded input at a column of a phase image."""
        return stored * self.extents.phases[1] + self.extents.images[image][1] - self.extents.left

    @property
    def _apart(self) -> int:
        """The bytes in memory between the taps of two pixels."""
        return self.extents.phases[1] * self.by.stride[1] * self._channels

    @property
    def _loads(self) -> tuple[Gathered, ...]:
        return gathered(self.by, self._apart)

    def _is_inside(self, image: int, tile: int) -> bool:
        """Whether all taps of a tile's pixels, and all bytes that are loaded, lie in the rows in memory."""
        for half in range(HALVES):
            first = self._column(image, tile * COLUMN_BLOCK + half * PIXELS_OF_VECTOR)
            if first < 0 or first + (PIXELS_OF_VECTOR - 1) * self.extents.phases[1] >= self.extents.logical_columns:
                return False
            begin = self.by.place(1, first, 0) * self._channels
            if any(not 0 <= begin + each.begin <= self._row_bytes - BYTES for each in self._loads):
                return False
        return True

    def _tile(
        self,
        block: Block,
        row: CroutonRow,
        begins: Sequence[tirx.Expr],
        there: tirx.Expr | None,
        tile: Number,
        is_inside: bool,
    ) -> None:
        """Make the row of a tile."""
        for half in range(HALVES):
            first = self._column(row.image, tile * COLUMN_BLOCK + half * PIXELS_OF_VECTOR)
            kept = None if is_inside else [*self._kept(first)]
            self._vector(block, row, begins, there, first, kept, tile * CROUTON_BYTES + half * BYTES)

    def _kept(self, first: int) -> Iterator[bool]:
        """Yield of each byte of four pixels whether its column lies in the image."""
        for pixel, byte in product(range(PIXELS_OF_VECTOR), range(CHANNEL_BLOCK)):
            column, tap = first + pixel * self.extents.phases[1], byte // self._channels % self.by.kernel[1]
            is_pixel = 0 <= column < self.extents.logical_columns
            yield is_pixel and 0 <= self.by.place(1, column, tap) < self.by.image[2]

    def _vector(
        self,
        block: Block,
        row: CroutonRow,
        begins: Sequence[tirx.Expr],
        there: tirx.Expr | None,
        first: Number,
        kept: Sequence[bool] | None,
        to: Number,
    ) -> None:
        """Make four pixels; `kept` says which bytes lie in the image where not all do."""
        fill = instructions.splat(instructions.signed(row.fill * 0x01010101))
        begin, value = self.by.place(1, first, 0) * self._channels, None
        for each in self._loads:
            if kept is not None and not any(kept[move.target] for move in each.moves):
                continue
            loaded = self._loaded(block, row, begins[each.moves[0].row] + begin + each.begin, kept is not None)
            spread = block.bind("spread", instructions.spread(loaded, instructions.repeated(each.way)), VECTOR)
            if value is None:
                value = spread
                continue
            chosen = [0] * BYTES
            for move in each.moves:
                chosen[move.target : move.target + self._channels] = [1] * self._channels
            value = block.bind("joined", instructions.instruction("vmux", _where(chosen), spread, value), VECTOR)
        if value is None:
            value = fill
        elif there is not None:
            rows = [1 << min(byte % CHANNEL_BLOCK // self._channels // self.by.kernel[1], 7) for byte in range(BYTES)]
            held = predicate("vandvrt", instructions.repeated(rows), there)
            value = block.bind("held", instructions.instruction("vmux", held, value, fill), VECTOR)
        if value is not fill and kept is not None and not all(kept):
            value = instructions.instruction("vmux", _where([int(each) for each in kept]), value, fill)
        self._store(block, row.croutons, to, value)

    def _loaded(self, block: Block, row: CroutonRow, byte: Number, is_edge: bool) -> tirx.Expr:
        """Load 128 bytes of the image; where they may lie outside of it, from inside, and rotated."""
        place, last = block.bind("place", byte), prod(self.by.image) - BYTES
        inside = tirx.max(tirx.min(place, int32(last)), int32(0)) if is_edge else place
        if is_edge:
            inside = block.bind("inside", inside)
        loaded = block.bind("pixels", instructions.load(row.pixels.source, inside), VECTOR)
        if row.flips:
            loaded = block.bind("flipped", instructions.flipped(loaded), VECTOR)
        return block.bind("rotated", instructions.rotated(loaded, place - inside), VECTOR) if is_edge else loaded

    def _store(self, block: Block, row: tirx.Expr, byte: Number, vector: tirx.Expr) -> None:
        """Store four pixels."""
        place = instructions.at(row.indices[0] + byte)
        block.store(row.source, place, tirx.reinterpret(f"{self.dtype}x{BYTES}", vector))


def read_in_loops(main: tirx.PrimFunc, chain: Chain) -> tirx.PrimFunc:
    """Read each element that a row of the unfolded input holds in the place of the row's mark: what is to be counted.

    An element counts once for each row of taps, whatever the number of pixels that hold it.
    """
    tensor, by = tensor_extents(chain)[0], chain.unfolded
    if by is None:
        return main
    (_, rows, columns, channels), valid = by.image, tensor.valid_columns
    outputs = range(valid[0] - tensor.left, valid[1] - tensor.left)  # no reader needs those that are not stored

    def is_held(column: tirx.Expr, tap: int) -> tirx.Expr:
        """Whether a pixel of a stored image holds a column by a tap."""
        begin = column - by.place(1, 0, tap)
        pixel = tirx.floordiv(begin, by.stride[1])
        image = tirx.floormod(pixel + tensor.left, tensor.phases[1])
        whole = tirx.EQ(tirx.floormod(begin, by.stride[1]), 0)
        return tirx.all(whole, pixel >= outputs.start, pixel < outputs.stop, image <= tensor.last_phase[1])

    def expanded(statement: tirx.Evaluate) -> tirx.Stmt:
        row = marks.read(READ, CroutonRow, statement)
        if row is None:
            return statement
        assert row.number is not None
        is_first, block = row.image % tensor.images_across == 0, Block()
        for tap in range(by.kernel[0]):
            at = row.number + tap * by.dilation[0]

            def element(to: Block, column: tirx.Expr, at: tirx.Expr = at) -> None:
                place = row.pixels.indices[0] + (at * columns + column) * channels
                load = tirx.BufferLoad(row.pixels.source, [place])
                held = tirx.any(*(is_held(column, each) for each in range(by.kernel[1])))
                to.when(held, lambda inner: inner.store(row.croutons.source, row.croutons.indices[0], load))

            def of_row(to: Block, element: Callable[[Block, tirx.Expr], None] = element) -> None:
                to.loop("c", channels, lambda inner, _: inner.loop("column", columns, element))

            conditions = [at >= 0, at < rows, *([row.is_there] if row.is_there is not None else [])]
            block.when(tirx.all(*conditions), of_row)
        return block.statement() if is_first else tirx.Evaluate(int32(0))

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.Evaluate, expanded)))


def _where(chosen: Sequence[int]) -> tirx.Expr:
    """Return a predicate of the bytes that are 1."""
    return predicate("vandvrt", instructions.repeated(chosen), int32(0x01010101))
