"""Where a row of results is stored, and what a vector of it holds: codes of elements, and the fringe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import tvm
from tvm import tirx

from hexconv.kernel.hvx.tiles import VECTOR_BLOCKS
from hexconv.lower.hvx import across, scaling, vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.requantize import Lanes
from hexconv.schedule.block import Block, Number, int32
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK

BLOCK_PIXELS = ROW_BLOCK * COLUMN_BLOCK


@dataclass(frozen=True)
class Target:
    """One row of what a step makes, for one tile of channels.

    Attributes:
        conv: the conv that makes the row.
        buffer: the cache, flat.
        pixel: from (block of the tile, stored column) to the element where these channels begin; where several blocks
            make up a vector, the element where those of the first block begin.
        blocks: the channel blocks of the tile.
        is_ragged: whether its last block is the conv's last one, with fewer than 32 channels.
        lanes: the per-channel values of a block for narrowing; None where there are none.
        table: the table that results are looked up in; None where there is none.
    """

    conv: InnerConv
    buffer: tirx.Buffer
    pixel: Callable[[Number, Number], Number]
    blocks: int
    is_ragged: bool
    lanes: Callable[[Block, int], Lanes] | None = None
    table: tirx.Buffer | None = None

    @property
    def vector_pixels(self) -> int:
        """How many pixels a vector holds."""
        if self.conv.units.is_narrow:
            return self.conv.units.vector_pixels
        return VECTOR_BLOCKS // self.conv.narrowed_blocks // self.conv.result_bytes

    def channels(self, part: int) -> int:
        """Return how many logical channels a block has."""
        return self.conv.last_channels if self.is_ragged and part == self.blocks - 1 else CHANNEL_BLOCK

    def units(self, part: int) -> range:
        """Return the numbers of the narrow blocks of channels in a block of the tile."""
        return range(ceil(self.channels(part) / self.conv.units.together))

    def unit(self, part: int, number: int, column: Number) -> Number:
        """Return the element where a narrow block of channels of a pixel begins, in a target of such blocks."""
        return self.pixel(int32(part), column) + number * self.conv.units.elements


def store_vector(block: Block, target: Target, element: Number, value: tirx.Expr) -> None:
    """Store a vector as elements of the target's dtype."""
    lanes = vector.BYTES // tvm.DataType(target.buffer.dtype).itemsize
    block.store(target.buffer, tirx.Ramp(element, 1, lanes), tirx.reinterpret(f"{target.buffer.dtype}x{lanes}", value))


def as_codes(block: Block, target: Target, results: tirx.Expr) -> tirx.Expr:
    """Turn uint8 results into the codes that the target stores: look them up, or flip their first bit for int8."""
    conv = target.conv
    if target.table is not None:
        loads = [vector.load(target.table, half * vector.BYTES) for half in range(2)]
        table = [block.bind("table", load, vector.VECTOR) for load in loads]
        codes = block.bind("codes", scaling.looked_up(results, table), vector.VECTOR)
        return across.flipped(codes) if conv.is_signed and conv.makes_unsigned else codes
    return results if conv.makes_unsigned else across.flipped(results)


def kept(conv: InnerConv, ordered: tirx.Expr, channels: Sequence[int], together: int = CHANNEL_BLOCK) -> tirx.Expr:
    """Keep the channels that exist, as many of each block of a vector as `channels` says, and fill in the fringe.

    A block has `together` channels.
    """
    size = conv.result_bytes
    exists = [
        byte // (together * size) < len(channels) and byte // size % together < channels[byte // (together * size)]
        for byte in range(vector.BYTES)
    ]
    if all(exists):
        return ordered
    kept = tirx.bitwise_and(ordered, vector.repeated([255 if element else 0 for element in exists]))
    fringe = vector.repeated([0 if element else conv.fringe & 0xFF for element in exists])
    return tirx.bitwise_or(kept, fringe) if conv.fringe else kept


def block_of_output(row: Number, column: Number, blocks: int, block: Number, columns: int) -> Number:
    """Return the element of an output cache (NHWC8h8w32c) where the channels of a pixel begin."""
    high, low = tirx.shift_right(row, int32(3)), tirx.bitwise_and(row, int32(7))
    column = int32(column) if isinstance(column, int) else column
    right, inside = tirx.shift_right(column, int32(3)), tirx.bitwise_and(column, int32(7))
    tile = (high * (columns // COLUMN_BLOCK) + right) * blocks + block
    return (tile * BLOCK_PIXELS + low * COLUMN_BLOCK + inside) * CHANNEL_BLOCK
