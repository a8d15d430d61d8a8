"""One conv over a range of rows: panel by panel, group by group of output channels, row by row, tile by tile."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.host.loops.conv import Conv
from hexconv.host.loops.filters import Group
from hexconv.host.loops.rows import larger, smaller
from hexconv.host.loops.tile import allocate_tile
from hexconv.host.loops.tiles import Tiles, beside
from hexconv.schedule.block import Block, Number, int32


def convolve(block: Block, conv: Conv, begin: Number, end: Number) -> None:
    """Compute rows `begin` to `end` of the conv's output, all channels."""
    rows = conv.panel_rows
    if rows is None:
        _panel(block, conv, begin, end)
        return

    def some(at: Block, index: tirx.Expr) -> None:
        first = at.bind("first", begin + index * rows)
        _panel(at, conv, first, at.bind("end", smaller(first + rows, end)))

    panels = tirx.floordiv(end - begin + (rows - 1), int32(rows))
    block.loop("panel", panels, some, part=f"{conv.name}: panels of its rows, {rows} at a time")


def _panel(block: Block, conv: Conv, begin: Number, end: Number) -> None:
    """Compute a panel: some rows, all channels."""
    lanes, channels = conv.filter.registers.lanes, conv.filter.stage.conv.out_channels
    *groups, last = conv.filter.groups
    for group in groups:
        _repeat(block, conv, group, group.count, begin, end)
    # The last vector may have lanes without a channel.
    _repeat(block, conv, last, last.count - 1, begin, end)
    _group(block, conv, last, int32(last.count - 1), channels % lanes or lanes, begin, end)


def _repeat(block: Block, conv: Conv, group: Group, count: int, begin: Number, end: Number) -> None:
    lanes = conv.filter.registers.lanes
    block.loop("group", count, lambda at, number: _group(at, conv, group, number, lanes, begin, end))


def _group(block: Block, conv: Conv, group: Group, number: Number, last_lanes: int, begin: Number, end: Number) -> None:
    """Compute all rows of one group of channels: first rows in groups, then the rows that are left."""
    tiling, rows = conv.filter.tiling, end - begin

    def tiles(first: int, count: int, rows: int, columns: int) -> Tiles:
        tile = allocate_tile(block, rows, columns, group.vectors, conv.filter.registers.lanes)
        return Tiles(conv, group, number, last_lanes, first, count, tile)

    alone, first = [], 0
    for count, pixels in tiling.alone:
        alone.append(tiles(first, count, 1, pixels))
        first += count * pixels
    if 1 < tiling.rows <= (conv.panel_rows or tiling.rows):
        whole = tiles(0, tiling.whole, 1, tiling.pixels)
        tall = tiles(tiling.whole * tiling.pixels, tiling.tall, tiling.rows, tiling.tall_columns)
        # `rows` is negative where the band below has made all new rows and more.
        together = block.bind("together", tirx.floordiv(larger(rows, int32(0)), int32(tiling.rows)))
        _rows_together(block, whole, tall, begin, together)
        begin = block.bind("begin", begin + together * tiling.rows)
        rows = end - begin
    _rows_alone(block, alone, begin, rows)


def _rows_alone(block: Block, all_tiles: Sequence[Tiles], begin: Number, rows: Number) -> None:
    """Compute `rows` rows from `begin` on, each in tiles of its own."""

    def row(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + begin)
        for tiles in all_tiles:
            beside(at, tiles, y)

    block.loop("row", rows, row, part=_what(*all_tiles))


def _rows_together(block: Block, whole: Tiles, tall: Tiles, begin: Number, groups: Number) -> None:
    """Compute `groups` groups of rows from `begin` on: whole tiles row by row, the columns left over in tall tiles."""
    rows = tall.conv.filter.tiling.rows

    def several(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index * rows + begin)
        at.loop("row", rows, lambda inner, row: beside(inner, whole, inner.bind("y", y + row)))
        beside(at, tall, y)

    block.loop("rows", groups, several, part=f"{_what(whole, tall)} and {rows} rows")


def _what(*all_tiles: Tiles) -> str:
    """Return what a listing says of a loop over these tiles."""
    tiles = all_tiles[0]
    pixels = " and ".join(str(tiles.tile.columns) for tiles in all_tiles if tiles.count)
    return f"{tiles.conv.name}: tiles of {pixels} pixels by {tiles.group.vectors * tiles.tile.lanes} channels"
