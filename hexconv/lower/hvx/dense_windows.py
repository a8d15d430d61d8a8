"""Emit a row of a conv over dense rows: copies that begin at other windows, and sums of windows.

for new row of the source: copies of it, each from another window on
for vector of a copy: rows of taps summed; sums of windows
for tile of pixels: for rows of taps: for words: dot4(weights, word); narrowing, stores

The copies hold unsigned bytes: int8 activations become uint8 on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.dense import HALFWORD_BYTES, DenseForm, window_pixels
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BYTES, WORD_BYTES
from hexconv.lower.conv_step import Rows
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.channel_rows import Channels, emit_one_by_one, filter_byte, initial_sums, target_of
from hexconv.lower.hvx.plane_rows import Planes, each_new_row
from hexconv.lower.hvx.stores import Target, fill_columns, stores
from hexconv.lower.hvx.tile_sums import Tile, put, results, trips, value_in
from hexconv.tir.statements import Block, Number, int32, vector_register

PAIR = "int32x64"


def lay_dense_rows(
    block: Block, planes: Planes, dense: DenseForm, source: Rows, top: tirx.Expr, is_first: tirx.Expr
) -> None:
    """Lay out new rows as copies; `dense` says how they lie."""

    def one(at: Block, byte: tirx.Expr, to: Number) -> None:
        _copy_row(at, planes, dense, source.buffer, byte, at.bind("copies_row", to))

    each_new_row(block, planes, source, top, is_first, one)


def _copy_row(block: Block, planes: Planes, dense: DenseForm, source: tirx.Var, byte: Number, to: Number) -> None:
    """Copy a row as often as it takes; what lies behind the row isn't read."""
    size = dense.planes.source.row_bytes

    def one(at: Block, copy: int, number: Number, missing: int) -> None:
        value = instructions.load(source, byte + (dense.left(copy) - missing) + number * VECTOR_BYTES)
        value = instructions.rotated(value, missing) if missing else value
        value = value if planes.conv.reads_unsigned else instructions.flipped(value)
        # In steps of one row, LLVM makes calls of memcpy of the loop over vectors: a row then took 15 times as long.
        value = instructions.moved(value) if dense.planes.rows == 1 else value
        place = to + copy * dense.copy_bytes + number * VECTOR_BYTES
        at.store(planes.laid, instructions.at(place), instructions.stored(value))

    copies = range(dense.copies)

    def all_copies(at: Block, number: tirx.Expr) -> None:
        for copy in copies:
            one(at, copy, number, 0)

    whole = min(min(dense.copied(copy), max(size - dense.left(copy), 0) // VECTOR_BYTES) for copy in copies)
    block.loop("vector", whole, all_copies)
    for copy in copies:
        for number in range(whole, dense.copied(copy)):
            one(block, copy, number, max(dense.left(copy) + (number + 1) * VECTOR_BYTES - size, 0))


def sum_windows(block: Block, planes: Planes, dense: DenseForm, top: Number) -> None:
    """Sum the bytes of all windows of a row of outputs, as halfwords; `top` is the first row of the windows."""
    conv = planes.conv
    rows = [block.bind("row", planes.row(top + tap * conv.spec.dilation[0])) for tap in range(conv.spec.kernel[0])]
    pairs = dense.planes.rows * dense.row_bytes
    evens = pairs + dense.halfwords_bytes

    def of_rows(at: Block, number: tirx.Expr, phase: int) -> None:
        first = at.bind("first", number * VECTOR_BYTES)
        loads = [instructions.load(planes.laid, row + (phase * dense.copy_bytes) + first) for row in rows]
        total = at.bind("halfwords", _summed(loads), PAIR)
        even, odd = instructions.lower(total), instructions.upper(total)
        at.store(planes.laid, instructions.at(first + pairs), instructions.stored(_add(even, odd)))
        if dense.has_odd_byte:
            at.store(planes.laid, instructions.at(first + evens), instructions.stored(even))

    def of_windows(at: Block, number: tirx.Expr, phase: int) -> None:
        first = at.bind("first", number * VECTOR_BYTES)
        places = [pairs + pair * HALFWORD_BYTES for pair in range(dense.pairs)]
        places += [evens + dense.pairs * HALFWORD_BYTES] if dense.has_odd_byte else []
        total = instructions.load(planes.laid, first + places[0])
        for place in places[1:]:
            total = _add(total, instructions.load(planes.laid, first + place))
        to = dense.corrections_byte + phase * dense.copy_bytes
        at.store(planes.laid, instructions.at(first + to), instructions.stored(total))

    for phase in range(dense.phases):
        block.loop("vector", dense.copy_vectors, lambda at, number, phase=phase: of_rows(at, number, phase))
        block.loop("vector", dense.copy_vectors, lambda at, number, phase=phase: of_windows(at, number, phase))


def _summed(rows: list[tirx.Expr]) -> tirx.Expr:
    """Add up the bytes of vectors: a pair of vectors of halfwords, of the even bytes and of the odd ones."""
    padded = [*rows, instructions.splat(0)] if len(rows) % 2 else rows
    total = instructions.instruction("vaddubh", padded[0], padded[1], result=PAIR)
    for one, other in zip(padded[2::2], padded[3::2], strict=True):
        total = instructions.instruction("vaddubh.acc", total, one, other, result=PAIR)
    return total


def _add(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add halfwords, modulo 65536."""
    return instructions.instruction("vaddh", one, other)


def emit_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of outputs from row `first` of the step on."""
    emit_one_by_one(block, channels, first, count, _emit_row)


def _emit_row(block: Block, channels: Channels, y: tirx.Expr, is_first: tirx.Expr) -> None:
    """Emit one row of outputs; `is_first` says whether it is the first row of the step."""
    conv, dense = channels.conv, channels.conv.form
    assert isinstance(dense, DenseForm)
    planes = Planes(conv, dense.planes, dense.row_bytes, channels.scratch.buffers["planes"])
    target = target_of(block, channels, y)
    fill_columns(block, target)
    lay_dense_rows(block, planes, dense, channels.operands.source, y * conv.spec.stride[0], is_first)
    top = y * conv.spec.stride[0]
    if dense.sums_windows:
        sum_windows(block, planes, dense, top)
    row, first = _Row(channels, planes, dense, target, top, window_pixels(channels.blocks)), 0
    for pixels, times in dense.row_tiles(channels.blocks):
        block.loop("x", times, lambda at, index, p=pixels, start=first: _tile(at, row, _number(at, index) + start, p))
        first += times


@dataclass(frozen=True)
class _Row:
    """Tiles of one row.

    Attributes:
        channels: the blocks of channels that the tiles compute.
        planes: the copies that the tiles multiply.
        dense: how the copies lie.
        target: where the results of the row go.
        top: the first row of the windows.
        pixels: the pixels of a whole tile.
    """

    channels: Channels
    planes: Planes
    dense: DenseForm
    target: Target
    top: tirx.Expr
    pixels: int

    def window(self, block: Block, tile: tirx.Expr) -> tirx.Expr:
        """Return the byte of a row of copies where the window of a tile's first pixel begins."""
        dense, of_turn = self.dense, self.dense.copies * self.dense.apart
        if self.pixels % dense.copies == 0:
            return block.bind("left", tile * (self.pixels // dense.copies * of_turn))
        tiles = int32(dense.copies // self.pixels)
        turn, place = tirx.floordiv(tile, tiles), tirx.floormod(tile, tiles)
        return block.bind("left", turn * of_turn + place * (self.pixels * dense.copy_bytes))

    def beside(self, pixel: int) -> int:
        """Return the bytes from the window of a tile's first pixel to that of another one."""
        turn, copy = divmod(pixel, self.dense.copies)
        return turn * self.dense.copies * self.dense.apart + copy * self.dense.copy_bytes

    def correction(self, block: Block, tile: tirx.Expr) -> Callable[[int], tirx.Expr]:
        """Return a function from a pixel of a tile to what its window takes off its sums, in every lane."""
        dense, memory = self.dense, self.planes.laid
        base = block.bind("sums", tile * (self.pixels * dense.apart) + dense.corrections_byte)

        def one(pixel: int) -> tirx.Expr:
            phase = pixel % dense.phases
            byte = base + (phase * dense.copy_bytes + (pixel - phase) * dense.apart)
            read = tirx.BufferLoad(memory, [tirx.Ramp(byte, 1, HALFWORD_BYTES)])
            total = tirx.Cast("int32", tirx.reinterpret("uint16", read))
            return block.bind(
                "correction", instructions.splat(total * int32(-self.channels.conv.filter_zero)), instructions.VECTOR
            )

        return one


def _number(block: Block, index: tirx.Expr) -> tirx.Expr:
    """Return the number of a tile in a form that keeps LLVM from carrying an address for each pixel and row of taps."""
    return block.bind("number", instructions.concealed(index))


def _tile(block: Block, row: _Row, number: tirx.Expr, pixels: int) -> None:
    """Emit tile `number` of a row, of `pixels` pixels: start its sums, add the products, store."""
    conv, blocks = row.channels.conv, row.channels.blocks
    registers = tuple(
        tuple(vector_register(block, f"{pixel}_{part}") for part in range(blocks)) for pixel in range(pixels)
    )
    tile = Tile(conv, registers, ())
    first = initial_sums(block, row.channels, number, pixels)
    correct = row.correction(block, number) if conv.filter_zero else None
    for pixel, sums in enumerate(tile.sums):
        less = correct(pixel) if correct else None
        for part, register in enumerate(sums):
            put(block, register, first(pixel, part) if less is None else first(pixel, part) + less)
    left = row.window(block, number)
    _add_rows(block, row, tile, left, number)
    column = number * row.pixels + conv.target.left
    for store in stores(row.target, column, results(tile)):
        store(block)


def _add_rows(block: Block, row: _Row, tile: Tile, left: tirx.Expr, number: tirx.Expr) -> None:
    """Add the products of all rows of taps, one after the other without a loop where a window has few words.

    LLVM would then load all filter vectors of a tile ahead of the loop over tiles, more than there are registers. So it
    isn't told that `number - number` is 0, and that they are the same in every tile.
    """
    taps = tile.conv.spec.kernel[0]
    if row.dense.loops_over_rows:
        block.loop("row", trips(taps, tile.blocks), lambda at, tap: _add_row(at, row, tile, left, tap))
        return
    zero = block.bind("zero", (instructions.concealed(number) - number) * VECTOR_BYTES)
    for tap in range(taps):
        _add_row(block, row, tile, left, int32(tap), zero)


def _add_row(block: Block, row: _Row, tile: Tile, left: tirx.Expr, tap: tirx.Expr, zero: Number = 0) -> None:
    """Add the products of a row of taps; `zero` is added to the address of the filter."""
    conv, dense, planes = tile.conv, row.dense, row.planes
    base = block.bind("base", planes.row(row.top + tap * conv.spec.dilation[0]) + left)
    of_row = filter_byte(row.channels) + zero + tap * (dense.words * conv.side_by_side * VECTOR_BYTES)
    weights_row = block.bind("weights_row", of_row)
    for pair in range(0, dense.words, PAIR_BYTES // WORD_BYTES):
        places = [base + (row.beside(pixel) + pair * WORD_BYTES) for pixel in range(tile.pixels)]
        loads = [block.bind("words", instructions.doubleword(planes.laid, place), "int64") for place in places]
        for half in range(min(PAIR_BYTES // WORD_BYTES, dense.words - pair)):
            words = [instructions.halves(load)[half] for load in loads]
            for part in range(tile.blocks):
                group, lane = divmod(part, conv.side_by_side)
                step = (pair + half) * conv.side_by_side + lane
                byte = weights_row + (group * conv.group_bytes + step * VECTOR_BYTES)
                weights = block.bind(
                    "weights", instructions.load(row.channels.operands.filter, byte), instructions.VECTOR
                )
                for word, sums in zip(words, tile.sums, strict=True):
                    put(block, sums[part], instructions.dot4_add(value_in(sums[part]), weights, word))
