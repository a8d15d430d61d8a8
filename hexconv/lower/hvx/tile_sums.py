"""A tile of sums in HVX registers: start values, operands, products of every tap and input channel.

`hexconv.lower.hvx.tile_sums` adds the products.

for rows of taps: for planes of channels: for doublewords: for block: for pixel: sums += dot4(filter vector, word)

Weights are the vectors, activations the scalar words. This is the one form of vrmpy that a v67 issues twice a packet
and that takes activations as they lie in memory. A filter is read from its first vector to its last.

So no scalar load reads a cache: scalar loads from VTCM are slow. `hexconv.lower.hvx.tile_sums` multiplies scalar words.

There is a pass for each pair of bytes, the highest first; between passes the sums grow by 8 bits:

    (256 a + b) (256 v + w) = 256 (256 a v + a w + b v) + b w

a and b are the high and low byte of an activation: a is signed, b is not. v and w are those of a weight, if weights are
int16 too. vrmpy doesn't saturate, so it doesn't matter if sums leave 32 bits on the way. The sum of a window has
activations alone: only those passes add to it that multiply the low bytes of the filter, or all of the filter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm import tirx

from hexconv.kernel.channels import channel_form
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BYTES, WORD_BYTES
from hexconv.lower.hvx import instructions
from hexconv.tir.statements import Block, Number, int32, vector_register

MOST_UNROLLED = 8
"""Trips of a loop of a pair of words."""
NOT_IMMEDIATE_BYTES = 1 << 15
"""The least distance that is no immediate operand of an addition: a constant extender holds it."""

Initial = Callable[[int, int], tirx.Expr]
"""What the sums of a pixel and a block of channels start from."""


@dataclass(frozen=True)
class Raising:
    """What is added to sums when they grow by a byte.

    Attributes:
        first: what is added to 256 times the sums.
        high: for each pixel, what is added to the sums before that; empty where nothing is.
    """

    first: Initial
    high: Sequence[tirx.Expr] = ()


@dataclass(frozen=True)
class Tile:
    """The registers of a tile, `sums[pixel][block]`, and the sums of its windows where the filter has a zero point."""

    conv: RowConv
    sums: tuple[tuple[tirx.Buffer, ...], ...]
    windows: tuple[tirx.Buffer, ...]

    @property
    def blocks(self) -> int:
        """Blocks of 32 output channels in the tile."""
        return len(self.sums[0])

    @property
    def pixels(self) -> int:
        """Pixels of a row in the tile."""
        return len(self.sums)


def allocate(block: Block, conv: RowConv, pixels: int, blocks: int) -> Tile:
    """Allocate the registers of a tile."""

    def register(pixel: int, part: int) -> tirx.Buffer:
        return vector_register(block, f"{pixel}_{part}")

    sums = tuple(tuple(register(pixel, part) for part in range(blocks)) for pixel in range(pixels))
    windows = (
        tuple(register(pixel, blocks) for pixel in range(pixels)) if channel_form(conv).sums_windows_inside else ()
    )
    return Tile(conv, sums, windows)


def start(block: Block, tile: Tile, first: Initial) -> None:
    """Set each sum to what `first` returns for its pixel and its block of channels."""
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            put(block, register, first(pixel, part))
    for register in tile.windows:
        put(block, register, instructions.splat(0))


def results(tile: Tile) -> list[list[tirx.Expr]]:
    """Return the sums, less the filter's zero point times the sum of each window; they saturate where they have to."""
    return [[_saturated(tile.conv, total) for total in row] for row in corrected(tile)]


def corrected(tile: Tile) -> list[list[tirx.Expr]]:
    """Return what the sums have come to, less the filter's zero point times what their windows have come to."""
    zero = instructions.splat(tile.conv.filter_zero)
    windows = [value_in(register) * zero for register in tile.windows]
    return [
        [value_in(register) - windows[pixel] if windows else value_in(register) for register in row]
        for pixel, row in enumerate(tile.sums)
    ]


def _saturated(conv: RowConv, total: tirx.Expr) -> tirx.Expr:
    """Hold a sum, with what narrowing needs added to it, within the limit at which sums saturate."""
    if conv.raised is None:
        return total
    return instructions.held_within(total, conv.offset - conv.raised.sum, conv.offset + conv.raised.sum)


def no_sum(_pixel: int, _part: int) -> tirx.Expr:
    """Return zero in every lane: such a sum starts from nothing."""
    return instructions.splat(0)


def trips(pairs: int, blocks: int) -> Number:
    """Say how often the inner loop runs, in a form that keeps LLVM from unrolling a short loop.

    LLVM isn't told of a small number of trips: it would unroll them, then load all filter vectors of a tile ahead of
    the loop over tiles, more than there are registers. Nor is it told of an odd number of trips with one block of
    channels: it would make one trip of two, and leave the loop in the middle of a trip, which no hardware loop can.
    """
    is_halved = blocks == 1 and pairs % 2 == 1
    return instructions.concealed(int32(pairs)) if pairs > 1 and (pairs <= MOST_UNROLLED or is_halved) else pairs


def put(block: Block, register: tirx.Buffer, value: tirx.Expr) -> None:
    """Set all words of a register."""
    block.store(register, tirx.Ramp(0, 1, instructions.WORDS), value)


def value_in(register: tirx.Buffer) -> tirx.Expr:
    """Load all words of a register."""
    return tirx.BufferLoad(register, [tirx.Ramp(0, 1, instructions.WORDS)])


def offset_of(value: int) -> tirx.Expr:
    """Return a constant of 32 bits, modulo 2**32, in every lane."""
    return instructions.splat(int32(instructions.signed(value)))


Words = Sequence[Sequence[tirx.Expr]]
"""[pixel][word of the step]."""


@dataclass(frozen=True)
class Operands:
    """The places of a tile's operands.

    Attributes:
        source: the activations, flat.
        row: byte of the source where the r-th row of taps of the tile's row begins.
        filter: the filter cache, flat.
        filter_byte: where the tile's first block begins.
    """

    source: tirx.Buffer
    row: Callable[[Block, tirx.Expr], tirx.Expr]
    filter: tirx.Buffer
    filter_byte: Number


def words_of(block: Block, tile: Tile, operands: Operands, byte: tirx.Expr) -> Words:
    """Load two words of every pixel."""
    apart = tile.conv.spec.stride[1] * tile.conv.plane.pixel_bytes
    loads = [instructions.doubleword(operands.source, byte + pixel * apart) for pixel in range(tile.pixels)]
    return [instructions.halves(pair) for pair in [block.bind("words", load, "int64") for load in loads]]


def weights_of(tile: Tile, operands: Operands, step: tirx.Expr, part: int) -> tirx.Expr:
    """Load a vector of the filter: 4 weights for each of 32 output channels."""
    conv = tile.conv
    group, lane = divmod(part, conv.side_by_side)
    byte = operands.filter_byte + _apart(group * conv.group_bytes)
    return instructions.load(operands.filter, byte + (step * conv.side_by_side + lane) * VECTOR_BYTES)


def _apart(size_bytes: int) -> Number:
    """Return how far apart two groups of blocks lie.

    LLVM would add distances that an instruction can't hold anew for each load, and not pipeline the loop; one that it
    doesn't know becomes an address of its own.
    """
    if size_bytes < NOT_IMMEDIATE_BYTES:
        return size_bytes
    return instructions.concealed(int32(size_bytes // VECTOR_BYTES)) * VECTOR_BYTES


@dataclass(frozen=True)
class Pass:
    """The bytes of elements that a pass over a window multiplies.

    Attributes:
        source_byte: bytes from the first byte of the source to those that this pass multiplies.
        filter_byte: bytes from the first byte of the filter to those that this pass multiplies.
        is_signed: whether the bytes of the source are signed.
        sums_windows: whether the sums of windows are made from this pass.
    """

    source_byte: int
    filter_byte: int
    is_signed: bool
    sums_windows: bool = True


def passes_of(conv: RowConv) -> tuple[tuple[Pass, ...], ...]:
    """Return the passes of a conv in groups; sums grow by 8 bits between groups, not between the passes of one."""
    low, filter_low = conv.plane.low_bytes, conv.filter_low_bytes
    if not low:
        return ((Pass(0, 0, conv.is_signed),),)
    if not filter_low:
        return (Pass(0, 0, True),), (Pass(low, 0, False),)
    middle = Pass(0, filter_low, True), Pass(low, 0, False, sums_windows=False)
    return (Pass(0, 0, True, sums_windows=False),), middle, (Pass(low, filter_low, False),)


@dataclass(frozen=True)
class Splats:
    """A run of words under the windows of a tile's pixels, and the filter vectors that multiply them.

    Attributes:
        operands: the operands of the tile.
        over: the pass over the window.
        byte: the byte of the first pixel's first word.
        step: the first filter vector.
    """

    operands: Operands
    over: Pass
    byte: tirx.Expr
    step: tirx.Expr


def reduce_splats(block: Block, tile: Tile, splats: Splats, words: int) -> None:
    """Add the products of a run of words; load 32 words of each pixel at a time, and splat each."""
    whole, rest = divmod(words, instructions.WORDS)

    def some(at: Block, number: tirx.Expr, count: int) -> None:
        start = at.bind("start", splats.byte + number * instructions.BYTES)
        apart = tile.conv.spec.stride[1] * tile.conv.plane.pixel_bytes
        held = [vector_register(at, f"words{pixel}") for pixel in range(tile.pixels)]
        for pixel, register in enumerate(held):
            put(at, register, _vector_from(at, splats.operands.source, start + pixel * apart))
        first = splats.step + number * instructions.WORDS
        ways = [at.bind("way", instructions.way_to_word(half), instructions.VECTOR) for half in range(2)]
        at.loop(
            "pair", trips(count // 2, tile.blocks), lambda inner, pair: add_pair(inner, held, ways, first + pair * 2)
        )

    def add_pair(at: Block, held: Sequence[tirx.Buffer], ways: Sequence[tirx.Expr], step: tirx.Expr) -> None:
        for half, way in enumerate(ways):
            spread = [
                at.bind("splat", instructions.spread(value_in(register), way), instructions.VECTOR) for register in held
            ]
            for part in range(tile.blocks):
                weights = at.bind("weights", weights_of(tile, splats.operands, step + half, part), instructions.VECTOR)
                for pixel, register in enumerate(row[part] for row in tile.sums):
                    total, signed = value_in(register), splats.over.is_signed
                    put(at, register, instructions.dot4_of_vectors(total, weights, spread[pixel], False, signed))
        for register in held:
            put(at, register, instructions.rotated(value_in(register), PAIR_BYTES))

    block.loop("chunk", whole, lambda at, number: some(at, number, instructions.WORDS))
    if rest:
        some(block, int32(whole), rest)


def _vector_from(block: Block, source: tirx.Buffer, byte: tirx.Expr) -> tirx.Expr:
    """Load 128 bytes from a word on, out of two vectors; bytes past the end of the source come from its last vector."""
    last = prod(int(size) for size in source.shape) // VECTOR_BYTES - 1
    first = block.bind("aligned", tirx.floordiv(byte, int32(VECTOR_BYTES)))
    low = instructions.load(source, first * VECTOR_BYTES)
    high = instructions.load(source, tirx.min(first + 1, int32(last)) * VECTOR_BYTES)
    return instructions.aligned(high, low, byte)


ONES = 0x01010101


def start_with_words(
    block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, first: Initial | None
) -> list[Callable[[], None]]:
    """Load the first words, and return a call per channel block that sets its sums to `first` plus their products."""
    [one, *_], *_ = passes_of(tile.conv)
    words = words_of(block, tile, operands, operands.row(block, int32(0)) + left_byte)

    def start_part(part: int) -> None:
        weights = [
            block.bind("weights", weights_of(tile, operands, int32(half), part), instructions.VECTOR) for half in (0, 1)
        ]
        for pixel, register in enumerate(row[part] for row in tile.sums):
            once = (
                dot_add(one.is_signed, first(pixel, part), weights[0], words[pixel][0])
                if first
                else dot(one.is_signed, weights[0], words[pixel][0])
            )
            put(block, register, dot_add(one.is_signed, once, weights[1], words[pixel][1]))

    return [lambda part=part: start_part(part) for part in range(tile.blocks)]


def reduce(
    block: Block,
    tile: Tile,
    operands: Operands,
    left_byte: tirx.Expr,
    raising: Callable[[], Raising],
    skip_pairs: int = 0,
) -> None:
    """Add the products of every tap and channel to the sums, which have been set.

    Args:
        block: the block to emit into.
        tile: the sums, which start from zero where there are several groups of passes.
        operands: the operands to multiply.
        left_byte: the byte of the first pixel's window, counted from the start of its row.
        raising: returns what is added to sums of high bytes; it is called where that is added.
        skip_pairs: how many pairs of words the sums have already, where a row of taps is one run.
    """
    first, *others = passes_of(tile.conv)
    for each in first:
        _reduce_pass(block, tile, operands, left_byte, each, skip_pairs)
    for number, group in enumerate(others, 1):
        _raise_sums(block, tile, raising() if number == len(others) else Raising(no_sum))
        for each in group:
            _reduce_pass(block, tile, operands, left_byte, each)


def _raise_sums(block: Block, tile: Tile, by: Raising) -> None:
    """Multiply the sums by 256, and add the values that they start from."""
    if tile.conv.raised is not None:
        _raise_held(block, tile, by, tile.conv.raised.high)
        return
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            put(block, register, instructions.shift_left_add(by.first(pixel, part), value_in(register), 8))
    for register in tile.windows:
        put(block, register, instructions.shift_left(value_in(register), 8))


def _raise_held(block: Block, tile: Tile, by: Raising, limit: int) -> None:
    """Hold the sums within a limit before they grow (`hexconv.spec.ranges`); sums of windows start again."""
    sums = [[block.bind("high", total, instructions.VECTOR) for total in row] for row in corrected(tile)]
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            high = sums[pixel][part] + by.high[pixel] if by.high else sums[pixel][part]
            held = block.bind("held", instructions.held_within(high, -limit, limit), instructions.VECTOR)
            put(block, register, instructions.shift_left_add(by.first(pixel, part), held, 8))
    for register in tile.windows:
        put(block, register, instructions.splat(0))


def _reduce_pass(
    block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, over: Pass, skip_pairs: int = 0
) -> None:
    """Emit one pass over all taps and channels."""
    conv, plane, form = tile.conv, tile.conv.plane, channel_form(tile.conv)
    taps_of_run = conv.spec.kernel[1] if form.is_one_run else 1
    runs, words = conv.spec.kernel[1] // taps_of_run, taps_of_run * form.multiplied_words
    here = replace(operands, filter_byte=operands.filter_byte + over.filter_byte)

    def add_run(at: Block, base: tirx.Expr, first: tirx.Expr, run: tirx.Expr) -> None:
        byte = base + run * (conv.spec.dilation[1] * plane.pixel_bytes)
        at.loop(
            "pair",
            trips(words * WORD_BYTES // PAIR_BYTES - skip_pairs, tile.blocks),
            lambda inner, index: _add_pair(
                inner,
                tile,
                here,
                over,
                byte + (index + skip_pairs) * PAIR_BYTES,
                first + run * plane.words + (index + skip_pairs) * 2,
            ),
        )

    def add_splats(at: Block, base: tirx.Expr, first: tirx.Expr, run: tirx.Expr) -> None:
        byte = base + run * (conv.spec.dilation[1] * plane.pixel_bytes)
        reduce_splats(at, tile, Splats(here, over, byte, first + run * plane.words), words)

    def add_plane(at: Block, row: tirx.Expr, tap: tirx.Expr, number: tirx.Expr) -> None:
        base = at.bind("base", row + left_byte + number * plane.bytes + over.source_byte)
        first = (tap * form.planes + number) * (plane.words * conv.spec.kernel[1])
        add = add_splats if form.splats else add_run
        at.loop("tap", runs, lambda inner, run: add(inner, base, first, run))

    def add_row(at: Block, tap: tirx.Expr) -> None:
        row = operands.row(at, tap)
        if form.joins_planes:
            _add_joined(at, tile, here, over, row + left_byte + over.source_byte, tap, skip_pairs)
            return
        at.loop("plane", form.planes, lambda inner, number: add_plane(inner, row, tap, number))

    block.loop("row", conv.spec.kernel[0], add_row)


def _add_joined(
    block: Block,
    tile: Tile,
    operands: Operands,
    over: Pass,
    byte: tirx.Expr,
    tap: tirx.Expr,
    skip_pairs: int,
) -> None:
    """Emit a row of one tap over all planes: a run of pairs of words, some of which lie side by side in a plane."""
    plane, form = tile.conv.plane, channel_form(tile.conv)
    of_plane = form.multiplied_words * WORD_BYTES // PAIR_BYTES
    pairs, base = form.planes * of_plane, block.bind("base", byte)

    def one(at: Block, index: tirx.Expr) -> None:
        number, inside = tirx.floordiv(index, int32(of_plane)), tirx.floormod(index, int32(of_plane))
        place = at.bind("place", base + number * plane.bytes + inside * PAIR_BYTES)
        _add_pair(at, tile, operands, over, place, (tap * pairs + index) * 2)

    block.loop("pair", trips(pairs - skip_pairs, tile.blocks), lambda at, index: one(at, index + skip_pairs))


def _add_pair(block: Block, tile: Tile, operands: Operands, over: Pass, byte: tirx.Expr, step: tirx.Expr) -> None:
    """Multiply eight channels of every pixel with every block of output channels."""
    words = words_of(block, tile, operands, byte)
    for half in range(2):
        for part in range(tile.blocks):
            weights = block.bind("weights", weights_of(tile, operands, step + half, part), instructions.VECTOR)
            for pixel, register in enumerate(row[part] for row in tile.sums):
                put(block, register, dot_add(over.is_signed, value_in(register), weights, words[pixel][half]))
        for pixel, register in enumerate(tile.windows if over.sums_windows else ()):
            put(
                block,
                register,
                dot_add(over.is_signed, value_in(register), instructions.splat(ONES), words[pixel][half]),
            )


def dot_add(is_signed: bool, total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of unsigned weights and of signed or unsigned activations."""
    return (instructions.signed_dot4_add if is_signed else instructions.dot4_add)(total, weights, word)


def dot(is_signed: bool, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add up 4 products in each lane, of unsigned weights and of signed or unsigned activations."""
    return (instructions.signed_dot4 if is_signed else instructions.dot4)(weights, word)
