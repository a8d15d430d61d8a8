"""The input cache: rows of the logical input, pixels widened to whole words, int8 made uint8, int16 two bytes apart.

It is needed where the conv can't read the input in place: padding, channels that are no whole words, int8, int16.
"""

from tvm import tirx

from hexconv.schedule.block import Block, Number
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.caches import Cache
from hexconv.schedule.hvx.halves import split_line
from hexconv.schedule.hvx.stage import Plane, Stage
from hexconv.schedule.rows import Rows


def reads_in_place(stage: Stage) -> bool:
    """Whether the first conv reads the argument itself."""
    return not any(stage.padding) and stage.in_channels % 4 == 0 and not stage.flips and not stage.splits


def whole_input(stage: Stage) -> Plane:
    """The argument, read in place."""
    return Plane(0, stage.in_channels, stage.in_channels, stage.in_size[1] * stage.in_channels)


def input_plane(stage: Stage) -> Plane:
    """The layout of the input cache: rows of whole vectors, pixels of words, or of doublewords above one word."""
    channels = stage.in_channels
    pixel_bytes = -(-channels // 4) * 4 if channels <= 4 else -(-channels // 8) * 8
    row_bytes = -(-stage.padded_columns * pixel_bytes // vector.BYTES) * vector.BYTES
    return Plane(0, pixel_bytes, pixel_bytes, row_bytes)


def fills_by_vectors(stage: Stage) -> bool:
    """Whether `fill_input` has no scalar stores."""
    return stage.in_channels % 8 == 0 and stage.in_size[1] * stage.in_channels % vector.BYTES == 0


def fill_input(block: Block, rows: Rows, source: tirx.Buffer, cache: Cache, image: tirx.Expr, stripe: Number) -> None:
    """Copy the new rows of an image into its cache."""
    stage, [plane] = rows.stages[0], cache.planes
    begin = block.bind("begin", rows.begin(0, stripe))
    base = block.bind("base", rows.base(0, stripe))
    count = block.bind("count", rows.end(0, stripe) - begin)
    line_bytes = stage.in_size[1] * stage.in_channels

    def one(at: Block, index: tirx.Expr) -> None:
        from_byte = at.bind("from_byte", (image * stage.in_size[0] + begin + index) * line_bytes)
        left_bytes = stage.padding[1] * plane.pixel_bytes
        to_byte = at.bind("to_byte", (begin + index - base) * plane.row_bytes + left_bytes)
        if stage.splits:
            split_line(at, stage, plane, source, from_byte, cache, to_byte)
        elif stage.in_channels == plane.pixel_bytes:
            _copy_line(at, stage, source, from_byte, cache.buffer, to_byte)
        else:
            _copy_pixels(at, stage, plane, source, from_byte, cache.buffer, to_byte)

    block.loop("line", count, one)


def _copy_line(
    block: Block, stage: Stage, source: tirx.Buffer, from_byte: tirx.Expr, target: tirx.Buffer, to_byte: tirx.Expr
) -> None:
    """A line of whole words: vectors, then words."""
    vectors, rest = divmod(stage.in_size[1] * stage.in_channels, vector.BYTES)

    def one(at: Block, index: tirx.Expr) -> None:
        moved = vector.moved(vector.load(source, index * vector.BYTES + from_byte))
        if stage.flips:
            moved = vector.flipped(moved)
        at.store(target, vector.at(index * vector.BYTES + to_byte), vector.stored(moved))

    def word(at: Block, index: tirx.Expr) -> None:
        byte = index * 4 + vectors * vector.BYTES
        loaded = tirx.BufferLoad(source, [tirx.Ramp(from_byte + byte, 1, 4)])
        at.store(target, tirx.Ramp(to_byte + byte, 1, 4), _unsigned(stage, loaded, 4))

    block.loop("vector", vectors, one)
    block.loop("word", rest // 4, word)


def _copy_pixels(
    block: Block,
    stage: Stage,
    plane: Plane,
    source: tirx.Buffer,
    from_byte: tirx.Expr,
    target: tirx.Buffer,
    to_byte: tirx.Expr,
) -> None:
    """A line, channel by channel."""

    def channel(at: Block, pixel: tirx.Expr, number: tirx.Expr) -> None:
        loaded = tirx.BufferLoad(source, [from_byte + pixel * stage.in_channels + number])
        at.store(target, to_byte + pixel * plane.pixel_bytes + number, _unsigned(stage, loaded, 1))

    def pixels(at: Block, pixel: tirx.Expr) -> None:
        at.loop("channel", stage.in_channels, lambda inner, number: channel(inner, pixel, number))

    block.loop("pixel", stage.in_size[1], pixels)


def _unsigned(stage: Stage, value: tirx.Expr, lanes: int) -> tirx.Expr:
    """int8 bytes as uint8, 128 larger."""
    if not stage.flips:
        return value
    flip = tirx.IntImm("uint8", 0x80)
    return tirx.bitwise_xor(value, tirx.Broadcast(flip, lanes) if lanes > 1 else flip)
