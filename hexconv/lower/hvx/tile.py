"""A tile of sums in HVX registers: pixels of a row by blocks of 32 output channels.

    for rows of taps: for planes of channels: for doublewords: for block: for pixel: sums += dot4(filter vector, word)

Weights are the vectors, activations the scalar words: the one form of vrmpy that a v67 issues twice a packet and that
takes activations as they lie in memory. A filter is read from its first vector to its last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv
from hexconv.schedule.block import Block, Number, int32, vector_register
from hexconv.schedule.hvx import vector

ONES = 0x01010101
WORD_BYTES, PAIR_BYTES = 4, 8

Words = Sequence[Sequence[tirx.Expr]]
"""[pixel][word of the step]."""


@dataclass(frozen=True)
class Operands:
    """Where a tile's operands are.

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


@dataclass(frozen=True)
class Tile:
    """A tile's registers, `sums[pixel][block]`, and the sums of its windows where the filter has a zero point."""

    conv: InnerConv
    sums: tuple[tuple[tirx.Buffer, ...], ...]
    windows: tuple[tirx.Buffer, ...]

    @property
    def blocks(self) -> int:
        """Of 32 output channels."""
        return len(self.sums[0])

    @property
    def pixels(self) -> int:
        """In a row."""
        return len(self.sums)


def allocate(block: Block, conv: InnerConv, pixels: int, blocks: int) -> Tile:
    """The registers of a tile."""

    def register(pixel: int, part: int) -> tirx.Buffer:
        return vector_register(block, f"{pixel}_{part}")

    sums = tuple(tuple(register(pixel, part) for part in range(blocks)) for pixel in range(pixels))
    windows = (
        tuple(register(pixel, blocks) for pixel in range(pixels))
        if conv.filter_zero and not conv.sums_windows_ahead
        else ()
    )
    return Tile(conv, sums, windows)


def start(block: Block, tile: Tile, first: Callable[[int, int], tirx.Expr]) -> None:
    """Set the sums: to what `first` says of a pixel and a block of channels."""
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            _set(block, register, first(pixel, part))
    for register in tile.windows:
        _set(block, register, vector.splat(0))


def results(tile: Tile) -> list[list[tirx.Expr]]:
    """The sums, less the filter's zero point times their window."""
    zero = vector.splat(tile.conv.filter_zero)
    windows = [_get(register) * zero for register in tile.windows]
    return [
        [_get(register) - windows[pixel] if windows else _get(register) for register in row]
        for pixel, row in enumerate(tile.sums)
    ]


def start_with_words(
    block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, first: Callable[[int, int], tirx.Expr] | None
) -> list[Callable[[], None]]:
    """Set the sums to `first`, or nothing, plus the products of the first words; one call a block of channels."""
    words = _words(block, tile, operands, operands.row(block, int32(0)) + left_byte)

    def start_part(part: int) -> None:
        weights = [block.bind("weights", _weights(tile, operands, int32(half), part), vector.VECTOR) for half in (0, 1)]
        for pixel, register in enumerate(row[part] for row in tile.sums):
            once = (
                dot_add(tile.conv, first(pixel, part), weights[0], words[pixel][0])
                if first
                else dot(tile.conv, weights[0], words[pixel][0])
            )
            _set(block, register, dot_add(tile.conv, once, weights[1], words[pixel][1]))

    return [lambda part=part: start_part(part) for part in range(tile.blocks)]


def reduce(block: Block, tile: Tile, operands: Operands, left_byte: tirx.Expr, skip_pairs: int = 0) -> None:
    """Add every tap and channel to the sums.

    Args:
        block: where to.
        tile: the sums.
        operands: what to multiply.
        left_byte: of the first pixel's window, from the start of its row.
        skip_pairs: pairs of words, of a reduction in one run, that are in the sums already.
    """
    conv, plane = tile.conv, tile.conv.plane
    is_one_run = conv.dilation[1] == 1
    runs, words = (1, plane.words * conv.kernel[1]) if is_one_run else (conv.kernel[1], plane.words)

    def add_run(at: Block, base: tirx.Expr, first: tirx.Expr, run: tirx.Expr) -> None:
        byte = base + run * (conv.dilation[1] * plane.pixel_bytes)
        at.loop(
            "pair",
            words * WORD_BYTES // PAIR_BYTES - skip_pairs,
            lambda inner, index: _add_pair(
                inner,
                tile,
                operands,
                byte + (index + skip_pairs) * PAIR_BYTES,
                first + run * words + (index + skip_pairs) * 2,
            ),
        )

    def add_plane(at: Block, row: tirx.Expr, tap: tirx.Expr, number: tirx.Expr) -> None:
        base = at.bind("base", row + left_byte + number * plane.bytes)
        first = (tap * plane.count + number) * (plane.words * conv.kernel[1])
        at.loop("tap", runs, lambda inner, run: add_run(inner, base, first, run))

    def add_row(at: Block, tap: tirx.Expr) -> None:
        row = operands.row(at, tap)
        at.loop("plane", plane.count, lambda inner, number: add_plane(inner, row, tap, number))

    block.loop("row", conv.kernel[0], add_row)


def _add_pair(block: Block, tile: Tile, operands: Operands, byte: tirx.Expr, step: tirx.Expr) -> None:
    """Eight channels of every pixel, by every block."""
    words = _words(block, tile, operands, byte)
    for half in range(2):
        for part in range(tile.blocks):
            weights = block.bind("weights", _weights(tile, operands, step + half, part), vector.VECTOR)
            for pixel, register in enumerate(row[part] for row in tile.sums):
                _set(block, register, dot_add(tile.conv, _get(register), weights, words[pixel][half]))
        for pixel, register in enumerate(tile.windows):
            _set(block, register, dot_add(tile.conv, _get(register), vector.splat(ONES), words[pixel][half]))


def _words(block: Block, tile: Tile, operands: Operands, byte: tirx.Expr) -> Words:
    """Two words of every pixel."""
    apart = tile.conv.stride[1] * tile.conv.plane.pixel_bytes
    pairs = [_pair(block, operands.source, byte + pixel * apart) for pixel in range(tile.pixels)]
    return [[tirx.Cast("int32", pair), tirx.Cast("int32", pair >> tirx.IntImm("int64", 32))] for pair in pairs]


def _pair(block: Block, source: tirx.Buffer, byte: tirx.Expr) -> tirx.Expr:
    read = tirx.BufferLoad(source, [tirx.Ramp(byte, 1, PAIR_BYTES)])
    return block.bind("words", tirx.reinterpret("int64", read), "int64")


def _weights(tile: Tile, operands: Operands, step: tirx.Expr, part: int) -> tirx.Expr:
    """32 channels by 4 words' bytes of the filter."""
    conv = tile.conv
    group, lane = divmod(part, conv.side_by_side)
    byte = operands.filter_byte + group * conv.group_bytes
    return vector.load(operands.filter, byte + (step * conv.side_by_side + lane) * VECTOR_BYTES)


def dot_add(conv: InnerConv, total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """`total` plus 4 products in each lane, of unsigned weights and of activations as they are."""
    return (vector.signed_dot4_add if conv.is_signed else vector.dot4_add)(total, weights, word)


def dot(conv: InnerConv, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """The same, added to nothing."""
    return (vector.signed_dot4 if conv.is_signed else vector.dot4)(weights, word)


def _set(block: Block, register: tirx.Buffer, value: tirx.Expr) -> None:
    block.store(register, tirx.Ramp(0, 1, vector.WORDS), value)


def _get(register: tirx.Buffer) -> tirx.Expr:
    return tirx.BufferLoad(register, [tirx.Ramp(0, 1, vector.WORDS)])


def offset_of(value: int) -> tirx.Expr:
    """A constant of 32 bits in every lane, whatever it is modulo 2**32."""
    return vector.splat(int32(vector.signed(value)))
