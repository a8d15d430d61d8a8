"""The parts of a nest of rows that depthwise convs take: products of lanes, and the words of pixels that they need."""

from hexconv.analyze.packet_parts import Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.analyze.tile_packets import on_depthwise_tile
from hexconv.kernel.depthwise import (
    MOST_HELD,
    TILE_ROWS,
    WORD_PIXELS,
    RowTiles,
    all_tiles,
    is_depthwise,
    quads_read,
    source_rows,
    taps_of,
    tile_uses,
    variants,
)
from hexconv.spec import Conv2d


def on_rows_together(planned: PlannedRows, index: int) -> tuple[Parts, ...]:
    """What so many neighbouring rows of a conv share: words of their source, and taps; nothing unless depthwise."""
    if not is_depthwise(planned.chain, index):
        return tuple(Parts() for _ in TILE_ROWS)
    return tuple(_shared(planned, index, rows) for rows in TILE_ROWS)


def on_taps(planned: PlannedRows, index: int) -> Parts:
    """What it takes to lay out the taps of all channels."""
    conv = planned.chain.conv[index]
    taps = sum(len(list(taps_of(conv, variant))) for variant in variants(conv))
    return Parts(laid=conv.kernel[0] * taps * planned.extents[index + 1].channel_blocks)


def on_depthwise_tiles(planned: PlannedRows, index: int) -> Parts:
    """What the tiles of a row take, all channels, beside what rows share; nothing unless depthwise."""
    parts = Parts()
    if is_depthwise(planned.chain, index):
        for tiles, blocks in _tiles(planned, index):
            parts.add(on_depthwise_tile(planned, index, tiles.pixels), tiles.count * blocks)
    return parts


def _tiles(planned: PlannedRows, index: int) -> tuple[tuple[RowTiles, int], ...]:
    first, end = planned.extents[index + 1].valid_columns
    return all_tiles(planned.chain.conv[index], end - first)


def _shared(planned: PlannedRows, index: int, rows: int) -> Parts:
    """What some rows of all channels share."""
    conv, parts = planned.chain.conv[index], Parts(tap=taps_loaded(planned, index))
    read = len(source_rows(conv.kernel[0], conv.stride[0], conv.dilation[0], rows))
    for tiles, blocks in _tiles(planned, index):
        halves = {use.pixel for uses in tile_uses(conv, tiles.pixels) for use in uses if use.pixel % WORD_PIXELS}
        words = Parts(quad=quads_loaded(conv, tiles), half=len(halves))
        parts.add(words, read * tiles.count * blocks)
    return parts


def taps_loaded(planned: PlannedRows, index: int) -> int:
    """Vectors of taps that some rows load, all channels: held in registers, or for each tile."""
    conv = planned.chain.conv[index]
    taps = conv.kernel[0] * len(variants(conv))
    if taps <= MOST_HELD:
        return taps * planned.extents[index + 1].channel_blocks
    return taps * sum(tiles.count * blocks for tiles, blocks in _tiles(planned, index))


def vectors_loaded(planned: PlannedRows, index: int) -> int:
    """Vectors of pixels that some rows load of one row of the source, all channels."""
    conv = planned.chain.conv[index]
    return sum(quads_loaded(conv, tiles) * tiles.count * blocks for tiles, blocks in _tiles(planned, index))


def quads_loaded(conv: Conv2d, tiles: RowTiles) -> int:
    """Vectors of 4 pixels that a tile, or two that share their vectors, load of a row.

    >>> quads_loaded(Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4)), quads_loaded(
    ...     Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4, apart=4)
    ... )
    (2, 4)
    """
    found, pixels = set[int](), tiles.pixels
    for use in (use for uses in tile_uses(conv, pixels) for use in uses):
        quad, rest = divmod(use.pixel, WORD_PIXELS)
        found |= {quad, quad + 1} if rest and quad + 1 < quads_read(conv, pixels) else {quad}
    return len(found) * (2 if tiles.apart else 1)
