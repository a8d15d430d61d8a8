"""Addresses of results, in an intermediate or in the packed output, and the zeros of the output's fringe."""

import math
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops import vector
from hexconv.host.loops.bands import NewRows
from hexconv.host.loops.caches import Cache
from hexconv.host.loops.conv import Address
from hexconv.host.loops.stage import Stage
from hexconv.schedule.block import Block, Number, int32
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK


def cache_address(cache: Cache, base: Number) -> Address:
    """Return the address function of an intermediate whose first row is `base`."""

    def address(row: Number, column: Number, number: Number) -> Number:
        padded = column + cache.reader.conv.padding.left
        return cache.first + (row - base) * cache.lines.row + padded * cache.lines.pixel + number * cache.lanes

    return address


def packed_address(stage: Stage, image: Number, lanes: int) -> Address:
    """Return the address function of the output, NHWC8h8w32c."""
    down, across = -(-stage.out_size[0] // ROW_BLOCK), -(-stage.out_size[1] // COLUMN_BLOCK)

    def address(row: Number, column: Number, number: Number) -> Number:
        high, low = tirx.floordiv(row, int32(ROW_BLOCK)), tirx.floormod(row, int32(ROW_BLOCK))
        right, inside = tirx.floordiv(column, int32(COLUMN_BLOCK)), tirx.floormod(column, int32(COLUMN_BLOCK))
        channel = number * lanes
        block, rest = tirx.floordiv(channel, int32(CHANNEL_BLOCK)), tirx.floormod(channel, int32(CHANNEL_BLOCK))
        tile = ((image * down + high) * across + right) * stage.out_blocks + block
        return (tile * (ROW_BLOCK * COLUMN_BLOCK) + low * COLUMN_BLOCK + inside) * CHANNEL_BLOCK + rest

    return address


@dataclass(frozen=True)
class OutputCache:
    """A cache of a stripe of the output: rows of pixels, each with whole blocks of channels.

    Attributes:
        buffer: the flat buffer that holds the caches of all bands, one after the other.
        first: the element at which this band's rows start.
        stage: the last conv.
        elements: the elements of one band's cache.
        lanes: the lanes of a vector.
    """

    buffer: tirx.Buffer
    first: Number
    stage: Stage
    elements: int
    lanes: int

    def address(self, base: Number) -> Address:
        """Return the address function of the cache, whose first row is `base`."""
        pixel, width = self.stage.out_blocks * CHANNEL_BLOCK, self.stage.out_size[1]

        def address(row: Number, column: Number, number: Number) -> Number:
            return self.first + ((row - base) * width + column) * pixel + number * self.lanes

        return address


def write_back(block: Block, rows: NewRows, cache: OutputCache, output: tirx.Buffer, image: Number) -> None:
    """Copy the rows of a stripe from their cache to the output."""
    source, target = cache.address(rows.begin), packed_address(cache.stage, image, cache.lanes)
    vectors, lanes = math.ceil(cache.stage.conv.out_channels / cache.lanes), cache.lanes

    def pixel(at: Block, row: Number, column: Number) -> None:
        def one(inner: Block, number: Number) -> None:
            loaded = vector.load(cache.buffer, source(row, column, number), lanes)
            vector.store(inner, output, target(row, column, number), loaded, lanes)

        at.loop("vector", vectors, one)

    def line(at: Block, index: Number) -> None:
        row = at.bind("row", rows.begin + index)
        at.loop("column", cache.stage.out_size[1], lambda inner, column: pixel(inner, row, column))

    block.loop("line", rows.end - rows.begin, line, part="output cache write back")


def zero_fringe(
    block: Block, stage: Stage, output: tirx.Buffer, image: Number, lanes: int, share: Number, shares: int
) -> None:
    """Zero the output that no tile writes: rows below, columns to the right, vectors without a channel.

    This fills part `share` of `shares` of each of these regions, divided by rows.
    """
    address = packed_address(stage, image, lanes)
    height, width = stage.out_size
    rows, columns = -(-height // ROW_BLOCK) * ROW_BLOCK, -(-width // COLUMN_BLOCK) * COLUMN_BLOCK
    written, stored = math.ceil(stage.conv.out_channels / lanes), stage.out_blocks * CHANNEL_BLOCK // lanes

    def area(first_row: int, first_column: int, first_vector: int, last_row: int, last_column: int) -> None:
        def zero(at: Block, row: tirx.Expr, column: tirx.Expr, number: tirx.Expr) -> None:
            element = address(row + first_row, column + first_column, number + first_vector)
            vector.store(at, output, element, vector.filled(0, lanes), lanes)

        def pixels(at: Block, row: tirx.Expr) -> None:
            at.loop(
                "column",
                last_column - first_column,
                lambda inner, column: inner.loop(
                    "vector", stored - first_vector, lambda last, number: zero(last, row, column, number)
                ),
            )

        rows = last_row - first_row
        if rows and last_column > first_column and stored > first_vector:
            first, end = (tirx.floordiv(edge * rows, int32(shares)) for edge in (share, share + 1))
            row_of = block.bind("first", first)
            block.loop("row", end - first, lambda at, row: pixels(at, row + row_of), part="fringe of the output")

    area(height, 0, 0, rows, columns)
    area(0, width, 0, height, columns)
    area(0, 0, written, height, width)
