"""Sum some output channels of a pixel, product by product."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from hexconv.compute.conv2d import Filter, centred
from hexconv.compute.stored import Position
from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.kernel.scalar import SCALAR_LANES, WORD_LANES
from hexconv.lower.conv_step import StepOperands
from hexconv.lower.plain.inner import ScalarInner
from hexconv.schedule.block import Block, int32, scalar_register

Sums = Sequence[tirx.Buffer]
Total = Callable[[int], tirx.Expr]
"""The sum of a lane, int32, or int64 where sums saturate later."""
Tap = Callable[[Block, tirx.Expr, tirx.Expr, tirx.Expr], None]
"""What is emitted for a tap: row of the source's cache, row and column of the filter."""
PAIRS = SCALAR_LANES // WORD_LANES
"""The registers of sums of words, each of which holds two."""


@dataclass(frozen=True)
class Pixel:
    """A pixel of the output, of which some channels are computed.

    Attributes:
        inner: the conv.
        operands: what its step multiplies.
        y: the row, counted from the step's slab.
        x: the stored column.
        ahead: the first channel of the source that the filter has for the channels that are computed, counted from that
            of the step's first channel.
    """

    inner: ScalarInner
    operands: StepOperands
    y: tirx.Expr
    x: tirx.Expr
    ahead: tirx.Expr | int = 0

    def each_tap(self, block: Block, tap: Tap) -> None:
        """Loop over the taps of a window."""
        rows, columns = self.inner.conv.kernel

        def row(at: Block, rh: tirx.Expr) -> None:
            source = at.bind("row", self.inner.source_row(self.operands, self.y, rh))
            at.loop("rw", columns, lambda inner, rw: tap(inner, source, rh, rw))

        block.loop("rh", rows, row)


def registers(block: Block, inner: ScalarInner) -> Sums:
    """Allocate the sums of some channels apart from each other: LLVM would make a vector of sums side by side."""
    count, dtype = (PAIRS, "int64") if inner.sums_words else (SCALAR_LANES, inner.sum_dtype)
    return [block.allocate(scalar_register(f"sum{number}", dtype)) for number in range(count)]


def sum_products(block: Block, pixel: Pixel, sums: Sums, channel: tirx.Expr) -> Total:
    """Sum the products of the channels from `channel` on, counted from the step's first channel."""
    inner, source = pixel.inner, pixel.inner.source_cache(pixel.operands)
    filter = pixel.inner.filter_cache(pixel.operands)

    def value(row: tirx.Expr, rw: tirx.Expr, of: Any, lane: int = 0) -> tirx.Expr:
        at = Position(0, row, inner.source_column(pixel.x, rw), of)
        element = inner.source.element_at(source.behind(lane), at)  # pyright: ignore[reportArgumentType]
        return centred(element, inner.in_zero, "int32")

    def weight(lane: int, of: Any, rh: tirx.Expr, rw: tirx.Expr) -> tirx.Expr:
        cache = filter.behind(lane * WORD_CHANNELS)
        stored = Filter(cache, inner.filter, inner.in_channels, 0)  # pyright: ignore[reportArgumentType]
        element = stored.element_at(channel, of, rh, rw)
        return centred(element, inner.filter_zero, "int32")

    def product(of_source: tirx.Expr, of_filter: tirx.Expr) -> tirx.Expr:
        return (of_source * of_filter).astype(inner.sum_dtype)  # a product of int16 fits int32

    def of_all_channels(block: Block, row: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
        def one(at: Block, of: tirx.Expr) -> None:
            shared = at.bind("value", value(row, rw, pixel.ahead + of))
            for lane in range(SCALAR_LANES):
                _add(at, sums[lane], product(shared, weight(lane, of, rh, rw)))

        block.loop("rc", inner.in_channels, one)

    def of_own_group(block: Block, row: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
        def one(at: Block, of: tirx.Expr) -> None:
            for lane in range(SCALAR_LANES):
                # The first of some lanes is the first one of a group, and so is the first one of the lane's group.
                first = lane // inner.in_channels * inner.in_channels
                _add(at, sums[lane], product(value(row, rw, channel + of, first), weight(lane, of, rh, rw)))

        block.loop("rc", inner.in_channels, one)

    _clear(block, sums, inner.sum_dtype)
    pixel.each_tap(block, of_own_group if inner.has_own_inputs else of_all_channels)
    return lambda lane: got(sums[lane])


def _clear(block: Block, sums: Sums, dtype: str) -> None:
    for register in sums:
        put(block, register, tirx.const(0, dtype))


def _add(block: Block, register: tirx.Buffer, product: tirx.Expr) -> None:
    put(block, register, got(register) + product)


def put(block: Block, register: tirx.Buffer, value: tirx.Expr) -> None:
    """Store a value in a register."""
    block.store(register, int32(0), value)


def got(register: tirx.Buffer) -> tirx.Expr:
    """Load what a register holds."""
    return tirx.BufferLoad(register, [int32(0)])
