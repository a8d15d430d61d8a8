"""How many parts (`hexconv.analyze.nest_packets`) depthwise convs take: products of lanes, and the words they read."""

from math import ceil

from hexconv.analyze.packet_parts import Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.analyze.tile_packets import on_depthwise_tile
from hexconv.kernel.depthwise import (
    TILE_ROWS,
    WAYS_TOGETHER,
    RowTiles,
    all_tiles,
    handed_down,
    holds_taps,
    is_depthwise,
    source_rows,
)
from hexconv.kernel.depthwise_words import WORD_PIXELS, carried_quads, quads_used, tile_uses, variants
from hexconv.spec import Conv2d


def on_rows_together(planned: PlannedRows, index: int) -> tuple[Parts, ...]:
    """Count what rows of a conv take beside their tiles, for each of `WAYS_TOGETHER`: words of their source, and taps.

    A conv that is not depthwise has no such parts.
    """
    if not is_depthwise(planned.chain, index):
        return tuple(Parts() for _ in WAYS_TOGETHER)
    along = (_words(planned, index, rows_read(planned, index, rows)) for rows in TILE_ROWS)
    shared, taps = len(handed_down(planned.chain.conv[index])), Parts(tap=taps_made(planned, index))
    row, step = (
        _words(planned, index, rows, goes_down=True) for rows in (rows_read(planned, index, 1) - shared, shared)
    )
    return (*(_with(parts, taps) for parts in along), row, _with(step, taps))


def rows_read(planned: PlannedRows, index: int, rows: int) -> int:
    """Count the rows of the source that `rows` neighbouring rows of outputs read."""
    conv = planned.chain.conv[index]
    return len(source_rows(conv.kernel[0], conv.stride[0], conv.dilation[0], rows))


def on_depthwise_tiles(planned: PlannedRows, index: int) -> Parts:
    """Count the parts of all tiles of a row, without those that rows share; none unless the conv is depthwise."""
    parts = Parts()
    if is_depthwise(planned.chain, index):
        for tiles, blocks in _tiles(planned, index):
            parts.add(on_depthwise_tile(planned, index, tiles.pixels), tiles.count * blocks)
    return parts


def _tiles(planned: PlannedRows, index: int) -> tuple[tuple[RowTiles, int], ...]:
    first, end = planned.extents[index + 1].valid_columns
    return all_tiles(planned.chain.conv[index], end - first)


def _words(planned: PlannedRows, index: int, rows: int, goes_down: bool = False) -> Parts:
    """Count the parts of the words of `rows` rows of the source, for all channels."""
    conv, parts = planned.chain.conv[index], Parts()
    for tiles, blocks in _tiles(planned, index):
        halves = {use.pixel for uses in tile_uses(conv, tiles.pixels) for use in uses if use.pixel % WORD_PIXELS}
        words = Parts(quad=quads_loaded(conv, tiles, goes_down), half=len(halves) * tiles.count)
        parts.add(words, rows * blocks)
    return parts


def _with(parts: Parts, more: Parts) -> Parts:
    parts.add(more)
    return parts


def taps_made(planned: PlannedRows, index: int) -> int:
    """Count the vectors of taps that rows made together put into registers, in all variants, for all channels."""
    conv = planned.chain.conv[index]
    return _in_registers(planned, index) * conv.kernel[0] * len(variants(conv))


def words_loaded(planned: PlannedRows, index: int) -> int:
    """Count the vectors of the filter that rows made together load, for all channels."""
    conv = planned.chain.conv[index]
    return _in_registers(planned, index) * conv.kernel[0] * ceil(conv.kernel[1] / WORD_PIXELS)


def _in_registers(planned: PlannedRows, index: int) -> int:
    """Count how often rows made together load all taps of a block of channels: once, or in each tile."""
    if holds_taps(planned.chain.conv[index]):
        return planned.extents[index + 1].channel_blocks
    return sum(tiles.count * blocks for tiles, blocks in _tiles(planned, index))


def vectors_loaded(planned: PlannedRows, index: int, goes_down: bool = False) -> int:
    """Count the vectors of pixels that tiles load from one row of the source, for all channels."""
    conv = planned.chain.conv[index]
    return sum(quads_loaded(conv, tiles, goes_down) * blocks for tiles, blocks in _tiles(planned, index))


def quads_loaded(conv: Conv2d, tiles: RowTiles, goes_down: bool = False) -> int:
    """Count the vectors of 4 pixels that equal tiles load from a row; two tiles in the same vectors load twice as many.

    Of the words that a tile takes over from the one before it in its row, the first tile alone loads the pixels. Tiles
    that go down take none over from their row.

    >>> quads_loaded(Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4)), quads_loaded(
    ...     Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4, apart=4)
    ... )
    (2, 4)
    >>> stepping = Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))
    >>> [quads_loaded(stepping, RowTiles(0, 7, 4), goes_down) for goes_down in (False, True)]
    [15, 21]
    """
    used, along = len(quads_used(conv, tiles.pixels)), tiles.count > 1 and not goes_down
    carried = len(carried_quads(conv)) if along else 0
    return (tiles.count * (used - carried) + carried) * (2 if tiles.apart else 1)
