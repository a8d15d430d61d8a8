"""The matrix engine (HMX) as plans see it: its packets, bias tables, lines of VTCM, and how it wants filters.

How a conv becomes packets: `hexconv.kernel.croutons`.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from hexconv.kernel.layouts import NestLayouts, Packing
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.vectors import Array

CROUTON_BYTES = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK
TAP_BYTES = CHANNEL_BLOCK * CHANNEL_BLOCK
TAP_MACS = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK * CHANNEL_BLOCK
TABLE_WORDS = 2 * CHANNEL_BLOCK
EXPONENTS = (24, 16, 8, 0)
"""The exponents of the stores that write bytes 0 to 3 of a sum."""
TABLES_WORDS = len(EXPONENTS) * TABLE_WORDS
"""The words of the bias tables of a block of 32 output channels."""
RECTIFIED = 2
"""The shape of a convert that makes negative sums 0."""
WHOLE_SCALE = 2048
"""The scale that takes a byte as it is."""


@dataclass(frozen=True)
class EnginePackets:
    """Packets of the matrix engine; of many plans, arrays stand in the place of numbers.

    Attributes:
        multiplies: packets that multiply.
        taps: what they multiply: taps of 64 positions by 32 inputs by 32 outputs.
        stores: packets that store sums.
        table_loads: packets that load a bias table.
        clears: packets that clear the sums.
    """

    multiplies: int = 0
    taps: int = 0
    stores: int = 0
    table_loads: int = 0
    clears: int = 0

    def __add__(self, other: "EnginePackets") -> "EnginePackets":
        """Return the packets of both."""
        return EnginePackets(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def times(self, count: Any) -> "EnginePackets":
        """Return the packets of so many."""
        return EnginePackets(*(count * each for each in astuple(self)))

    @property
    def of_one(self) -> "EnginePackets":
        """The same where there is one plan, as plain numbers."""
        return EnginePackets(*(int(np.asarray(each).item()) for each in astuple(self)))

    @property
    def macs(self) -> Any:
        """The multiply-accumulates that the engine does, of fringe and of padding too."""
        return self.taps * TAP_MACS


MOST_DILATED = 2
"""The largest dilation whose taps a packet takes together, on either side."""


@dataclass(frozen=True)
class TapPacket:
    """A packet that multiplies a crouton by some taps of a kernel.

    Attributes:
        name: the function of the packet (`hexconv.kernel.engine_words`).
        row, column: its last tap, counted in rows and columns of the crouton.
        first: how many taps lie in front of its own in the filter.
        taps: its taps.
    """

    name: str
    row: int
    column: int
    first: int
    taps: int


def tap_packets(conv: Conv2d) -> tuple[TapPacket, ...]:
    """Return the packets that multiply a crouton by all taps, one where dilations are 1 or 2.

    >>> from hexconv.spec import Conv2d
    >>> [each.name for each in tap_packets(Conv2d(out_channels=1, kernel=(3, 3), dilation=(2, 1)))]
    ['multiply_dilate_all']
    >>> [(each.row, each.first) for each in tap_packets(Conv2d(out_channels=1, kernel=(3, 3), dilation=(3, 2)))]
    [(0, 0), (3, 3), (6, 6)]
    """
    (rows, columns), (down, right) = (
        conv.kernel,
        [d if k > 1 else 1 for k, d in zip(conv.kernel, conv.dilation, strict=True)],
    )
    last_row, last_column = (reach - 1 for reach in conv.reach)
    by_row, by_column = ("all" if apart == 1 else "dilate" for apart in (down, right))
    if right > MOST_DILATED:
        return tuple(
            TapPacket("multiply_single_single", row * down, column * right, row * columns + column, 1)
            for row in range(rows)
            for column in range(columns)
        )
    if down > MOST_DILATED:
        name = f"multiply_single_{by_column}"
        return tuple(TapPacket(name, row * down, last_column, row * columns, columns) for row in range(rows))
    name = "multiply" if (down, right) == (1, 1) else f"multiply_{by_row}_{by_column}"
    return (TapPacket(name, last_row, last_column, 0, rows * columns),)


def row_packets(conv: Conv2d, channel_blocks: int, source_tiles: int, target_tiles: int) -> EnginePackets:
    """Count the packets of a row of tiles of one block of output channels.

    Args:
        conv: the conv.
        channel_blocks: the blocks of input channels.
        source_tiles: the croutons of a row that is read.
        target_tiles: the croutons of a row that is made.
    """
    rows, columns = conv.kernel
    croutons = min(source_tiles, target_tiles + 1) if columns > 1 else target_tiles
    halves = target_tiles + (croutons - 1 if columns > 1 else 0)
    read, stores = croutons * channel_blocks, halves * (1 if is_converted(conv) else len(EXPONENTS))
    loads = 1 if is_converted(conv) else stores
    return EnginePackets(read * len(tap_packets(conv)), read * rows * columns, stores, loads, 1)


def is_converted(conv: Conv2d) -> bool:
    """Whether the engine's own convert makes the results of a conv, not HVX."""
    return conv.requantize is not None and conv.requantize.engine == "fast"


def tables_words(conv: Conv2d) -> int:
    """Return the words of the bias tables that a conv has for a block of 32 output channels."""
    return TABLE_WORDS if is_converted(conv) else TABLES_WORDS


LINE_BYTES = 1 << 18
"""A line of VTCM: an operand of the engine that lies on both sides of one is a fault."""
MOST_LINES = 256
"""The most lines that buffers are placed in: 64 MiB, more than any VTCM. What takes more is not placed."""


def vtcm_taken(rooms: Sequence[Any], kernel: Kernel | None) -> Any:
    """Return the VTCM that buffers take: all together; those of the matrix engine keep clear of lines.

    Args:
        rooms: the bytes of each buffer, in whole granules; numbers, or arrays for many plans.
        kernel: the kernel of the plan.
    """
    return clear_of_lines(rooms) if kernel == "hmx" else sum(rooms)


def clear_of_lines(rooms: Sequence[Any]) -> Any:
    """Return the VTCM that buffers take, where each that fits into a line of 256 KiB lies in one.

    The largest is placed first. A buffer goes behind those of the first line that has room for it; one that is larger
    than a line begins with a line of its own.

    Args:
        rooms: the bytes of each buffer, in whole granules; numbers, or arrays for many plans.

    >>> [int(clear_of_lines([room << 10 for room in rooms])) >> 10 for rooms in ((200, 100, 300), (200, 100, 50))]
    [612, 356]
    """
    every = np.array(np.broadcast_arrays(*rooms), np.int64).reshape(len(rooms), -1)
    needed = -(-every // LINE_BYTES).sum(axis=0)
    sizes = -np.sort(-np.where(needed <= MOST_LINES, every, 0), axis=0)
    filled = np.zeros((min(int(needed.max()), MOST_LINES), sizes.shape[1]), np.int64)
    lines, plans = np.arange(len(filled))[:, None], np.arange(sizes.shape[1])
    for room in sizes:
        used = np.where(filled > 0, lines + 1, 0).max(axis=0)
        at = np.where(room > LINE_BYTES, used, np.argmax(filled + room <= LINE_BYTES, axis=0))
        whole, rest = np.divmod(room, LINE_BYTES)
        is_full = (lines >= at) & (lines < at + whole) & (room > LINE_BYTES)
        filled = np.where(is_full, LINE_BYTES, filled)
        last = np.minimum(np.where(room > LINE_BYTES, at + whole, at), len(filled) - 1)
        filled[last, plans] += np.where(room > LINE_BYTES, rest, room)
    ends = np.where(filled > 0, lines * LINE_BYTES + filled, 0).max(axis=0)
    ends = np.where(needed <= MOST_LINES, ends, every.sum(axis=0))
    return ends.reshape(np.shape(rooms[-1]))


def placed_clear_of_lines(rooms: Sequence[int]) -> tuple[int, ...]:
    """Return where each of some buffers begins, by the rule of `clear_of_lines`.

    >>> [place >> 10 for place in placed_clear_of_lines([room << 10 for room in (200, 100, 50)])]
    [0, 256, 200]
    """
    filled, places = dict[int, int](), [0] * len(rooms)
    for number in sorted(range(len(rooms)), key=lambda number: -rooms[number]):
        room, unused = rooms[number], max(filled, default=-1) + 1
        free = (line for line in range(unused) if filled.get(line, 0) + room <= LINE_BYTES)
        first = next(free, unused) if room <= LINE_BYTES else unused
        places[number] = first * LINE_BYTES + filled.get(first, 0)
        for line in range(first, first + max(-(-room // LINE_BYTES), 1)):
            filled[line] = min(filled.get(line, 0) + room - (line - first) * LINE_BYTES, LINE_BYTES)
    return tuple(places)


def table_word(exponent: Any, scale: Any, offset: Any = 0, shape: int = 0) -> Any:
    """Return the low word of a channel in a bias table; numbers, or arrays of channels.

    Args:
        exponent: a power of two, 0 to 31.
        scale: 12 bits.
        offset: what is added to results, in sixteenths, 12 bits.
        shape: 0, or 2 for what is no less than 0 before the offset.

    >>> hex(table_word(24, 2048)), hex(table_word(0, 2047)), hex(table_word(0, 2048, 0xABC, 2))
    ('0x6000', '0x800103ff', '0x55e40000')
    """
    of_scale = (scale & 1) << 31 | (1 - (scale >> 11 & 1)) << 16 | scale >> 1 & 1023
    return (
        of_scale
        | (offset >> 4 & 255) << 23
        | (offset >> 3 & 1) << 22
        | (offset & 7) << 19
        | shape << 17
        | exponent << 10
    )


def engine_packing(chain: Chain) -> Packing:
    """Return how a filter is packed for the engine: its weights have a sign, and no zero point."""
    shift = -MADE_UNSIGNED if chain.dtype_of_filters == "uint8" else 0
    return Packing("int8", shift, pads_zeros=True, reverses_columns=True)


def in_croutons(chain: Chain, documented: NestLayouts) -> NestLayouts:
    """Return the documents' layouts with filters that are packed for the engine."""
    return replace(documented, packings=(engine_packing(chain),) * len(chain.conv))


def bias_tables(offsets: Array) -> Array:
    """Return the tables of all blocks of channels, int32: four of each, by exponent.

    Args:
        offsets: what every channel adds to its sums, int32, whole blocks of 32 channels.
    """
    added = offsets.reshape(-1, 1, CHANNEL_BLOCK).repeat(len(EXPONENTS), axis=1)
    low = np.array([table_word(exponent, WHOLE_SCALE) for exponent in EXPONENTS], np.int64)
    return _tables(np.broadcast_to(low[None, :, None], added.shape), added)


def convert_tables(words: Array, added: Array) -> Array:
    """Return the tables of all blocks of channels by which sums become results: one of each.

    Args:
        words: the low word of every channel, whole blocks of 32 channels.
        added: what every channel adds to its sums.
    """
    return _tables(words.reshape(-1, CHANNEL_BLOCK), added.reshape(-1, CHANNEL_BLOCK))


def _tables(low: Array, high: Array) -> Array:
    """Lay tables out: 32 low words, then 32 high ones."""
    return np.concatenate([low, high], axis=-1).astype(np.int64).astype(np.uint32).view(np.int32).ravel()
