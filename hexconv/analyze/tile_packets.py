"""The parts of a nest of rows that tiles take: their sums, and what becomes of these."""

from math import ceil

from hexconv.analyze.packet_parts import Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.depthwise import is_depthwise, row_products
from hexconv.kernel.hvx.rows import MADE_UNSIGNED
from hexconv.kernel.hvx.tiles import VECTOR_BLOCKS, overlaps_tiles
from hexconv.spec.conv import TABLE
from hexconv.spec.narrowing import FixedPoint, narrowing, narrowing_to_halfwords

FILTER_BLOCKS = -3
"""The axis of filters with blocks of output channels that lie side by side."""


def on_tile(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """A tile of sums."""
    chain, conv = planned.chain, planned.chain.conv[index]
    if is_depthwise(chain, index):
        return _depthwise_tile(planned, index, pixels)
    planes = 1 if index == 0 else planned.forms.activations[index].physical_shape[2]
    words = planned.multiplied_vectors(index) // planned.extents[index + 1].channel_blocks
    is_dense, sums = planned.is_one_run(index), blocks * pixels
    passes = planned.source_bytes * planned.filter_bytes
    runs = conv.kernel[0] * planes * (1 if is_dense else conv.kernel[1]) * passes
    trips = words * passes // 2
    in_tile = planned.filter_zero(index) != 0 and not planned.sums_windows_ahead(index)
    trip = max(pixels * (blocks + in_tile), 2 * blocks, (2 * blocks + pixels) / 2)
    parts = Parts(tile=1, run=runs, sum=sums, inside=sums * in_tile)
    parts.add({f"multiply{blocks}": trips * trip, f"turn{blocks}": runs * trip})
    side_by_side = planned.forms.filters[index].physical_shape[FILTER_BLOCKS]
    parts[f"apart{blocks}"] = trips * (ceil(blocks / side_by_side) - 1)
    parts["initial"] = blocks * (conv.bias or chain.output_zero_point(index) != 0)
    parts["splat"] = pixels if planned.sums_windows_ahead(index) else 0
    parts.add(_leaving(planned, index, blocks, pixels))
    first, end = planned.extents[index + 1].valid_columns
    if is_dense and not in_tile and overlaps_tiles(conv.kernel[0], planes, words, blocks, (end - first) // pixels):
        parts["overlapped"] = sums
    return parts


def _depthwise_tile(planned: PlannedRows, index: int, pixels: int) -> Parts:
    """A tile whose lanes are channels: a product of two vectors is a packet."""
    chain, conv = planned.chain, planned.chain.conv[index]
    passes = 1 if planned.filter_zero(index) in (0, MADE_UNSIGNED) else 2
    parts = Parts(tile=1, sum=pixels, lane=row_products(conv, pixels) * conv.kernel[0] * passes)
    parts["initial"] = 1 if conv.bias or chain.output_zero_point(index) else 0
    parts.add(_leaving(planned, index, 1, pixels))
    return parts


def _leaving(planned: PlannedRows, index: int, blocks: int, pixels: int) -> Parts:
    """What becomes of the sums of a tile."""
    how, sums, is_wide = planned.chain.conv[index].requantize, blocks * pixels, planned.source_bytes > 1
    if how is None:
        return Parts(whole=sums)
    together = planned.forms.channel_units[index + 1]
    vectors = blocks // together * ceil(pixels * together / VECTOR_BLOCKS) * planned.source_bytes
    sequence, _offset = narrowing_to_halfwords(how) if is_wide else narrowing(how, how.zero_point)
    looked_up = vectors * (planned.chain.conv[index].activation == TABLE)
    if not isinstance(sequence, FixedPoint):
        return Parts(narrow=vectors, even=sums * (sequence.halves is not None), table=looked_up)
    is_even = sequence.halves is not None or sequence.halves_per_channel
    parts = Parts(narrow=vectors, scale=sums, away=sums * sequence.ties_away, even=sums * is_even, table=looked_up)
    parts["initial"] = blocks * len(sequence.vectors)
    return parts
