"""The way out of a tile: narrowed, in the order of the target, zero where the output has no element."""

from collections.abc import Callable, Sequence

from tvm import tirx

from hexconv.schedule.block import Block, Number
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.conv import Conv, Tiles
from hexconv.schedule.hvx.requantize import deal_pixels, narrow, split, two_pixels
from hexconv.schedule.hvx.stage import CHANNELS

PIXELS_OF_VECTOR = 4  # pixels that narrow to one vector of 32 channels each

Sums = Sequence[Sequence[tirx.Expr]]
"""[pixel][block of the group]."""


def stores(tiles: Tiles, y: tirx.Expr, x: tirx.Expr, sums: Sums) -> list[Callable[[Block], None]]:
    """The stores of a tile, 128 bytes each: what they need of the sums is computed with them."""
    parts = range(tiles.group.blocks)
    if tiles.conv.stage.narrowing is None:
        return [
            lambda at, pixel=pixel, part=part: _store_sums(at, tiles, y, x, sums, pixel, part)
            for part in parts
            for pixel in range(len(sums))
        ]
    if tiles.group.wide:
        return [lambda at, pixel=pixel: _store_pixel(at, tiles, y, x, sums, pixel) for pixel in range(len(sums))]
    firsts = range(0, len(sums), PIXELS_OF_VECTOR)
    return [
        lambda at, first=first, part=part: _store_block(at, tiles, y, x, sums, first, part)
        for part in parts
        for first in firsts
    ]


def _store_sums(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr, sums: Sums, pixel: int, part: int) -> None:
    """32 channels of a pixel, as int32."""
    element = tiles.conv.address(y, x + pixel, tiles.group, tiles.number, part)
    block.store(tiles.conv.target, tirx.Ramp(element, 1, CHANNELS), sums[pixel][part])


def _store_pixel(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr, sums: Sums, pixel: int) -> None:
    """128 channels of a pixel."""
    conv = tiles.conv
    assert conv.stage.narrowing
    byte = conv.address(y, x + pixel, tiles.group, tiles.number, 0)
    if conv.target_low_bytes:
        _store_halves(block, conv, byte, *split(block, sums[pixel], conv.stage.narrowing))
        return
    narrowed = narrow(block, sums[pixel], conv.stage.narrowing)
    block.store(conv.target, vector.at(byte), vector.stored(narrowed))


def _store_halves(block: Block, conv: Conv, byte: Number, high: tirx.Expr, low: tirx.Expr) -> None:
    """High bytes and low bytes, into planes of their own."""
    block.store(conv.target, vector.at(byte), vector.stored(high))
    block.store(conv.target, vector.at(byte + conv.target_low_bytes), vector.stored(low))


def _store_block(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr, sums: Sums, first: int, part: int) -> None:
    """32 channels of four pixels; pixels past the end of the row hold the zero point."""
    conv = tiles.conv
    assert conv.stage.narrowing
    if conv.stage.splits and conv.is_output:
        _store_halfwords(block, tiles, y, x, sums, first, part)
        return
    there = [sums[first + pixel][part] for pixel in range(min(PIXELS_OF_VECTOR, len(sums) - first))]
    four = there + [vector.splat(conv.stage.offset)] * (PIXELS_OF_VECTOR - len(there))
    byte = conv.address(y, x + first, tiles.group, tiles.number, part)
    if conv.target_low_bytes:
        high, low = split(block, four, conv.stage.narrowing)
        _store_halves(block, conv, byte, deal_pixels(block, high), deal_pixels(block, low))
        return
    pixels = deal_pixels(block, narrow(block, four, conv.stage.narrowing))
    finished = _finished(tiles, pixels, len(there), part) if conv.is_output else pixels
    block.store(conv.target, vector.at(byte), vector.stored(finished))


def _store_halfwords(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr, sums: Sums, first: int, part: int) -> None:
    """32 channels of four pixels as int16, two at a time."""
    conv = tiles.conv
    assert conv.stage.narrowing
    for left in range(first, min(first + PIXELS_OF_VECTOR, len(sums)), 2):
        there = [pixel[part] for pixel in sums[left : left + 2]]
        two = there + [vector.splat(conv.stage.offset)] * (2 - len(there))
        pixels = two_pixels(block, two, conv.stage.narrowing)
        byte = conv.address(y, x + left, tiles.group, tiles.number, part) * conv.stage.result_bytes
        block.store(conv.target, vector.at(byte), vector.stored(_finished(tiles, pixels, len(there), part)))


def _finished(tiles: Tiles, pixels: tirx.Expr, there: int, part: int) -> tirx.Expr:
    """The bytes of the output: signed again if it is int8, zero in the fringe."""
    stage = tiles.conv.stage
    if stage.flips:
        pixels = vector.flipped(pixels)
    channels = stage.channels_of(tiles.group, tiles.number, part)
    size = stage.result_bytes
    if there * size == PIXELS_OF_VECTOR and channels == CHANNELS:
        return pixels
    exists = [byte // (CHANNELS * size) < there and byte // size % CHANNELS < channels for byte in range(vector.BYTES)]
    return tirx.bitwise_and(pixels, vector.repeated([255 if byte else 0 for byte in exists]))
