"""Convs that Hexagon's matrix engine (HMX) multiplies: packets on croutons, 8 by 8 pixels of 32 channels, NHWC8h8w32c.

A packet multiplies a crouton by all taps of a kernel, 32 inputs and 32 outputs of each. Column x of a tap moves its
products x columns to the right, so kernels lie with their last column first, and output 0 stands in column `last`:

    column of the sums     0 .. last-1                      last .. 7          in the other set of sums: 0 .. last-1
    output                 the end of the tile to the left  0 .. 7-last                                  8-last .. 7

What leaves a crouton to the right goes to the other set, which the next crouton to the right completes. Rows past the
crouton are read from the one below it. So nothing is shifted, and nothing is copied.

Requantisation is exact. Sums leave the engine whole: four stores that wrap write a byte of each sum, by bias tables of
four exponents, and HVX puts the bytes together and narrows them as it narrows its own sums. What all sums of a channel
begin with is added in the table: bias, rounding, and what the zero point of the source takes off.

    table:    32 low words: exponent, scale    32 high words: what is added to the sums

Nothing of this ran on hardware. The model that stands for the engine was held against Qualcomm's own public one
(`run/simulator/harness/hmx.h`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.kernel.cost import Cost
from hexconv.kernel.form import Form, Memory
from hexconv.kernel.layouts import NestLayouts, Packing, documented_filter
from hexconv.layout import Layout
from hexconv.spec import Chain
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.vectors import Array

CROUTON_BYTES = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK
TAP_BYTES = CHANNEL_BLOCK * CHANNEL_BLOCK
TAP_MACS = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK * CHANNEL_BLOCK
TABLE_WORDS = 2 * CHANNEL_BLOCK
EXPONENTS = (24, 16, 8, 0)
"""The exponents of the stores that write bytes 0 to 3 of a sum."""
WHOLE_SCALE = 2048
"""The scale that takes a byte as it is."""


@dataclass(frozen=True)
class EnginePackets:
    """Packets of the matrix engine.

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

    def times(self, count: int) -> "EnginePackets":
        """Return the packets of so many."""
        return EnginePackets(*(count * each for each in astuple(self)))

    @property
    def packets(self) -> int:
        """All packets together."""
        return self.multiplies + self.stores + self.table_loads + self.clears

    @property
    def macs(self) -> int:
        """The multiply-accumulates that the engine does, of fringe and of padding too."""
        return self.taps * TAP_MACS


def row_packets(kernel: tuple[int, int], channel_blocks: int, source_tiles: int, target_tiles: int) -> EnginePackets:
    """Count the packets of a row of tiles of one block of output channels.

    Args:
        kernel: the rows and columns of the kernel.
        channel_blocks: the blocks of input channels.
        source_tiles: the croutons of a row that is read.
        target_tiles: the croutons of a row that is made.
    """
    rows, columns = kernel
    croutons = min(source_tiles, target_tiles + 1) if columns > 1 else target_tiles
    halves = target_tiles + (croutons - 1 if columns > 1 else 0)
    multiplies, stores = croutons * channel_blocks, halves * len(EXPONENTS)
    return EnginePackets(multiplies, multiplies * rows * columns, stores, stores, 1)


LINE_BYTES = 1 << 18
"""A line of VTCM: an operand of the engine that lies on both sides of one is a fault."""


def clear_of_lines(rooms: Sequence[Any]) -> Any:
    """Return the VTCM that buffers take one after the other, where each that fits into a line of 256 KiB lies in one.

    Args:
        rooms: the bytes of each buffer, in whole granules; numbers, or arrays for many plans.

    >>> int(clear_of_lines([200 << 10, 100 << 10, 300 << 10])) >> 10
    656
    """
    end: Any = 0
    for room in rooms:
        is_cut = (room <= LINE_BYTES) & (room > 0) & (end // LINE_BYTES != (end + room - 1) // LINE_BYTES)
        end = np.where(is_cut, (end // LINE_BYTES + 1) * LINE_BYTES, end) + room
    return end


def table_word(exponent: int, scale: int) -> int:
    """Return the low word of a channel in a bias table that adds no offset to results, and has no shape.

    >>> hex(table_word(24, 2048)), hex(table_word(0, 2047))
    ('0x6000', '0x800103ff')
    """
    return (scale & 1) << 31 | (0 if scale >> 11 & 1 else 1) << 16 | exponent << 10 | (scale >> 1 & 1023)


@dataclass(frozen=True)
class Croutons(Form):
    """Packets of the matrix engine."""

    name = "croutons"
    kernel = "hmx"

    @classmethod
    def serves(cls, conv: object) -> str:
        """Serve all convs of the kernel: its rules refuse others."""
        return ""

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """The documents' filter, of signed bytes, the last column of the kernel first."""
        chain = self.conv.chain
        return documented_filter(chain, self.conv.index), crouton_packing(chain)

    def summed_weights(self, filter: Array) -> Array:
        """Sum over all but the output channels of OIHW8i32o4i."""
        return filter.sum(axis=(1, 2, 3, 4, 6)).ravel()

    def scratch(self) -> Iterator[Memory]:
        """The bias tables of one block of channels."""
        yield Memory("converts", "converts", "int32", len(EXPONENTS) * TABLE_WORDS)

    @property
    def products(self) -> int:
        """None of HVX."""
        return 0

    @cached_property
    def taps(self) -> tuple[int, int]:
        """The rows and columns of the kernel."""
        rows, columns = self.conv.spec.kernel
        return rows, columns

    def packets(self) -> Cost:
        """Refuse: no device has timed them."""
        raise NotImplementedError("packets of the matrix engine are counted apart")

    def traffic(self) -> Cost:
        """Refuse: all of its caches lie in VTCM."""
        raise NotImplementedError("all caches of the matrix engine lie in VTCM")


def crouton_packing(chain: Chain) -> Packing:
    """Return how a filter is packed for the engine: its weights have a sign, and no zero point."""
    shift = -MADE_UNSIGNED if chain.dtype_of_filters == "uint8" else 0
    return Packing("int8", shift, pads_zeros=True, reverses_columns=True)


def in_croutons(chain: Chain, documented: NestLayouts) -> NestLayouts:
    """Return the documents' layouts with filters that are packed for the engine."""
    return replace(documented, packings=(crouton_packing(chain),) * len(chain.conv))


def bias_tables(offsets: Array) -> Array:
    """Return the tables of all blocks of channels, int32: four of each, by exponent.

    Args:
        offsets: what every channel adds to its sums, int32, whole blocks of 32 channels.
    """
    added = offsets.reshape(-1, 1, CHANNEL_BLOCK).repeat(len(EXPONENTS), axis=1)
    low = np.array([table_word(exponent, WHOLE_SCALE) for exponent in EXPONENTS], np.uint32).view(np.int32)
    words = np.broadcast_to(low[None, :, None], added.shape)
    return np.concatenate([words, added], axis=2).astype(np.int32).ravel()
