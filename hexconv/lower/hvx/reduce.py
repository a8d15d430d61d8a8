"""Add the products of every tap and input channel to the sums of a tile.

    for rows of taps: for planes of channels: for doublewords: for block: for pixel: sums += dot4(filter vector, word)

Weights are the vectors, activations the scalar words. This is the one form of vrmpy that a v67 issues twice a packet
and that takes activations as they lie in memory. A filter is read from its first vector to its last.
"""

from collections.abc import Callable
from dataclasses import replace

from tvm import tirx

from hexconv.kernel.hvx.tiles import PAIR_BYTES, WORD_BYTES
from hexconv.lower.hvx import dots, vector
from hexconv.lower.hvx.operands import Operands, weights_of, words_of
from hexconv.lower.hvx.passes import Pass, passes_of
from hexconv.lower.hvx.splats import Splats, reduce_splats
from hexconv.lower.hvx.tile import Initial, Raising, Tile, corrected, no_sum, put, trips, value_in
from hexconv.schedule.block import Block, int32

ONES = 0x01010101


def start_with_words(
    block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, first: Initial | None
) -> list[Callable[[], None]]:
    """Load the first words, and return a call per channel block that sets its sums to `first` plus their products."""
    [one, *_], *_ = passes_of(tile.conv)
    words = words_of(block, tile, operands, operands.row(block, int32(0)) + left_byte)

    def start_part(part: int) -> None:
        weights = [
            block.bind("weights", weights_of(tile, operands, int32(half), part), vector.VECTOR) for half in (0, 1)
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
            put(block, register, vector.shift_left_add(by.first(pixel, part), value_in(register), 8))
    for register in tile.windows:
        put(block, register, vector.shift_left(value_in(register), 8))


def _raise_held(block: Block, tile: Tile, by: Raising, limit: int) -> None:
    """Hold the sums within a limit before they grow (`hexconv.spec.raised`); sums of windows start again."""
    sums = [[block.bind("high", total, vector.VECTOR) for total in row] for row in corrected(tile)]
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            high = sums[pixel][part] + by.high[pixel] if by.high else sums[pixel][part]
            held = block.bind("held", vector.held_within(high, -limit, limit), vector.VECTOR)
            put(block, register, vector.shift_left_add(by.first(pixel, part), held, 8))
    for register in tile.windows:
        put(block, register, vector.splat(0))


def _reduce_pass(
    block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, over: Pass, skip_pairs: int = 0
) -> None:
    """Emit one pass over all taps and channels."""
    conv, plane = tile.conv, tile.conv.plane
    taps_of_run = conv.spec.kernel[1] if conv.is_one_run else 1
    runs, words = conv.spec.kernel[1] // taps_of_run, taps_of_run * conv.multiplied_words
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
        first = (tap * conv.planes + number) * (plane.words * conv.spec.kernel[1])
        add = add_splats if conv.splats else add_run
        at.loop("tap", runs, lambda inner, run: add(inner, base, first, run))

    def add_row(at: Block, tap: tirx.Expr) -> None:
        row = operands.row(at, tap)
        if conv.joins_planes:
            _add_joined(at, tile, here, over, row + left_byte + over.source_byte, tap, skip_pairs)
            return
        at.loop("plane", conv.planes, lambda inner, number: add_plane(inner, row, tap, number))

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
    plane, of_plane = tile.conv.plane, tile.conv.multiplied_words * WORD_BYTES // PAIR_BYTES
    pairs, base = tile.conv.planes * of_plane, block.bind("base", byte)

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
            weights = block.bind("weights", weights_of(tile, operands, step + half, part), vector.VECTOR)
            for pixel, register in enumerate(row[part] for row in tile.sums):
                put(block, register, dot_add(over.is_signed, value_in(register), weights, words[pixel][half]))
        for pixel, register in enumerate(tile.windows if over.sums_windows else ()):
            put(block, register, dot_add(over.is_signed, value_in(register), vector.splat(ONES), words[pixel][half]))


def dot_add(is_signed: bool, total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of unsigned weights and of signed or unsigned activations."""
    return (dots.signed_dot4_add if is_signed else dots.dot4_add)(total, weights, word)


def dot(is_signed: bool, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add up 4 products in each lane, of unsigned weights and of signed or unsigned activations."""
    return (dots.signed_dot4 if is_signed else dots.dot4)(weights, word)
