"""Packets of a conv: how often each part of its tiles occurs, by the form in which it multiplies.

A conv of 8 output channels or fewer has one group of lanes, and LLVM leaves out what only lanes without a channel do.
Where there are more groups, a loop over them computes all lanes, and the last channel is looked for in each of them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from hexconv.analyze.row_nest import PlannedRows
from hexconv.kernel.depthwise import (
    TILE_ROWS,
    WAYS_TOGETHER,
    WORD_PIXELS,
    RowTiles,
    all_tiles,
    carried_quads,
    handed_down,
    holds_taps,
    is_depthwise,
    products_of_tile,
    quads_used,
    source_rows,
    tile_uses,
    variants,
)
from hexconv.kernel.pixels import PixelLanes, PixelTile
from hexconv.kernel.scalar import SCALAR_LANES, WORD_LANES, sums_words
from hexconv.kernel.tiles import VECTOR_BLOCKS, overlaps_tiles
from hexconv.spec import Conv2d
from hexconv.spec.activations import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import SATURATING, FixedPoint
from hexconv.spec.ranges import narrowing_at
from hexconv.spec.vectors import whole_channels

UNROLLED = 16
"""How many copies of a loop LLVM unrolls, so that they need no loop."""


class Parts(defaultdict[str, float]):
    """How often each part occurs."""

    def __init__(self, **counts: float) -> None:
        super().__init__(float, counts)

    def add(self, others: Mapping[str, float], times: float = 1) -> None:
        """Add the counts of `others`, each multiplied by `times`."""
        for name, count in others.items():
            self[name] += times * count


@dataclass(frozen=True)
class Spent:
    """The parts that making a tensor takes.

    Attributes:
        row: the parts for a row that has elements, all of its channels.
        blank_row: the parts for a row of fringe, without elements.
        step: the parts for a step that makes some of the tensor's rows, all of its channels.
        once: the parts for a whole run, whatever the plan's stripes are.
        together: the further parts for rows of a depthwise conv that are made in each way (`WAYS_TOGETHER`).
    """

    row: Parts = field(default_factory=Parts)
    blank_row: Parts = field(default_factory=Parts)
    step: Parts = field(default_factory=Parts)
    once: Parts = field(default_factory=Parts)
    together: tuple[Parts, ...] = field(default_factory=lambda: tuple(Parts() for _ in WAYS_TOGETHER))

    @property
    def parts(self) -> tuple[Parts, ...]:
        """All fields, in order."""
        return (self.row, self.blank_row, self.step, self.once, *self.together)


LONG_TRIP = 8
"""The packets of an inner loop's trip from which on its start and its end hide behind the loop's own work."""
IN_LANES = {"scale": 3, "away": 1, "even": 3}
"""Instructions for a vector of sums in what `_ending` counts, but for those that narrow it."""
FILTER_BLOCKS = -3
"""The axis of a filter whose size is how many blocks of output channels lie side by side."""


def on_tile(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """Count the parts of one tile of conv `index`: sums of `blocks` channel blocks by `pixels` pixels."""
    conv = planned.chain.conv[index]
    words = planned.multiplied_vectors(index) // planned.extents[index + 1].channel_blocks
    is_dense, sums = planned.is_one_run(index), blocks * pixels
    passes = planned.source_bytes * planned.filter_bytes
    runs = conv.kernel[0] * planned.runs(index) * passes
    trips = words * passes // 2
    in_tile = planned.filter_zero(index) != 0 and not planned.sums_windows_ahead(index)
    trip = max(pixels * (blocks + in_tile), 2 * blocks, (2 * blocks + pixels) / 2)
    parts = Parts(tile=1, run=runs, sum=sums, inside=sums * in_tile)
    parts["within" if in_tile else f"multiply{blocks}"] = trips * trip
    lacking = runs * max(0, LONG_TRIP - trip)
    if trips == runs:
        parts["straight_short"] = lacking
    elif trips == 2 * runs:
        parts.add({"twice": runs, "twice_short": lacking})
    else:
        parts.add({f"turn{blocks}": runs * trip, "short": lacking})
    side_by_side = planned.forms.filters[index].physical_shape[FILTER_BLOCKS]
    parts[f"apart{blocks}"] = trips * (ceil(blocks / side_by_side) - 1)
    parts["initial"] = blocks * planned.has_offsets(index)
    parts["splat"] = pixels if planned.sums_windows_ahead(index) else 0
    parts.add(_leaving(planned, index, blocks, pixels))
    first, end = planned.extents[index + 1].valid_columns
    planes, tiles = planned.planes_apart(index), (end - first) // pixels
    if is_dense and not in_tile and overlaps_tiles(conv.kernel[0], planes, words, blocks, tiles):
        parts["overlapped"] = sums
    return parts


def on_depthwise_tile(planned: PlannedRows, index: int, pixels: int) -> Parts:
    """Count the parts of a tile whose lanes are channels, or of two tiles that share their vectors."""
    conv = planned.chain.conv[index]
    passes = 2 if planned.filter_zero(index) else 1
    parts = Parts(sum=pixels, lane=products_of_tile(conv, pixels) * conv.kernel[0] * passes)
    parts["initial"] = 1 if planned.has_offsets(index) else 0
    parts.add(_leaving(planned, index, 1, pixels))
    return parts


def on_own_words(planned: PlannedRows, index: int, pixels: int) -> Parts:
    """Count the parts of a tile of one block of channels whose lanes have words of their own groups."""
    vectors = planned.filter_vectors(index) // planned.extents[index + 1].channel_blocks
    parts = Parts(tile=1, sum=pixels, own_word=pixels * vectors)
    parts["initial"] = 1 if planned.has_offsets(index) else 0
    parts.add(_leaving(planned, index, 1, pixels))
    return parts


def on_pixels(planned: PlannedRows, index: int, lanes: PixelLanes, tile: PixelTile) -> Parts:
    """Count the parts of a tile whose lanes are pixels, so that every vector of sums belongs to one channel."""
    conv = planned.chain.conv[index]
    sums = tile.vectors * conv.out_channels
    parts = Parts(tile=1, lane_run=lanes.runs(tile) * conv.kernel[0], sum=sums)
    parts.add({"of_pixels": sums * lanes.planes.steps / 2, "across": tile.vectors * lanes.shuffled})
    ended = _ending(planned, index, sums, tile.vectors * lanes.results, conv.out_channels)
    parts.add({name: ended[name] for name in ("narrow", "table")})
    scaled = sum(ended[name] * each for name, each in IN_LANES.items())
    parts.add({"lane_scale": scaled, "lane_channel": conv.out_channels} if scaled else {})
    parts["spread"] = ended["initial"] + conv.out_channels * planned.has_offsets(index)
    return parts


def on_dense(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """Count the parts of a tile of windows of dense rows: sums of `blocks` channel blocks by `pixels` pixels."""
    conv, dense = planned.chain.conv[index], planned.dense(index)
    assert dense
    sums = blocks * pixels
    parts = Parts(tile=1, run=conv.kernel[0], sum=sums)
    parts["of_windows"] = sums * dense.steps / 2
    parts["splat"] = pixels if planned.filter_zero(index) else 0
    parts.add(_leaving(planned, index, blocks, pixels))
    parts["initial"] += blocks * planned.has_offsets(index)
    return parts


def _leaving(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """Count the parts of the epilogue of a tile: its sums are stored whole, or requantised."""
    sums = blocks * pixels
    if planned.chain.conv[index].requantize is None:
        return Parts(whole=sums)
    if planned.makes_narrow(index):
        return _leaving_narrow(planned, index, blocks, pixels)
    together = planned.blocks_together(index)
    vectors = blocks // together * ceil(pixels * together / VECTOR_BLOCKS) * planned.source_bytes
    return _ending(planned, index, sums, vectors, blocks)


def _leaving_narrow(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """Count the parts of the epilogue of a tile that makes narrow blocks (`hexconv.lower.hvx.stores`).

    Where the last block of 32 channels fits a narrow one, pixels share vectors of its sums. Each tile counts its share.
    """
    tensor, unit = planned.extents[index + 1], planned.forms.channel_units[index + 1]
    fits = 0 < planned.chain.conv[index].out_channels - (tensor.channel_blocks - 1) * CHANNEL_BLOCK <= unit
    last = blocks / tensor.channel_blocks * fits
    shared, stored = CHANNEL_BLOCK // unit, ceil(pixels / planned.narrow_pixels(index))
    sums = last * ceil(pixels / shared) + (blocks - last) * pixels
    vectors = last * stored + (blocks - last) * ceil(pixels / VECTOR_BLOCKS)
    parts = _ending(planned, index, sums, vectors, blocks)
    parts["across"] = last * pixels * (1 - 1 / shared) + (blocks - last) * stored
    return parts


def _ending(planned: PlannedRows, index: int, sums: float, vectors: float, lanes: int) -> Parts:
    """Count the parts of requantising `sums` vectors of sums to `vectors` vectors of results.

    A tile loads `lanes` vectors for each value that differs by channel.
    """
    how = planned.chain.conv[index].requantize
    assert how
    sequence, _offset = narrowing_at(planned.chain, index)
    looked_up = vectors * (planned.chain.conv[index].activation == TABLE)
    if not isinstance(sequence, FixedPoint):
        return Parts(narrow=vectors, even=sums * (sequence.halves is not None), table=looked_up)
    is_even = sequence.has_halves
    parts = Parts(narrow=vectors, scale=sums, even=sums * is_even, table=looked_up)
    saturated = SATURATING * (sequence.saturates_at is not None)
    parts["away"] = sums * (sequence.ties_away + (sequence.lift > 0) + sequence.doubles_saturating + saturated)
    parts["initial"] = lanes * len(sequence.vectors)
    return parts


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


SCALAR_PARTS = (
    "word",
    "scalar_run",
    "product",
    "tap_run",
    "pixel",
    "lane_group",
    "element",
    "scaled",
    "scaled_even",
    "held",
    "looked_up",
    "ragged",
    "unsure",
    "scalar_row",
    "scalar_fill",
)
"""The parts of convs that no HVX kernel serves, so that scalar code computes them."""


def on_scalar(planned: PlannedRows, index: int) -> Spent:
    """Count the parts of a conv that scalar code computes."""
    conv, work, (first, end) = (
        planned.chain.conv[index],
        planned.scalar(index),
        planned.extents[index + 1].valid_columns,
    )
    pixels, stored, channels = end - first, planned.source_columns(index + 1), whole_channels(conv.out_channels)
    words = work.words * _share_of_pairs(conv.out_channels) + work.window_words
    row = Parts(scalar_row=1, scalar_fill=(stored - pixels) * channels + pixels * (channels - work.lanes))
    row.add(Parts(pixel=1, word=words, product=work.products, lane_group=work.lanes / SCALAR_LANES), pixels)
    row["scalar_run" if sums_words(planned.chain, index) else "tap_run"] = work.runs * pixels
    row.add(_elements(planned, index), pixels)
    blank = Parts(scalar_row=1, scalar_fill=stored * channels)
    return Spent(row, blank, Parts(step=planned.channel_tiles(index)), Parts(word=work.filter_words))


def _share_of_pairs(channels: int) -> float:
    """Return the share of the pairs of lanes that have a channel, where there is one group of lanes.

    >>> [_share_of_pairs(channels) for channels in (1, 3, 8, 9)]
    [0.25, 0.5, 1.0, 1.0]
    """
    return min(ceil(channels / WORD_LANES) * WORD_LANES / SCALAR_LANES, 1.0)


def _elements(planned: PlannedRows, index: int) -> Parts:
    """Count the elements that the sums of a pixel become, by what each takes."""
    conv = planned.chain.conv[index]
    is_one_group = conv.out_channels <= SCALAR_LANES
    there = conv.out_channels if is_one_group else planned.scalar(index).lanes
    is_ragged = not is_one_group and conv.out_channels % SCALAR_LANES > 0
    parts = Parts(
        element=there, ragged=there * is_ragged, unsure=there * is_ragged * (planned.channel_tiles(index) > 1)
    )
    if how := conv.requantize:
        parts["scaled"] = there
        parts["scaled_even"] = there * (how.rounding == "even")
        parts["held"] = there * (how.clamp is not None)
        parts["looked_up"] = there * (conv.activation == TABLE)
    return parts
