"""A row of tiles side by side: where each lies, what its sums start from, and which results are stored."""

from dataclasses import dataclass

from tvm import tirx

from hexconv.compute.activations import FUNCTIONS, activated, clamped
from hexconv.schedule.block import Block, Number
from hexconv.schedule.host import vector
from hexconv.schedule.host.conv import Conv
from hexconv.schedule.host.filters import Group
from hexconv.schedule.host.tile import Operands, Tile, reduce, start


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
    for part in range(tile.vectors):
        for pixel, (row, column) in enumerate(tile.places):
            element = conv.address(y + row, x + column, tiles.group.vector(tiles.number, part))
            vector.store(block, conv.target, element, _result(tiles, pixel, part), tile.lanes)
    if conv.filter.stage.conv.activation in FUNCTIONS:
        _activate(block, tiles, y, x)


def _activate(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr) -> None:
    """Replace all sums that a tile has stored by what its activation makes of them, one vector after the other.

    The arithmetic of an activation takes many registers: it would not fit beside the sums of a tile.
    """
    tile, conv = tiles.tile, tiles.conv

    def one(at: Block, row: tirx.Expr, column: tirx.Expr, part: Number) -> None:
        place = conv.address(y + row, x + column, tiles.group.vector(tiles.number, part))
        element = at.bind("place", place)
        made = _activated(at, tiles, vector.load(conv.target, element, tile.lanes), part)
        is_last = isinstance(part, int) and part == tile.vectors - 1
        kept = vector.first_lanes(made, tiles.last_lanes, tile.lanes) if conv.is_output and is_last else made
        vector.store(at, conv.target, element, kept, tile.lanes)

    def pixel(at: Block, row: tirx.Expr, column: tirx.Expr) -> None:
        at.loop("vector", tile.vectors - 1, lambda inner, part: one(inner, row, column, part))
        one(at, row, column, tile.vectors - 1)

    def line(at: Block, row: tirx.Expr) -> None:
        at.loop("column", tile.columns, lambda inner, column: pixel(inner, row, column))

    block.loop("row", tile.pixels // tile.columns, line)


def _activated(block: Block, tiles: Tiles, sums: tirx.Expr, part: Number) -> tirx.Expr:
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


def _result(tiles: Tiles, pixel: int, part: int) -> tirx.Expr:
    """Return the results that are stored for one pixel, or the sums that become them."""
    tile, conv = tiles.tile, tiles.conv
    value, name = tile.value(pixel, part), conv.filter.stage.conv.activation
    if name in FUNCTIONS:
        return value
    value = clamped(value, name)
    is_last = part == tile.vectors - 1
    return vector.first_lanes(value, tiles.last_lanes, tile.lanes) if conv.is_output and is_last else value
