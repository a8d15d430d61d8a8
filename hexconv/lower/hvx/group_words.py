"""Emit a row of outputs of a conv of small groups: each lane multiplies the words of its own group.

pixel of 32 channels, 8 words:      a b c d e f g h
    spread for groups of 4:             aaaa bbbb cccc dddd eeee ffff gggg hhhh
    for groups of 8, words 1 and 2:     aaaaaaaa cccccccc eeeeeeee gggggggg, bbbbbbbb dddddddd ffffffff hhhhhhhh

    for tile of pixels: for row of taps: for pixel under it: spread; for tap: sums += dot4(spread, weights)

A vector of 4 pixels is loaded, and `vdelta` spreads the words of each. So both operands of a product are vectors, of
bytes with a sign or without, and no window is summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.grouped import TILE_PIXELS, GroupForm, spread_way
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BLOCKS, VECTOR_BYTES, WORD_CHANNELS
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.channel_rows import (
    Channels,
    emit_one_by_one,
    filter_byte,
    initial_sums,
    source_of,
    source_row,
    target_of,
)
from hexconv.lower.hvx.stores import Target, fill_columns, stores
from hexconv.lower.hvx.tile_sums import Tile, put, results, start, value_in
from hexconv.tir.statements import Block, int32, vector_register

FEW_VECTORS = 12
"""The most vectors of weights of a window whose rows of taps are no loop: they stay in registers."""
Ways = Sequence[Sequence[tirx.Expr]]
"""[pixel of a vector][word of a group]: how the words are spread."""


@dataclass(frozen=True)
class _Row:
    channels: Channels
    target: Target
    y: tirx.Expr
    ways: Ways


def emit_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of outputs of one block of channels, from row `first` of the step on."""
    emit_one_by_one(block, channels, first, count, _emit_row)


def _words(conv: RowConv) -> int:
    """Count the words of a group."""
    assert isinstance(conv.form, GroupForm)
    return conv.form.words


def _emit_row(block: Block, channels: Channels, y: tirx.Expr, _is_first: tirx.Expr) -> None:
    """Emit one row of outputs of one block of channels."""
    conv = channels.conv
    target = target_of(block, channels, y)
    fill_columns(block, target)
    words = _words(conv)
    ways = [[_way(block, words, pixel, word) for word in range(words)] for pixel in range(VECTOR_BLOCKS)]
    row = _Row(channels, target, y, ways)
    whole, rest = divmod(conv.columns, TILE_PIXELS)
    block.loop("x", whole, lambda at, index: _tile(at, row, at.bind("x", index * TILE_PIXELS), TILE_PIXELS))
    if rest:
        _tile(block, row, int32(whole * TILE_PIXELS), rest)


def _way(block: Block, words: int, pixel: int, word: int) -> tirx.Expr:
    """Return the operand by which `vdelta` spreads the words of a pixel's groups."""
    pattern = [bits for bits in spread_way(words, pixel, word) for _ in range(WORD_CHANNELS)]
    return block.bind("way", instructions.moved(instructions.repeated(pattern)), instructions.VECTOR)


def _tile(block: Block, row: _Row, x: tirx.Expr, pixels: int) -> None:
    """Emit a tile: start its sums, add the products of all rows of taps, store."""
    conv, channels = row.channels.conv, row.channels
    tile = Tile(conv, tuple((vector_register(block, f"{pixel}_0"),) for pixel in range(pixels)), ())
    start(block, tile, initial_sums(block, channels, x, pixels))
    if conv.filter_steps <= FEW_VECTORS:
        for tap in range(conv.spec.kernel[0]):
            _add_row(block, row, tile, x, int32(tap))
    else:
        block.loop("row", conv.spec.kernel[0], lambda at, tap: _add_row(at, row, tile, x, tap))
    for store in stores(row.target, x + conv.target.left, results(tile)):
        store(block)


def _add_row(block: Block, row: _Row, tile: Tile, x: tirx.Expr, tap: tirx.Expr) -> None:
    """Add the products of a row of taps."""
    conv, channels = tile.conv, row.channels
    first, apart = conv.target.left * conv.spec.stride[1], channels.first * conv.plane.bytes
    base = source_row(channels, row.y)(block, tap) + apart + x * (conv.spec.stride[1] * conv.plane.pixel_bytes)
    weights = [
        [_weights(block, channels, tap, word, column) for column in range(conv.spec.kernel[1])]
        for word in range(_words(conv))
    ]
    uses: dict[int, list[tuple[int, int]]] = {}
    for pixel in range(tile.pixels):
        for column in range(conv.spec.kernel[1]):
            place = first + pixel * conv.spec.stride[1] + column * conv.spec.dilation[1]
            uses.setdefault(place, []).append((pixel, column))
    loaded: dict[int, tirx.Expr] = {}
    for place, of_place in sorted(uses.items()):
        quad, pixel = divmod(place, VECTOR_BLOCKS)
        if quad not in loaded:
            read = instructions.load(source_of(channels), base + quad * VECTOR_BYTES)
            loaded[quad] = block.bind("quad", read, instructions.VECTOR)
        for word, of_word in enumerate(weights):
            value = block.bind("spread", instructions.spread(loaded[quad], row.ways[pixel][word]), instructions.VECTOR)
            for output, column in of_place:
                register = tile.sums[output][0]
                signs = conv.filter_is_signed, conv.is_signed
                put(block, register, instructions.dot4_of_vectors(value_in(register), of_word[column], value, *signs))


def _weights(block: Block, channels: Channels, tap: tirx.Expr, word: int, column: int) -> tirx.Expr:
    """Load a vector of weights: 4 for each of 32 output channels."""
    conv = channels.conv
    step = (tap * _words(conv) + word) * conv.spec.kernel[1] + column
    value = instructions.load(channels.operands.filter, filter_byte(channels) + step * VECTOR_BYTES)
    return block.bind("weights", value, instructions.VECTOR)
