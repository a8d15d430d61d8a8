"""How many parts (`hexconv.analyze.nest_packets`) tiles take: for their sums, and for what the sums become."""

from math import ceil

from hexconv.analyze.packet_parts import Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.depthwise import products_of_tile
from hexconv.kernel.hvx.pixels import PixelLanes, PixelTile
from hexconv.kernel.hvx.tiles import VECTOR_BLOCKS, overlaps_tiles
from hexconv.spec.activations import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import FixedPoint
from hexconv.spec.sums import narrowing_at

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
    """Count the parts of the epilogue of a tile that makes narrow blocks (`hexconv.lower.hvx.write`).

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
    saturated = 3 * (sequence.saturates_at is not None)
    parts["away"] = sums * (sequence.ties_away + (sequence.lift > 0) + sequence.doubles_saturating + saturated)
    parts["initial"] = lanes * len(sequence.vectors)
    return parts
