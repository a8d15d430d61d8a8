"""One conv over a range of rows: group by group of output channels, row by row, tile by tile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.host import vector
from hexconv.schedule.host.filters import Filter, Group
from hexconv.schedule.host.stage import Lines
from hexconv.schedule.host.tile import Operands, Tile, allocate_tile, reduce, start

Address = Callable[[Number, Number, Number], Number]
"""(row, column, vector of channels) -> element of the target."""


@dataclass(frozen=True)
class Conv:
    """A conv with its buffers.

    Attributes:
        name: of the conv, in listings.
        source: activations, flat.
        source_first: element where row `source_base` starts.
        lines: where their pixels lie.
        source_base: the row of the conv's input that row 0 of `source` holds.
        filter: the filter and its cache.
        bias: by output channel, whole blocks; None where there is none.
        target: where results go, flat.
        address: element of the target.
        is_output: whether the target leaves the chain: what it has no channel for is zero.
    """

    name: str
    source: tirx.Buffer
    source_first: Number
    lines: Lines
    source_base: Number
    filter: Filter
    bias: tirx.Buffer | None
    target: tirx.Buffer
    address: Address
    is_output: bool

    def origin(self, row: Number, column: Number) -> Number:
        """Element of the source where the window of an output pixel starts."""
        stage = self.filter.stage
        top = row * stage.stride[0] - stage.padding[0] - self.source_base
        return self.source_first + top * self.lines.row + column * (stage.stride[1] * self.lines.pixel)


@dataclass(frozen=True)
class Tiles:
    """Tiles beside each other for one group of channels: `count` from column `first` on.

    Attributes:
        conv: what to compute.
        group: of channels.
        number: repetition of the group.
        last_lanes: of the group's last vector, those that hold channels.
        first: column.
        count: of tiles.
        tile: their registers.
    """

    conv: Conv
    group: Group
    number: Number
    last_lanes: int
    first: int
    count: int
    tile: Tile


def convolve(block: Block, conv: Conv, begin: Number, end: Number) -> None:
    """Rows `begin` to `end` of the conv's output, all channels."""
    lanes, channels = conv.filter.registers.lanes, conv.filter.stage.out_channels
    *groups, last = conv.filter.groups
    for group in groups:
        _repeat(block, conv, group, group.count, begin, end)
    # the very last vector may have lanes without a channel
    _repeat(block, conv, last, last.count - 1, begin, end)
    _group(block, conv, last, int32(last.count - 1), channels % lanes or lanes, begin, end)


def _repeat(block: Block, conv: Conv, group: Group, count: int, begin: Number, end: Number) -> None:
    lanes = conv.filter.registers.lanes
    block.loop("group", count, lambda at, number: _group(at, conv, group, number, lanes, begin, end))


def _group(block: Block, conv: Conv, group: Group, number: Number, last_lanes: int, begin: Number, end: Number) -> None:
    """All rows of one group of channels: as many as there are together, then those that are left."""
    tiling, rows = conv.filter.tiling, end - begin

    def tiles(first: int, count: int, rows: int, columns: int) -> Tiles:
        tile = allocate_tile(block, rows, columns, group.vectors, conv.filter.registers.lanes)
        return Tiles(conv, group, number, last_lanes, first, count, tile)

    alone, first = [], 0
    for count, pixels in tiling.alone:
        alone.append(tiles(first, count, 1, pixels))
        first += count * pixels
    if tiling.rows > 1:
        whole = tiles(0, tiling.whole, 1, tiling.pixels)
        tall = tiles(tiling.whole * tiling.pixels, tiling.tall, tiling.rows, tiling.tall_columns)
        together = block.bind("together", tirx.floordiv(rows, int32(tiling.rows)))
        _rows_together(block, whole, tall, begin, together)
        begin = block.bind("begin", begin + together * tiling.rows)
        rows = end - begin
    _rows_alone(block, alone, begin, rows)


def _rows_alone(block: Block, all_tiles: Sequence[Tiles], begin: Number, rows: Number) -> None:
    """So many rows from `begin` on, each in tiles of its own."""

    def row(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + begin)
        for tiles in all_tiles:
            _beside(at, tiles, y)

    block.loop("row", rows, row, part=_what(*all_tiles))


def _rows_together(block: Block, whole: Tiles, tall: Tiles, begin: Number, groups: Number) -> None:
    """So many groups of rows from `begin` on: whole tiles in each row, and what is left of them in tiles of all."""
    rows = tall.conv.filter.tiling.rows

    def several(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index * rows + begin)
        at.loop("row", rows, lambda inner, row: _beside(inner, whole, inner.bind("y", y + row)))
        _beside(at, tall, y)

    block.loop("rows", groups, several, part=f"{_what(whole, tall)} and {rows} rows")


def _beside(block: Block, tiles: Tiles, y: tirx.Expr) -> None:
    """Tiles from row `y` on."""
    block.loop("tile", tiles.count, lambda inner, place: _tile(inner, tiles, y, place))


def _what(*all_tiles: Tiles) -> str:
    """What a listing says of a loop over these."""
    tiles = all_tiles[0]
    pixels = " and ".join(str(tiles.tile.columns) for tiles in all_tiles if tiles.count)
    return f"{tiles.conv.name}: tiles of {pixels} pixels by {tiles.group.vectors * tiles.tile.lanes} channels"


def _tile(block: Block, tiles: Tiles, y: tirx.Expr, place: tirx.Expr) -> None:
    """Start, reduce, store."""
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


def _initial(block: Block, tiles: Tiles, part: int) -> tirx.Expr:
    """What the sums of a vector of channels start from."""
    lanes = tiles.tile.lanes
    if tiles.conv.bias is None:
        return vector.filled(0, lanes)
    loaded = vector.load(tiles.conv.bias, tiles.group.vector(tiles.number, part) * lanes, lanes)
    return block.bind("bias", loaded, f"float32x{lanes}")


def _result(tiles: Tiles, pixel: int, part: int) -> tirx.Expr:
    """What is stored of one pixel."""
    tile, conv = tiles.tile, tiles.conv
    value, (low, high) = tile.value(pixel, part), conv.filter.stage.clamps
    value = value if low is None else tirx.Max(value, vector.filled(low, tile.lanes))
    value = value if high is None else tirx.Min(value, vector.filled(high, tile.lanes))
    is_last = part == tile.vectors - 1
    return vector.first_lanes(value, tiles.last_lanes, tile.lanes) if conv.is_output and is_last else value
