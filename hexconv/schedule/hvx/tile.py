"""The inner kernel: a tile of pixels by up to four 32-channel blocks, its sums in HVX registers.

    for taps: for words of channels: for block: for pixel: sums[pixel, block] += dot4(filter vector, activation word)

Weights are the vectors, activations the scalar words: the one form of vrmpy that a v67 issues twice a packet and that
takes activations as they lie in memory. The loop body is 8 channels: one doubleword of every pixel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32, vector_register
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.offsets import ONES
from hexconv.schedule.hvx.stage import Plane, Stage

Words = Sequence[Sequence[tirx.Expr]]  # [pixel][word of the step]


@dataclass(frozen=True)
class Operands:
    """Where a tile's operands are.

    Attributes:
        source: the activations, uint8, flat.
        planes: the channels of `source`.
        filters: the staged filters, uint8, flat.
        first_filter: byte of this group's first filter vector.
    """

    source: tirx.Buffer
    planes: tuple[Plane, ...]
    filters: tirx.Buffer
    first_filter: Number


@dataclass(frozen=True)
class Tile:
    """A tile's shape and its registers: `sums[pixel][block]`, buffers of one vector that LLVM keeps in registers."""

    stage: Stage
    sums: tuple[tuple[tirx.Buffer, ...], ...]
    windows: tuple[tirx.Buffer, ...] = ()

    @property
    def pixels(self) -> int:
        """In a row."""
        return len(self.sums)

    @property
    def blocks(self) -> int:
        """Of 32 output channels."""
        return len(self.sums[0])


def allocate_tile(block: Block, stage: Stage, pixels: int, blocks: int, windows: bool) -> Tile:
    """The registers of a tile.

    A buffer of less than 1 KiB stays on the stack in TVM's lowering (`kMaxStackAlloca`), so LLVM can promote it.
    """

    def register(pixel: int, part: int) -> tirx.Buffer:
        return vector_register(block, f"{pixel}_{part}")

    sums = tuple(tuple(register(pixel, part) for part in range(blocks)) for pixel in range(pixels))
    return Tile(stage, sums, tuple(register(pixel, blocks) for pixel in range(pixels)) if windows else ())


def _read(register: tirx.Buffer) -> tirx.Expr:
    return tirx.BufferLoad(register, [tirx.Ramp(0, 1, vector.WORDS)])


def value(tile: Tile, pixel: int, part: int) -> tirx.Expr:
    """The sums of one pixel and one block of channels."""
    return _read(tile.sums[pixel][part])


def result(tile: Tile, pixel: int, part: int) -> tirx.Expr:
    """`value`, less the filter's zero point times the window where the tile has summed that."""
    if not tile.windows:
        return value(tile, pixel, part)
    return value(tile, pixel, part) - _read(tile.windows[pixel]) * vector.splat(tile.stage.filter_zero)


def start(block: Block, tile: Tile, first: Callable[[int, int], tirx.Expr]) -> None:
    """Set the sums."""
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            block.store(register, tirx.Ramp(0, 1, vector.WORDS), first(pixel, part))
    for register in tile.windows:
        block.store(register, tirx.Ramp(0, 1, vector.WORDS), vector.splat(0))


def reduce(block: Block, tile: Tile, operands: Operands, origin: Sequence[tirx.Expr], skip_words: int = 0) -> None:
    """Add every tap and channel to the sums.

    Args:
        block: where to.
        tile: the sums.
        operands: what to multiply.
        origin: per plane, the byte of the source where the window of the tile's first pixel starts.
        skip_words: words of the first run that are in the sums already.
    """
    first_step = 0
    for plane, byte in zip(operands.planes, origin, strict=True):
        _reduce_plane(block, tile, operands, plane, byte, first_step, skip_words)
        first_step += tile.stage.taps * plane.steps


def raise_sums(block: Block, tile: Tile, first: Callable[[int, int], tirx.Expr]) -> None:
    """From sums over high bytes to what those over low bytes add to: 256 times as much, and what sums start from.

    sum((256 high + low) * w) = 256 sum(high * w) + sum(low * w): one set of registers serves both. vrmpy doesn't
    saturate, so it doesn't matter if the sums leave 32 bits on the way.
    """
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            total = vector.shift_left_add(first(pixel, part), value(tile, pixel, part), 8)
            block.store(register, tirx.Ramp(0, 1, vector.WORDS), total)
    for register in tile.windows:
        block.store(register, tirx.Ramp(0, 1, vector.WORDS), vector.shift_left(_read(register), 8))


def _reduce_plane(
    block: Block, tile: Tile, operands: Operands, plane: Plane, byte: Number, first_step: int, skip_words: int
) -> None:
    """Every tap and channel of one plane; where pixels lie close, a row of taps is one run of words."""
    stage = tile.stage
    contiguous = stage.dilation[1] == 1 and plane.pixel_bytes == plane.steps * 4
    runs = 1 if contiguous else stage.kernel[1]
    words = plane.steps * (stage.kernel[1] if contiguous else 1)

    def add_run(at: Block, row: tirx.Expr, tap: tirx.Expr) -> None:
        down, right = stage.dilation[0] * plane.row_bytes, stage.dilation[1] * plane.pixel_bytes
        step = (row * runs + tap) * words + first_step
        _run(at, tile, operands, plane, byte + row * down + tap * right, step, words, skip_words)

    def add_row(at: Block, row: tirx.Expr) -> None:
        at.loop("tap", runs, lambda inner, tap: add_run(inner, row, tap))

    block.loop("row", stage.kernel[0], add_row)


def _run(
    block: Block, tile: Tile, operands: Operands, plane: Plane, byte: tirx.Expr, step: tirx.Expr, words: int, skip: int
) -> None:
    """A run of contiguous words: two at a time where doublewords are aligned."""
    pair = 2 if words % 2 == 0 and plane.pixel_bytes % 8 == 0 and plane.row_bytes % 8 == 0 else 1

    def add(inner: Block, number: tirx.Expr) -> None:
        word = number * pair + skip
        activations = load_words(inner, tile, operands, plane, byte + word * 4, pair)
        add_words(inner, tile, operands, activations, step + word)

    block.loop("words", (words - skip) // pair, add)


def load_words(block: Block, tile: Tile, operands: Operands, plane: Plane, byte: tirx.Expr, words: int) -> Words:
    """`words` (1 or 2) words of every pixel of the tile."""
    apart = tile.stage.stride[1] * plane.pixel_bytes
    if words == 1:
        return [
            [_word(block, operands.source, byte + pixel * apart, "uint8x4", "int32")] for pixel in range(tile.pixels)
        ]
    pairs = [_word(block, operands.source, byte + pixel * apart, "uint8x8", "int64") for pixel in range(tile.pixels)]
    return [[tirx.Cast("int32", pair), tirx.Cast("int32", pair >> tirx.IntImm("int64", 32))] for pair in pairs]


def _word(block: Block, source: tirx.Buffer, byte: tirx.Expr, lanes: str, dtype: str) -> tirx.Expr:
    read = tirx.BufferLoad(source, [tirx.Ramp(byte, 1, int(lanes[6:]))])
    return block.bind("word", tirx.reinterpret(dtype, read), dtype)


def filter_vector(block: Block, tile: Tile, operands: Operands, step: tirx.Expr, part: int) -> tirx.Expr:
    """32 channels by 4 words' bytes of the staged filter."""
    byte = operands.first_filter + (step * tile.blocks + part) * vector.BYTES
    return block.bind("weights", vector.load(operands.filters, byte), vector.VECTOR)


def add_words(block: Block, tile: Tile, operands: Operands, activations: Words, step: tirx.Expr) -> None:
    """Every word of every pixel, by every block."""
    for number in range(len(activations[0])):
        for part in range(tile.blocks):
            weights = filter_vector(block, tile, operands, step + int32(number), part)
            for pixel in range(tile.pixels):
                total = vector.dot4_add(value(tile, pixel, part), weights, activations[pixel][number])
                block.store(tile.sums[pixel][part], tirx.Ramp(0, 1, vector.WORDS), total)
        for register, words in zip(tile.windows, activations, strict=False):
            total = vector.dot4_add(_read(register), vector.splat(ONES), words[number])
            block.store(register, tirx.Ramp(0, 1, vector.WORDS), total)
