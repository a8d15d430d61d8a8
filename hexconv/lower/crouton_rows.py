"""Copy rows of pixels to croutons of the matrix engine and back, by HVX: four pixels of up to 128 channels at a time.

A crouton holds 32 channels of a pixel in 32 bytes, four pixels of a row in a vector. Memory holds all channels of a
pixel side by side. So the copy exchanges pixels with blocks of channels, by `vshuff`:

    4 vectors, each of 4 blocks of one pixel    ->    4 vectors, each of 4 pixels of one block

Pixels of few channels lie in one vector, whose bytes `vdelta` spreads. Channels that a pixel doesn't have get any
bytes: their weights are zeros. Nothing outside of a tensor is read or written: a load that would end behind it begins
earlier, and the result is rotated; stores that would end behind a row of the output are made of shorter ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby
from math import gcd

from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.kernel.engine import CROUTON_BYTES
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BLOCKS
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.instructions import BYTES, PAIR, VECTOR
from hexconv.spec import Extents
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, blocks
from hexconv.tir.statements import Block, Number, int32

READ, WRITE, FRINGE = "hexconv_crouton_row_read", "hexconv_crouton_row_write", "hexconv_crouton_row_fringe"
PIXELS_OF_VECTOR = BYTES // CHANNEL_BLOCK
HALVES = COLUMN_BLOCK // PIXELS_OF_VECTOR
"""The vectors of a row of a crouton."""
ZERO = int32(0)


@dataclass(frozen=True)
class CroutonRow:
    """A row of pixels, in memory and in croutons.

    Attributes:
        pixels: the first channel of its first pixel in memory, or the first one that is written.
        croutons: the first byte of the row in croutons, if the image has it.
        blank: the same if the image doesn't have it; None where nothing is filled then.
        is_there: whether the image has the row; None where it has.
        image: its phase image.
        fill: the byte of pixels that the image doesn't have.
        flips: whether the first bit of each byte is flipped on the way (1), or not (0).
        blocks: how many blocks of 32 channels are copied.
        number: of an unfolded input, the row in memory of the first row of taps, which the image may not have; `pixels`
            is then the first channel of the image.
    """

    pixels: TensorLoad
    croutons: TensorLoad
    blank: TensorLoad | None
    is_there: tirx.Expr | None
    image: int
    fill: int
    flips: int
    blocks: int
    number: tirx.Expr | None = None

    @property
    def tile_bytes(self) -> int:
        """The bytes from one tile of the row to the next."""
        return self.blocks * CROUTON_BYTES


@dataclass(frozen=True)
class Fringe:
    """Elements of a row of a crouton that are no outputs of a conv.

    Attributes:
        croutons: the first byte of the row, if it has outputs.
        blank: the same if it has none.
        is_there: whether the row has outputs; None where it has.
        columns: a bit for each pixel that is an output, in rows that have some; None where all are.
        channels: how many channels are outputs, fewer than 1 or more than 32 too; None where all are, or any may be.
        fill: the byte of the others.
    """

    croutons: TensorLoad
    blank: TensorLoad
    is_there: tirx.Expr | None
    columns: tirx.Expr | None
    channels: tirx.Expr | None
    fill: int

    def emit(self) -> tirx.Stmt:
        """Emit HVX code that fills them."""
        block = Block()
        if self.columns is not None or self.channels is not None:
            some = self.is_there if self.is_there is not None else tirx.const(1, "bool")
            block.when(some, lambda to: self._fill(to, self.croutons, self._outputs(to)))
        if self.is_there is not None:
            block.when(tirx.Not(self.is_there), lambda to: self._fill(to, self.blank, [[]] * HALVES))
        return block.statement()

    def _fill(self, block: Block, row: TensorLoad, outputs: Sequence[Sequence[tirx.Expr]]) -> None:
        """Fill each half of the row but for the lanes that all of some predicates have."""
        buffer, fill = row.source, instructions.filled(self.fill)
        for half, predicates in enumerate(outputs):
            place = row.indices[0] + half * BYTES
            value = instructions.load(buffer, place) if predicates else fill
            for lanes in predicates:
                value = instructions.instruction("vmux", lanes, value, fill)
            block.store(buffer, instructions.at(place), tirx.reinterpret(f"{buffer.dtype}x{BYTES}", value))

    def _outputs(self, block: Block) -> list[list[tirx.Expr]]:
        """Return predicates of the lanes that are outputs, for each half of the row."""
        found: list[list[tirx.Expr]] = [[] for _ in range(HALVES)]
        if self.columns is not None:
            columns = block.bind("columns", instructions.splat_byte(self.columns))
            for half in range(HALVES):
                bits = [1 << half * PIXELS_OF_VECTOR + byte // CHANNEL_BLOCK for byte in range(BYTES)]
                found[half].append(predicate("vandvrt", instructions.repeated(bits), columns))
        if self.channels is not None:
            held = tirx.max(tirx.min(self.channels, int32(CHANNEL_BLOCK)), ZERO)
            count = instructions.splat(block.bind("channels", instructions.splat_byte(held)))
            lanes = predicate("vgtub", count, instructions.repeated([byte % CHANNEL_BLOCK for byte in range(BYTES)]))
            found = [[*predicates, lanes] for predicates in found]
        return found


def predicate(name: str, *operands: tirx.Expr) -> tirx.Expr:
    """Return a predicate of bytes, by the instruction that makes it."""
    return instructions.instruction(name, *operands, result=f"boolx{BYTES}")


def copied_or_filled(
    row: CroutonRow, copy: Callable[[Block, CroutonRow], None], fill: Callable[[Block, CroutonRow], None]
) -> tirx.Stmt:
    """Emit code that copies a row of the image, or fills it where the image has no such row.

    Args:
        row: the row.
        copy: adds code that copies a row to croutons.
        fill: adds code that fills one.
    """
    block = Block()
    if row.is_there is None:
        copy(block, row)
        return block.statement()
    block.when(row.is_there, lambda to: copy(to, row))
    if row.blank is not None:
        blank = replace(row, croutons=row.blank)
        block.when(tirx.Not(row.is_there), lambda to: fill(to, blank))
    return block.statement()


class _Tile(Enum):
    """Whether the row of the image has all pixels of a tile, and all bytes of the vectors that load them."""

    EDGE = auto()
    """Some pixels lie outside of the row."""
    INSIDE = auto()
    """All pixels and vectors lie inside."""
    LATE = auto()
    """All pixels do, and some vectors would end behind the row."""


@dataclass(frozen=True)
class CroutonRows:
    """The rows of an end of a chain, in memory and in croutons.

    Attributes:
        extents: the tensor.
        dtype: of its elements, of one byte each.
    """

    extents: Extents
    dtype: str

    @property
    def _row_bytes(self) -> int:
        return self.extents.logical_columns * self.extents.channels

    @property
    def _bytes(self) -> int:
        return self.extents.batch * self.extents.logical_rows * self._row_bytes

    # --- pixels to croutons ------------------------------------------------------------------------------------------

    def emit_read(self, row: CroutonRow) -> tirx.Stmt:
        """Emit HVX code that copies a row of the image to croutons, or fills it where the image has no such row."""
        return copied_or_filled(row, self._read, self._fill)

    def _fill(self, block: Block, row: CroutonRow) -> None:
        def crouton(at: Block, number: tirx.Expr) -> None:
            for half in range(HALVES):
                self._store(at, row, number * CROUTON_BYTES + half * BYTES, instructions.filled(row.fill))

        block.loop("crouton", self.extents.phase_columns * row.blocks, crouton)

    def _read(self, block: Block, row: CroutonRow) -> None:
        begin = block.bind("begin", row.pixels.indices[0])
        tiles = range(self.extents.phase_columns)
        for kind, some in groupby(tiles, lambda tile: self._kind(row.image, tile)):
            same = [*some]
            if kind is _Tile.EDGE:
                for tile in same:
                    self._tile(block, row, begin, tile, kind)
                continue

            def one(at: Block, number: tirx.Expr, first: int = same[0], kind: _Tile = kind) -> None:
                self._tile(at, row, begin, number + first, kind)

            block.loop("wo", len(same), one)

    def _kind(self, image: int, tile: int) -> _Tile:
        """Return how a tile's pixels lie in the row of the image."""
        columns = [self._column(image, tile * COLUMN_BLOCK + pixel) for pixel in range(COLUMN_BLOCK)]
        if not all(0 <= column < self.extents.logical_columns for column in columns):
            return _Tile.EDGE
        ends = columns[-1] * self.extents.channels + blocks(self.extents.channels, BYTES) * BYTES
        return _Tile.INSIDE if ends <= self._row_bytes else _Tile.LATE

    def _column(self, image: int, stored: Number) -> Number:
        """Return the column of the image at a column of a phase image."""
        return stored * self.extents.phases[1] + self.extents.images[image][1] - self.extents.left

    def _tile(self, block: Block, row: CroutonRow, begin: tirx.Expr, tile: Number, kind: _Tile) -> None:
        """Copy the row of a tile, of all channels."""
        apart = self.extents.phases[1] * self.extents.channels
        for half in range(HALVES):
            first = self._column(row.image, tile * COLUMN_BLOCK + half * PIXELS_OF_VECTOR)
            to = tile * row.tile_bytes + half * BYTES
            if kind is not _Tile.EDGE:
                pixels = [first * self.extents.channels + pixel * apart for pixel in range(PIXELS_OF_VECTOR)]
                self._vectors(block, row, begin, pixels, to, is_late=kind is _Tile.LATE)
                continue
            columns = [first + pixel * self.extents.phases[1] for pixel in range(PIXELS_OF_VECTOR)]
            there = [0 <= column < self.extents.logical_columns for column in columns]
            places = [
                column * self.extents.channels if is_in else None for column, is_in in zip(columns, there, strict=True)
            ]
            self._vectors(block, row, begin, places, to, is_late=True)

    def _vectors(
        self,
        block: Block,
        row: CroutonRow,
        begin: tirx.Expr,
        pixels: Sequence[Number | None],
        to: Number,
        is_late: bool,
    ) -> None:
        """Copy four pixels, by the bytes at which they begin in the row; None stands for one that isn't there."""

        def load(at: Block, byte: Number) -> tirx.Expr:
            place = at.bind("place", begin + byte)
            early = at.bind("early", tirx.min(place, int32(self._bytes - BYTES))) if is_late else place
            loaded = at.bind("pixels", instructions.load(row.pixels.source, early), VECTOR)
            loaded = at.bind("flipped", instructions.flipped(loaded), VECTOR) if row.flips else loaded
            return at.bind("rotated", instructions.rotated(loaded, place - early), VECTOR) if is_late else loaded

        channels, apart = self.extents.channels, self.extents.phases[1] * self.extents.channels
        those = [pixel for pixel in pixels if pixel is not None]
        if len(those) == PIXELS_OF_VECTOR and (PIXELS_OF_VECTOR - 1) * apart + channels <= BYTES:
            spread = instructions.spread_runs(load(block, those[0]), channels, apart, CHANNEL_BLOCK)
            self._store(block, row, to, spread)
            return
        if len(those) == PIXELS_OF_VECTOR and apart == channels == 2 * CHANNEL_BLOCK:
            pair = instructions.dealt(load(block, those[2]), load(block, those[0]), CHANNEL_BLOCK)
            pair = block.bind("blocks", pair, PAIR)
            self._store(block, row, to, instructions.lower(pair))
            self._store(block, row, to + CROUTON_BYTES, instructions.upper(pair))
            return

        def some(at: Block, first: Number, count: int) -> None:
            at_block = first * CHANNEL_BLOCK
            four = [_splat(row.fill) if pixel is None else load(at, pixel + at_block) for pixel in pixels]
            for number, vector in enumerate(exchanged(at, four, count) if those else four):
                if number < count:
                    self._store(at, row, to + (first + number) * CROUTON_BYTES, vector)

        block.loop(
            "blocks", row.blocks // VECTOR_BLOCKS, lambda at, four: some(at, four * VECTOR_BLOCKS, VECTOR_BLOCKS)
        )
        if rest := row.blocks % VECTOR_BLOCKS:
            some(block, row.blocks - rest, rest)

    def _store(self, block: Block, row: CroutonRow, byte: Number, vector: tirx.Expr) -> None:
        """Store four pixels of a block of channels to their crouton."""
        self._stored(block, row.croutons.source, row.croutons.indices[0] + byte, vector)

    def _stored(self, block: Block, buffer: tirx.Var, place: Number, vector: tirx.Expr) -> None:
        block.store(buffer, instructions.at(place), tirx.reinterpret(f"{self.dtype}x{BYTES}", vector))

    # --- croutons to pixels ------------------------------------------------------------------------------------------

    def emit_write(self, row: CroutonRow) -> tirx.Stmt:
        """Emit HVX code that copies a row of croutons to pixels, all of their channels or some blocks of them."""
        block, columns = Block(), self.extents.logical_columns
        begin = block.bind("begin", row.pixels.indices[0])
        inside = sum(
            all(self._fits(row, tile * COLUMN_BLOCK + pixel, 0) for pixel in range(COLUMN_BLOCK))
            for tile in range(columns // COLUMN_BLOCK)
        )

        def one(at: Block, tile: Number) -> None:
            for half in range(HALVES):
                first = tile * COLUMN_BLOCK + half * PIXELS_OF_VECTOR
                count = PIXELS_OF_VECTOR if isinstance(first, tirx.Expr) else min(PIXELS_OF_VECTOR, columns - first)
                if count > 0:
                    self._written(at, row, begin, first, count, tile * row.tile_bytes + half * BYTES)

        block.loop("wo", inside, one)
        for tile in range(inside, blocks(columns, COLUMN_BLOCK)):
            one(block, tile)
        return block.statement()

    def _fits(self, row: CroutonRow, column: Number, first: int) -> bool:
        """Whether vectors of four blocks of channels from block `first` on end inside of the row of a pixel."""
        if isinstance(column, tirx.Expr) or self.extents.channels % BYTES == 0:
            return True
        groups = blocks(row.blocks - first, VECTOR_BLOCKS)
        return column * self.extents.channels + first * CHANNEL_BLOCK + groups * BYTES <= self._row_bytes

    def _written(
        self, block: Block, row: CroutonRow, begin: tirx.Expr, column: Number, count: int, source: Number
    ) -> None:
        """Copy up to four pixels from the vectors of their croutons.

        A vector may hold more bytes than its pixel has: they lie in the next one, which is stored later.
        """
        channels, place = self.extents.channels, begin + column * self.extents.channels

        def load(at: Block, number: Number) -> tirx.Expr:
            byte = row.croutons.indices[0] + source + number * CROUTON_BYTES
            return at.bind("croutons", instructions.load(row.croutons.source, byte), VECTOR)

        if count == PIXELS_OF_VECTOR and channels == row.blocks * CHANNEL_BLOCK <= 2 * CHANNEL_BLOCK:
            made = [load(block, number) for number in range(row.blocks)]
            if len(made) == 2:
                pair = block.bind("pixels", instructions.interleaved(made[1], made[0], CHANNEL_BLOCK), PAIR)
                made = [instructions.lower(pair), instructions.upper(pair)]
            for number, vector in enumerate(made):
                self._stored(block, row.pixels.source, place + number * BYTES, vector)
            return

        def some(at: Block, first: Number, blocks_: int) -> None:
            four = [load(at, first + number) for number in range(blocks_)]
            pixels = exchanged(at, [*four, *[four[-1]] * (VECTOR_BLOCKS - blocks_)], count)
            for number in range(count):
                to = place + number * channels + first * CHANNEL_BLOCK
                if not isinstance(first, int) or self._fits(row, column + number, first):
                    self._stored(at, row.pixels.source, to, pixels[number])
                else:
                    self._by_bytes(at, row, to, source + number * CHANNEL_BLOCK, first, blocks_)

        rest, whole = row.blocks % VECTOR_BLOCKS, row.blocks // VECTOR_BLOCKS
        if not rest and channels % BYTES:
            rest, whole = VECTOR_BLOCKS, whole - 1
        if rest:
            some(block, row.blocks - rest, rest)
        block.loop("blocks", whole, lambda at, four: some(at, four * VECTOR_BLOCKS, VECTOR_BLOCKS))

    def _by_bytes(self, block: Block, row: CroutonRow, to: Number, source: Number, first: int, count: int) -> None:
        """Copy some blocks of channels of a pixel, as many bytes at a time as its address allows."""
        channels = self.extents.channels
        unit = gcd(PAIR_BYTES, channels)
        dtype = f"{self.dtype}x{unit}" if unit > 1 else self.dtype
        for number in range(first, first + count):
            begin = row.croutons.indices[0] + source + number * CROUTON_BYTES

            def move(at: Block, index: tirx.Expr, begin: Number = begin, number: int = number) -> None:
                left, right = to + (number - first) * CHANNEL_BLOCK + index * unit, begin + index * unit
                places = [tirx.Ramp(place, 1, unit) if unit > 1 else place for place in (left, right)]
                loaded = tirx.BufferLoad(row.croutons.source, [places[1]])
                at.store(row.pixels.source, places[0], instructions.concealed_bytes(loaded, dtype))

            block.loop("unit", min(CHANNEL_BLOCK, channels - number * CHANNEL_BLOCK) // unit, move)


def exchanged(block: Block, four: Sequence[tirx.Expr], count: int) -> list[tirx.Expr]:
    """Exchange pixels with blocks of channels: vector `i` gets unit `i` of 32 bytes of each of four vectors.

    Args:
        block: what the code is added to.
        four: four vectors.
        count: how many of the results are needed.
    """
    if count == 1:
        four = [block.bind("unit", each, VECTOR) for each in four]

    def pair(high: tirx.Expr, low: tirx.Expr, size: int) -> tirx.Var:
        return block.bind("exchanged", instructions.interleaved(high, low, size), PAIR)

    first, second = (pair(four[at + 1], four[at], CHANNEL_BLOCK) for at in (0, 2))
    halves = (instructions.lower, instructions.upper)[: blocks(count, 2)]
    both = [pair(half(second), half(first), 2 * CHANNEL_BLOCK) for half in halves]
    return [half(each) for each in both for half in (instructions.lower, instructions.upper)][:count]


def _splat(byte: int) -> tirx.Expr:
    return instructions.splat(instructions.signed(byte * 0x01010101))
