"""Emit a row of a conv whose lanes are pixels, tile after tile: weights as words, results as vectors of pixels.

for tile of up to 128 pixels:
        for 4 to 16 output channels: sums of all their pixels; 4 channels narrow to a vector of words
        for 32 pixels: words of all channels, shuffled to 8 vectors of 4 pixels; stores

A target in narrow blocks gets each block as soon as its channels are there: blocks of 4 are vectors of words as they
are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

from tvm import tirx

from hexconv.kernel.pixels import BLOCK_WORDS, PixelForm, PixelTile
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import LANES, VECTOR_BYTES, WORD_BYTES, WORD_CHANNELS
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.channel_rows import Channels, emit_one_by_one, filter_byte, row_of_source, target_of
from hexconv.lower.hvx.narrow_sums import Lanes, narrow_ready, ready_sums
from hexconv.lower.hvx.plane_rows import Planes, lay_rows
from hexconv.lower.hvx.stores import Target, as_codes, fill_columns, kept, store_vector
from hexconv.lower.hvx.tile_sums import offset_of, put, trips, value_in
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import FixedPoint
from hexconv.spec.vectors import OFFSET
from hexconv.tir.statements import Block, Number, int32, vector_register


def weights_of(block: Block, words: tirx.Var, byte: tirx.Expr, channels: Sequence[int]) -> list[tirx.Expr]:
    """Load the words of some output channels, two at a time; the first channel is even."""
    found: list[tirx.Expr] = []
    for channel in channels[::2]:
        pair = instructions.doubleword(words, byte + channel * WORD_CHANNELS)
        found += instructions.halves(block.bind("weights", pair, "int64"))
    return found[: len(channels)]


def with_fringe(words: tirx.Expr, fringe: int, channels: int) -> tirx.Expr:
    """Keep the first `channels` bytes of each word, and put the fringe into the others."""
    if channels == WORD_CHANNELS:
        return words
    there = (1 << 8 * channels) - 1
    kept_words = tirx.bitwise_and(words, instructions.splat(there))
    others = (fringe & 0xFF) * 0x01010101 & ~there
    return tirx.bitwise_or(kept_words, instructions.splat(instructions.signed(others))) if fringe else kept_words


def store_pixels(
    block: Block,
    target: Target,
    element: Callable[[Number], Number],
    column: Number,
    words: Sequence[tirx.Expr | None],
    pixels: int,
) -> None:
    """Store the results of up to 32 pixels from a stored column on, given as words of all channels that lie together.

    `element` returns where these channels of a stored column begin.
    """
    together, fringe = (
        target.conv.units.together,
        instructions.splat(instructions.signed((target.conv.fringe & 0xFF) * 0x01010101)),
    )
    shuffled, most = _shuffled(block, words, fringe), target.vector_pixels
    for number in range(ceil(pixels / most)):
        value, there = shuffled[number], min(pixels - number * most, most)
        assert value is not None, "some channel is there"
        ordered = kept(target.conv, value, [together] * there, together)
        store_vector(block, target, element(column + number * most), ordered)


def _shuffled(block: Block, words: Sequence[tirx.Expr | None], fringe: tirx.Expr) -> list[tirx.Expr | None]:
    """Turn vectors of words, one word a pixel, into vectors of pixels with all of their words.

    None stands for a vector that holds nothing but the fringe.
    """
    if len(words) == 1:
        return list(words)
    found: list[tirx.Expr | None] = []
    halves = (_shuffled(block, words[::2], fringe), _shuffled(block, words[1::2], fringe))
    for even, odd in zip(*halves, strict=True):
        if even is None and odd is None:
            found += [None, None]
            continue
        low, high = (fringe if value is None else value for value in (even, odd))
        pair = block.bind("shuffled", instructions.shuffle_words(high, low), "int32x64")
        found += [instructions.lower(pair), instructions.upper(pair)]
    return found


Sums = Sequence[Sequence[tirx.Buffer]]
"""The registers of sums: `[output channel][vector of pixels]`."""


def emit_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of outputs from row `first` of the step on."""
    emit_one_by_one(block, channels, first, count, _emit_row)


def _emit_row(block: Block, channels: Channels, y: tirx.Expr, is_first: tirx.Expr) -> None:
    """Emit one row of outputs; `is_first` says whether it is the first row of the step."""
    conv, form = channels.conv, channels.conv.form
    assert isinstance(form, PixelForm)
    planes = Planes(conv, form.planes, form.planes.row_bytes, channels.scratch.buffers.get("planes"))
    target = target_of(block, channels, y)
    fill_columns(block, target)
    if not planes.layout.is_direct:
        lay_rows(block, planes, channels.operands.source, y * conv.spec.stride[0], is_first)
    start = 0
    for tile, times in form.row.tiles:
        row = _Row(channels, planes, target, y, tile)
        block.loop("x", times, lambda at, index, row=row, start=start: _tile(at, row, index * row.tile.pixels + start))
        start += times * tile.pixels


@dataclass(frozen=True)
class _Row:
    """Tiles of one row that all have the same number of pixels.

    Attributes:
        channels: the blocks of channels that the tiles compute.
        planes: the planes that the tiles multiply.
        target: where the results of the row go.
        y: the row, counted from the step's first one.
        tile: the pixels of each tile.
    """

    channels: Channels
    planes: Planes
    target: Target
    y: tirx.Expr
    tile: PixelTile


@dataclass(frozen=True)
class _Some:
    """Output channels of a block whose sums are made together.

    Attributes:
        block: the number of the block in the conv.
        words: the byte of the filter cache where the words of the block begin.
        channels: the numbers of the channels in the block.
    """

    block: tirx.Expr
    words: tirx.Expr
    channels: range

    def place(self, channel: int) -> tirx.Expr:
        """Return the number in the conv of a channel of the block."""
        return self.block * CHANNEL_BLOCK + channel


def _tile(block: Block, row: _Row, x: Number) -> None:
    """Emit all channels of one tile, from logical column `x` on."""
    column, together = block.bind("column", x + row.channels.conv.target.left), row.channels.conv.narrowed_blocks
    if row.channels.conv.units.is_narrow:
        for part in range(row.channels.blocks):
            _store_units(block, row, column, part)
        return
    for first in range(0, row.channels.blocks, together):
        words = [group for part in range(first, first + together) for group in _block_words(block, row, column, part)]
        _store(block, row, partial(row.target.pixel, int32(first)), column, words)


def _store_units(block: Block, row: _Row, column: tirx.Expr, part: int) -> None:
    """Compute 32 channels and store them in narrow blocks, each as soon as its words are there."""
    of_unit = row.channels.conv.units.together // WORD_CHANNELS
    words: list[list[tirx.Expr] | None] = []
    unit = 0
    for some in _parts(block, row, part):
        words += _words(block, row, column, some)
        if some.channels.stop == row.target.channels(part):
            words += [None] * (-len(words) % of_unit)
        while len(words) >= of_unit:
            _store(block, row, partial(row.target.unit, part, unit), column, words[:of_unit])
            words, unit = words[of_unit:], unit + 1


def _store(
    block: Block,
    row: _Row,
    element: Callable[[Number], Number],
    column: tirx.Expr,
    words: Sequence[list[tirx.Expr] | None],
) -> None:
    """Store the pixels of a tile, given as words of all channels that lie together, 32 pixels at a time."""
    for number in range(row.tile.vectors):
        pixels = min(row.tile.pixels - number * LANES, LANES)
        some = [group[number] if group else None for group in words]
        store_pixels(block, row.target, element, column + number * LANES, some, pixels)


def _block_words(block: Block, row: _Row, column: tirx.Expr, part: int) -> list[list[tirx.Expr] | None]:
    """Compute 32 channels: for each 4 of them, a vector of words for each 32 pixels; None where all 4 are fringe."""
    words = [group for some in _parts(block, row, part) for group in _words(block, row, column, some)]
    return [*words, *[None] * (BLOCK_WORDS - len(words))]


def _parts(block: Block, row: _Row, part: int) -> list[_Some]:
    """Split the channels of a block into those that are computed together."""
    channels, there, at_once = row.channels, row.target.channels(part), row.tile.channels
    number = block.bind("block", channels.step.block + channels.first + part)
    weights = block.bind("weights", filter_byte(channels) + part * channels.conv.group_bytes)
    return [_Some(number, weights, range(first, min(first + at_once, there))) for first in range(0, there, at_once)]


def _words(block: Block, row: _Row, column: tirx.Expr, some: _Some) -> list[list[tirx.Expr]]:
    """Compute some channels and narrow them: for each 4 of them, a vector of words for each 32 pixels."""
    vectors = range(row.tile.vectors)
    sums = [[vector_register(block, f"{channel}_{number}") for number in vectors] for channel in some.channels]
    for channel, registers in zip(some.channels, sums, strict=True):
        first = _first(block, row.channels, some.place(channel))
        for register in registers:
            put(block, register, first)
    _reduce(block, row, column, some, sums)
    _scale(block, row, some, sums)
    return [_narrowed(block, row, sums[at : at + WORD_CHANNELS]) for at in range(0, len(sums), WORD_CHANNELS)]


def _first(block: Block, channels: Channels, channel: tirx.Expr) -> tirx.Expr:
    """Return the vector with which the sums of a channel start."""
    offsets = channels.scratch.offsets
    return offsets.splats(block, channel)[OFFSET] if offsets else offset_of(channels.conv.offset)


def _reduce(block: Block, row: _Row, column: tirx.Expr, some: _Some, sums: Sums) -> None:
    """Add the products of every tap and input channel to the sums."""
    conv, planes, layout = row.channels.conv, row.planes, row.planes.layout
    left = block.bind("left", column * WORD_BYTES)
    add = instructions.signed_dot4_add if conv.filter_is_signed else instructions.dot4_add
    memory = row.channels.operands.source.buffer if layout.is_direct else planes.laid
    apart = layout.source.bytes if layout.is_direct else layout.stride * layout.plane_bytes

    def add_group(at: Block, base: tirx.Expr, step: tirx.Expr, group: tirx.Expr) -> None:
        place = at.bind("place", base + group * apart)
        byte = at.bind("byte", some.words + (step + group * len(layout.reads)) * VECTOR_BYTES)
        for number, read in enumerate(layout.reads):
            start = place + (read.plane * layout.plane_bytes + read.lanes * WORD_BYTES)
            loads = [
                instructions.load(memory, start + at_vector * VECTOR_BYTES) for at_vector in range(row.tile.vectors)
            ]
            pixels = [at.bind("pixels", load, instructions.VECTOR) for load in loads]
            weights = weights_of(at, row.channels.operands.filter, byte + number * VECTOR_BYTES, some.channels)
            for word, registers in zip(weights, sums, strict=True):
                for loaded, register in zip(pixels, registers, strict=True):
                    put(at, register, add(value_in(register), loaded, word))

    def add_row(at: Block, tap: tirx.Expr) -> None:
        base = at.bind("base", _row_of_planes(at, row, tap) + left)
        step = tap * (layout.groups * len(layout.reads))
        at.loop("group", trips(layout.groups, 1), lambda inner, group: add_group(inner, base, step, group))

    # LLVM would unroll the rows of taps, and begin all passes whose sums aren't scaled at once: they spill.
    rows = conv.spec.kernel[0]
    block.loop("row", rows if _is_scaled(conv) else instructions.concealed(int32(rows)), add_row)


def _row_of_planes(block: Block, row: _Row, tap: tirx.Expr) -> Number:
    """Return the byte where the row of planes begins that a row of taps reads: in the source, or as it is laid out."""
    conv = row.channels.conv
    if row.planes.layout.is_direct:
        return row_of_source(block, row.channels, row.y, tap * conv.spec.dilation[0])
    return row.planes.row(row.y * conv.spec.stride[0] + tap * conv.spec.dilation[0])


def _is_scaled(conv: RowConv) -> bool:
    """Whether narrowing has values of its own for each channel."""
    how = conv.narrowing
    return isinstance(how, FixedPoint) or bool(how and how.halves)


def _scale(block: Block, row: _Row, some: _Some, sums: Sums) -> None:
    """Do the part of narrowing that has values of its own for each channel, some channels at a time.

    LLVM would begin all channels at once, and run out of registers. So those that are scaled side by side stand in a
    loop of one trip, and LLVM doesn't know that it is one.
    """
    if not _is_scaled(row.channels.conv):
        return
    at_once = row.tile.scaled_channels
    for first in range(0, len(sums), at_once):
        of = slice(first, first + at_once)
        scale = partial(_scale_channels, row=row, some=some, channels=some.channels[of], sums=sums[of])
        block.loop("once", instructions.concealed(int32(1)), lambda at, _, scale=scale: scale(at))


def _scale_channels(block: Block, row: _Row, some: _Some, channels: range, sums: Sums) -> None:
    """Scale the sums of some channels."""
    how = row.channels.conv.narrowing
    assert how
    for channel, registers in zip(channels, sums, strict=True):
        lanes = _lanes(block, row.channels, some.place(channel))
        totals = [value_in(register) for register in registers]
        for register, value in zip(registers, ready_sums(block, totals, how, [lanes] * len(totals)), strict=True):
            put(block, register, value)


def _narrowed(block: Block, row: _Row, sums: Sums) -> list[tirx.Expr]:
    """Narrow the sums of up to 4 channels to words of 4 bytes; the last channel stands for those that are missing."""
    conv = row.channels.conv
    assert conv.narrowing
    found = []
    for number in range(row.tile.vectors):
        totals = [value_in(registers[number]) for registers in sums]
        made = narrow_ready(block, [*totals, *[totals[-1]] * (WORD_CHANNELS - len(sums))], conv.narrowing)
        codes = as_codes(block, conv, row.target.table, instructions.clamped_bytes(made, *conv.codes))
        found.append(block.bind("words", with_fringe(codes, conv.fringe, len(sums)), instructions.VECTOR))
    return found


def _lanes(block: Block, channels: Channels, channel: tirx.Expr) -> Lanes:
    """Load the values that narrowing has for a channel, each into every lane."""
    scales = channels.scratch.scales
    return scales.splats(block, channel) if scales else {}
