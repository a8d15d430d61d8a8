"""A line of int16 on its way into the input cache: high bytes to one plane, 128 larger, low bytes to the other."""

from tvm import tirx

from hexconv.schedule.block import Block, Number
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.caches import Cache
from hexconv.schedule.hvx.stage import Plane, Stage


def split_line(
    block: Block, stage: Stage, plane: Plane, source: tirx.Buffer, element: tirx.Expr, cache: Cache, to_byte: tirx.Expr
) -> None:
    """Copy a line.

    Args:
        block: where to.
        stage: the conv that reads it.
        plane: of the high bytes.
        source: the argument as bytes, low ones first.
        element: its first one of the line.
        cache: the target.
        to_byte: of the plane of high bytes, where the line starts.
    """
    if stage.in_channels == plane.pixel_bytes:
        _dense(block, stage.in_size[1] * stage.in_channels, source, element, cache, to_byte)
        return

    def pixels(at: Block, pixel: tirx.Expr) -> None:
        first, target = element + pixel * stage.in_channels, to_byte + pixel * plane.pixel_bytes
        at.loop("channel", stage.in_channels, lambda inner, c: _one(inner, source, first + c, cache, target + c))

    block.loop("pixel", stage.in_size[1], pixels)


def _dense(block: Block, size: int, source: tirx.Buffer, element: tirx.Expr, cache: Cache, to_byte: tirx.Expr) -> None:
    """`size` elements: 128 at a time, then the rest."""
    vectors, rest = divmod(size, vector.BYTES)

    def two(at: Block, index: tirx.Expr) -> None:
        first = (element + index * vector.BYTES) * 2
        lower = at.bind("lower", vector.load(source, first), vector.VECTOR)
        upper = at.bind("upper", vector.load(source, first + vector.BYTES), vector.VECTOR)
        byte = index * vector.BYTES + to_byte
        at.store(cache.buffer, vector.at(byte), vector.stored(vector.flipped(vector.high_bytes(upper, lower))))
        at.store(cache.buffer, vector.at(byte + cache.low_bytes), vector.stored(vector.low_bytes(upper, lower)))

    def one(at: Block, index: tirx.Expr) -> None:
        place = index + vectors * vector.BYTES
        _one(at, source, element + place, cache, to_byte + place)

    block.loop("vector", vectors, two)
    block.loop("element", rest, one)


def _one(block: Block, source: tirx.Buffer, element: Number, cache: Cache, byte: Number) -> None:
    high = tirx.bitwise_xor(tirx.BufferLoad(source, [element * 2 + 1]), tirx.IntImm("uint8", 0x80))
    block.store(cache.buffer, byte, high)
    block.store(cache.buffer, byte + cache.low_bytes, tirx.BufferLoad(source, [element * 2]))
