"""A row of tiles side by side: where each lies, what its sums start from, and which results are stored."""

from dataclasses import dataclass

from tvm import tirx

from hexconv.compute.activations import FUNCTIONS, activated, clamped
from hexconv.host.loops import vector
from hexconv.host.loops.conv import Conv
from hexconv.host.loops.filters import Group
from hexconv.host.loops.tile import Operands, Tile, reduce, start
from hexconv.schedule.block import Block, Number


@dataclass(frozen=True)
class Tiles:
    """A row of tiles for one group of channels: `count` tiles from column `first` on.

    Attributes:
        conv: the conv to compute.
        group: the group of output channels.
        number: the repetition of the group.
        last_lanes: the number of lanes of the group's last vector that hold channels.
        first: the first column.
        count: the number of tiles.
        tile: the registers of a tile.
    """

    conv: Conv
    group: Group
    number: Number
    last_lanes: int
    first: int
    count: int
    tile: Tile


def beside(block: Block, tiles: Tiles, y: tirx.Expr) -> None:
    """Compute all tiles, from row `y` on."""
    block.loop("tile", tiles.count, lambda inner, place: _tile(inner, tiles, y, place))


def _tile(block: Block, tiles: Tiles, y: tirx.Expr, place: tirx.Expr) -> None:
    """Compute one tile: start the sums, reduce, store the results."""
    conv, tile = tiles.conv, tiles.tile
    x = block.bind("x", place * tile.columns + tiles.first)
    start(block, tile, lambda part: _initial(block, tiles, part))
    origin = block.bind("origin", conv.origin(y, x))
    first_filter = conv.filter.first_element(tiles.group, tiles.number)
    reduce(block, tile, Operands(conv.source, conv.lines, origin, conv.filter, first_filter))
    finish = _store_activated if conv.filter.stage.conv.activation in FUNCTIONS else _store
    for part in range(tile.vectors):
        finish(block, tiles, part, y, x)


def _store(block: Block, tiles: Tiles, part: int, y: tirx.Expr, x: tirx.Expr) -> None:
    """Store one vector of every pixel of a tile, clamped."""
    tile, name = tiles.tile, tiles.conv.filter.stage.conv.activation
    for pixel, (row, column) in enumerate(tile.places):
        _put(block, tiles, part, y + row, x + column, clamped(tile.value(pixel, part), name))


def _store_activated(block: Block, tiles: Tiles, part: int, y: tirx.Expr, x: tirx.Expr) -> None:
    """Store what the activation makes of one vector of every pixel of a tile.

        for pixel: kept[pixel] = sums[pixel, part]
        for row: for column: target[..] = activation(kept[row * columns + column])

    The arithmetic of an activation takes many registers, which it would not find beside the sums of a tile. So these
    are kept in memory of less than 1 KiB, which lies on the stack; the target is written once, and never read.
    """
    tile = tiles.tile
    kept = vector.register(block, f"kept_{part}", tile.pixels * tile.lanes)
    for pixel in range(tile.pixels):
        vector.store(block, kept, pixel * tile.lanes, tile.value(pixel, part), tile.lanes)

    def one(at: Block, row: Number, column: Number) -> None:
        sums = vector.load(kept, (row * tile.columns + column) * tile.lanes, tile.lanes)
        _put(at, tiles, part, y + row, x + column, _activated(at, tiles, sums, part))

    def line(at: Block, row: Number) -> None:
        at.loop("column", tile.columns, lambda inner, column: one(inner, row, column))

    block.loop("row", tile.pixels // tile.columns, line)


def _put(block: Block, tiles: Tiles, part: int, row: Number, column: Number, value: tirx.Expr) -> None:
    """Write the results of one pixel and one vector of channels; zero in lanes of the output that have no channel."""
    conv, tile = tiles.conv, tiles.tile
    element = conv.address(row, column, tiles.group.vector(tiles.number, part))
    is_last = part == tile.vectors - 1
    value = vector.first_lanes(value, tiles.last_lanes, tile.lanes) if conv.is_output and is_last else value
    vector.store(block, conv.target, element, value, tile.lanes)


def _activated(block: Block, tiles: Tiles, sums: tirx.Expr, part: int) -> tirx.Expr:
    """Return what the activation makes of a vector of sums."""
    conv, lanes = tiles.conv.filter.stage.conv, tiles.tile.lanes

    def bind(name: str, value: tirx.Expr) -> tirx.Expr:
        register = vector.register(block, name, lanes)
        vector.store(block, register, 0, value, lanes)
        return vector.load(register, 0, lanes)

    slope = vector.filled(conv.slope, lanes)
    if tiles.conv.slope is not None:
        slope = vector.load(tiles.conv.slope, tiles.group.vector(tiles.number, part) * lanes, lanes)
    return activated(conv.activation, sums, slope, vector.filled(conv.offset, lanes), bind)


def _initial(block: Block, tiles: Tiles, part: int) -> tirx.Expr:
    """Return what the sums of a vector of channels start from."""
    lanes = tiles.tile.lanes
    if tiles.conv.bias is None:
        return vector.filled(0, lanes)
    loaded = vector.load(tiles.conv.bias, tiles.group.vector(tiles.number, part) * lanes, lanes)
    return block.bind("bias", loaded, f"float32x{lanes}")
