"""A tile of sums in HVX registers: pixels of a row by blocks of 32 output channels; how they start and end.

`hexconv.lower.hvx.reduce` adds the products.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.schedule.block import Block, Number, int32, vector_register

MOST_UNROLLED = 8
"""Trips of a loop of a pair of words."""

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

    conv: InnerConv
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


def allocate(block: Block, conv: InnerConv, pixels: int, blocks: int) -> Tile:
    """Allocate the registers of a tile."""

    def register(pixel: int, part: int) -> tirx.Buffer:
        return vector_register(block, f"{pixel}_{part}")

    sums = tuple(tuple(register(pixel, part) for part in range(blocks)) for pixel in range(pixels))
    windows = (
        tuple(register(pixel, blocks) for pixel in range(pixels))
        if conv.filter_zero and not conv.sums_windows_ahead
        else ()
    )
    return Tile(conv, sums, windows)


def start(block: Block, tile: Tile, first: Initial) -> None:
    """Set each sum to what `first` returns for its pixel and its block of channels."""
    for pixel, row in enumerate(tile.sums):
        for part, register in enumerate(row):
            put(block, register, first(pixel, part))
    for register in tile.windows:
        put(block, register, vector.splat(0))


def results(tile: Tile) -> list[list[tirx.Expr]]:
    """Return the sums, less the filter's zero point times the sum of each window; they saturate where they have to."""
    return [[_saturated(tile.conv, total) for total in row] for row in corrected(tile)]


def corrected(tile: Tile) -> list[list[tirx.Expr]]:
    """Return what the sums have come to, less the filter's zero point times what their windows have come to."""
    zero = vector.splat(tile.conv.filter_zero)
    windows = [value_in(register) * zero for register in tile.windows]
    return [
        [value_in(register) - windows[pixel] if windows else value_in(register) for register in row]
        for pixel, row in enumerate(tile.sums)
    ]


def _saturated(conv: InnerConv, total: tirx.Expr) -> tirx.Expr:
    """Hold a sum, with what narrowing needs added to it, within the limit at which sums saturate."""
    if conv.raised is None:
        return total
    return vector.held_within(total, conv.offset - conv.raised.sum, conv.offset + conv.raised.sum)


def no_sum(_pixel: int, _part: int) -> tirx.Expr:
    """Return zero in every lane: such a sum starts from nothing."""
    return vector.splat(0)


def trips(pairs: int, blocks: int) -> Number:
    """Say how often the inner loop runs, in a form that keeps LLVM from unrolling a short loop.

    LLVM isn't told of a small number of trips: it would unroll them, then load all filter vectors of a tile ahead of
    the loop over tiles, more than there are registers. Nor is it told of an odd number of trips with one block of
    channels: it would make one trip of two, and leave the loop in the middle of a trip, which no hardware loop can.
    """
    is_halved = blocks == 1 and pairs % 2 == 1
    return vector.concealed(int32(pairs)) if pairs > 1 and (pairs <= MOST_UNROLLED or is_halved) else pairs


def put(block: Block, register: tirx.Buffer, value: tirx.Expr) -> None:
    """Set all words of a register."""
    block.store(register, tirx.Ramp(0, 1, vector.WORDS), value)


def value_in(register: tirx.Buffer) -> tirx.Expr:
    """Load all words of a register."""
    return tirx.BufferLoad(register, [tirx.Ramp(0, 1, vector.WORDS)])


def offset_of(value: int) -> tirx.Expr:
    """Return a constant of 32 bits, modulo 2**32, in every lane."""
    return vector.splat(int32(vector.signed(value)))
