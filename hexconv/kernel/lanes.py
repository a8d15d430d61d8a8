"""Choose what the lanes of a conv are, pixels or channels: the way that takes fewer packets by an estimate.

Packets are estimated from counts of instructions: two products fit a packet, or one of anything else. Counts are those
of a row of outputs.
"""

from functools import lru_cache
from math import ceil, inf

from hexconv.kernel.dense import DenseRows, serves_dense
from hexconv.kernel.forms import Forms
from hexconv.kernel.pixels import PixelLanes, fits_pixels, lanes_between, serves_pixels
from hexconv.kernel.planes import plane_of
from hexconv.kernel.tiles import (
    PAIR_BYTES,
    VECTOR_BLOCKS,
    WORD_CHANNELS,
    joins_planes,
    makes_blocks,
    multiplied_words,
    tile_pixels,
)
from hexconv.spec import Chain
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.narrowing import SATURATING, FixedPoint, narrowing_of

PRODUCTS_OF_PACKET = 2
TURN = 3
"""What it takes to enter the inner loop once more, where the words of a row of taps are several runs."""
ENDINGS_OF_PACKET = 2
"""Instructions of the end of a tile that fit a packet: what is left out of them counts as it runs."""
MOVED = 3
"""Instructions that deal and store a vector of results."""
EXCHANGED_PIXELS = 8
"""Pixels whose channels an instruction exchanges where narrow blocks are made of whole ones."""
TIES = 3
"""Instructions that subtract one from sums half way above an even result."""


@lru_cache(REMEMBERED)
def pixel_lanes(chain: Chain, index: int, forms: Forms, k_split: int) -> PixelLanes | None:
    """How conv `index` runs with pixels as lanes; None where it can't, or where that doesn't take fewer packets.

    A conv beside a tensor in blocks of 4 channels runs so in any case. One that reads dense pixels runs so, or with
    channels as lanes on windows of dense rows (`dense_rows`).

    Args:
        chain: the chain, in which convs have the groups that HVX computes (`hexconv.kernel.grouped`).
        index: the index of the conv, from 0.
        forms: the layouts of the chain's nest of rows.
        k_split: blocks of output channels of a step.
    """
    source, unit = plane_of(forms, index, halves=False), forms.channel_units[index + 1]
    if not serves_pixels(chain, index) or not fits_pixels(source):
        return None
    found = lanes_between(chain, index, source, unit, k_split)
    if source.is_dense:
        return found if packets_of_pixels(found) <= packets_of_dense(found) else None
    return found if packets_of_pixels(found) < packets_of_channels(found) else None


def dense_rows(chain: Chain, index: int, forms: Forms, k_split: int) -> DenseRows | None:
    """How conv `index` multiplies windows of dense rows; None where it doesn't read them, or has pixels as lanes."""
    source, unit = plane_of(forms, index, halves=False), forms.channel_units[index + 1]
    if not source.is_dense or pixel_lanes(chain, index, forms, k_split):
        return None
    return dense_between(lanes_between(chain, index, source, unit, k_split))


def dense_between(lanes: PixelLanes) -> DenseRows:
    """How a conv would multiply windows of dense rows, instead of having pixels as lanes."""
    return DenseRows(lanes.conv, lanes.planes.left, lanes.columns, lanes.planes)


@lru_cache(REMEMBERED)
def packets_of_pixels(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with pixels as lanes."""
    ended = lanes.vectors * lanes.conv.out_channels * _ending(lanes)
    moved = lanes.tiles_of_channels * lanes.planes.new_rows * lanes.planes.laid + lanes.vectors * lanes.shuffled
    return lanes.products / PRODUCTS_OF_PACKET + ended + moved


@lru_cache(REMEMBERED)
def packets_of_dense(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with 32 channels as lanes on windows of dense rows; infinite where that can't be.

    Weights are taken to have a zero point, as int8 weights have.
    """
    if not (serves_dense(lanes.planes) and makes_blocks(lanes.unit, lanes.conv.out_channels, lanes.tile_blocks)):
        return inf
    dense = dense_between(lanes)
    sums = dense.columns * dense.blocks
    moved = lanes.tiles_of_channels * (dense.new_rows * dense.laid + dense.summed)
    return sums * (dense.steps / PRODUCTS_OF_PACKET + _ending(lanes)) + moved


@lru_cache(REMEMBERED)
def packets_of_channels(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with 32 channels as lanes; infinite where that can't be."""
    conv, plane = lanes.conv, lanes.planes.source
    if plane.is_of_words or not makes_blocks(lanes.unit, conv.out_channels, lanes.tile_blocks):
        return inf
    (rows, columns), words = conv.kernel, multiplied_words(lanes.planes.channels, plane.words, plane.count)
    is_one_run = columns == 1 or (conv.dilation[1] == 1 and words == plane.words)
    runs = 1 if joins_planes(columns, plane.words, plane.count) else plane.count * (1 if is_one_run else columns)
    trips = words * columns * plane.count // runs * WORD_CHANNELS // PAIR_BYTES
    tiles = lanes.tiles_of_channels * ceil(lanes.columns / tile_pixels(lanes.tile_blocks))
    broken = tiles * rows * (runs - 1) * TURN if trips > 1 else 0
    return packets_of_words(lanes, rows * columns * plane.count * words) + broken


def packets_of_words(lanes: PixelLanes, steps: int) -> float:
    """The packets of a row of outputs with 32 channels as lanes that multiply `steps` words under a window."""
    blocks, ending = ceil(lanes.conv.out_channels / CHANNEL_BLOCK), _ending(lanes)
    return lanes.columns * (blocks * (steps / PRODUCTS_OF_PACKET + ending) - _saved(lanes, blocks, ending))


def _saved(lanes: PixelLanes, blocks: int, ending: float) -> float:
    """The packets that narrow blocks of the target save for each pixel.

    Pixels share vectors of the last block's sums, where it fits a narrow one, and then vectors of results, which are
    dealt and stored; an instruction puts two vectors into one. Of other blocks, one more exchanges the channels of 8
    pixels.
    """
    if lanes.unit >= CHANNEL_BLOCK:
        return 0.0
    folds = lanes.conv.out_channels - (blocks - 1) * CHANNEL_BLOCK <= lanes.unit
    left_out = (1 - lanes.unit / CHANNEL_BLOCK) * (ending + MOVED / VECTOR_BLOCKS - 1) if folds else 0.0
    return left_out / ENDINGS_OF_PACKET - (blocks - folds) / EXCHANGED_PIXELS


def _ending(lanes: PixelLanes) -> float:
    """Instructions that narrow a vector of sums, with a fourth of those that narrow four to bytes, or that store it."""
    if lanes.conv.requantize is None:
        return 1
    sequence, _offset = narrowing_of(lanes.conv.requantize, lanes.dtype)
    if not isinstance(sequence, FixedPoint):
        return 1 + TIES * (sequence.halves is not None)
    is_even = sequence.has_halves
    saturated = SATURATING * (sequence.saturates_at is not None)
    return 3 + TIES * is_even + sequence.ties_away + (sequence.shift is None) + (sequence.lift > 0) + saturated
