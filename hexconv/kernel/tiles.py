"""Cut a row of outputs into tiles of sums in registers, and say which of their channel blocks go together."""

from functools import lru_cache
from math import ceil, gcd

from hexconv.spec import Chain, Conv2d, Extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.narrowing import MADE_UNSIGNED, SATURATING, FixedPoint, narrowing_of

BYTES = ("uint8", "int8")
WORD_BYTES = 4
WORD_CHANNELS = 4
PAIR_BYTES = 8
"""The bytes of a pixel that one load fetches: two words."""
VECTOR_BYTES = 128
LANES = 32
"""The words of a vector."""
VECTOR_BLOCKS = 4
"""Blocks of 32 channels of pixels in a vector."""
HALF_BLOCK, QUARTER_BLOCK = 16, 8
"""The channels of narrow blocks that tiles of channels make."""
MOST_BLOCKS = 4
"""Blocks of output channels that a tile of sums in registers has at most."""
FEW_BLOCKS = 2
"""Tiles of this many blocks of output channels or fewer have 8 pixels, all others have 4."""
FIRST_WORDS = 2
"""The words of a tile that are multiplied while the tile before it is narrowed."""
FEW_TILES = 4
"""A row of this many tiles or fewer, of one block of channels, doesn't overlap its tiles."""
SHORT_WORDS = 128
"""The most words of a window for which overlapping tiles pays: in longer ones their start and end hardly count."""
PRODUCTS_OF_PACKET = 2
ENDINGS_OF_PACKET = 2
"""Instructions of the end of a tile that fit a packet: what is left out of them counts as it runs."""
MOVED = 3
"""Instructions that deal and store a vector of results."""
EXCHANGED_PIXELS = 8
"""Pixels whose channels an instruction exchanges where narrow blocks are made of whole ones."""
TIES = 3
"""Instructions that subtract one from sums half way above an even result."""


def tile_blocks(k_split: int) -> int:
    """Blocks of output channels in a tile of sums: at most 4, so that the tiles of a step are nearly equal.

    >>> [tile_blocks(k_split) for k_split in (1, 4, 5, 8)]
    [1, 4, 3, 4]
    """
    return ceil(k_split / ceil(k_split / MOST_BLOCKS))


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile of `blocks` blocks of channels: at most 16 sums.

    >>> [tile_pixels(blocks) for blocks in (1, 2, 3, 4)]
    [8, 8, 4, 4]
    """
    return 8 if blocks <= FEW_BLOCKS else 4


def interleaved_blocks(out_blocks: int, k_split: int) -> int:
    """Blocks of output channels that lie side by side in a filter: the most that divide a tile and all of them.

    >>> [interleaved_blocks(4, 4), interleaved_blocks(6, 4), interleaved_blocks(3, 8), interleaved_blocks(12, 6)]
    [4, 2, 3, 3]
    """
    split = min(k_split, out_blocks)
    return gcd(gcd(out_blocks, split), tile_blocks(split))


def narrowed_blocks(out_blocks: int, k_split: int) -> int:
    """Blocks of output channels that tiles narrow to one vector: as many as divide a tile and a vector.

    >>> [narrowed_blocks(4, 4), narrowed_blocks(6, 4), narrowed_blocks(3, 8), narrowed_blocks(4, 1)]
    [4, 2, 1, 1]
    """
    return gcd(interleaved_blocks(out_blocks, k_split), VECTOR_BLOCKS)


def makes_blocks(unit: int, out_channels: int, blocks: int) -> bool:
    """Whether tiles of channels as lanes make blocks of `unit` channels without more stores than wide blocks take.

    A tile of 8 pixels fills vectors of 8 pixels of 16 channels; a vector that holds 16 pixels of 8 channels is filled
    half, instead of 2 vectors of wide blocks, where a tile has no channels but these.

    Args:
        unit: the channels that lie together.
        out_channels: the logical channels.
        blocks: blocks of output channels of a tile.

    >>> [makes_blocks(unit, 8, 1) for unit in (4, 8, 16, 32)], makes_blocks(8, 24, 1), makes_blocks(16, 112, 4)
    ([False, True, True, True], False, False)
    """
    if unit >= CHANNEL_BLOCK:
        return True
    return tile_pixels(blocks) == 2 * VECTOR_BLOCKS and (unit == HALF_BLOCK or out_channels <= unit == QUARTER_BLOCK)


def overlaps_tiles(rows: int, planes: int, words: int, blocks: int, tiles: int) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed.

    It pays where a reduction is short, and is possible where a reduction is one run of words. The first tile of a row
    has no tile before it to overlap with: a row of few tiles of one block of channels gains too little.

    Args:
        rows: rows of taps.
        planes: planes of channels, which don't lie side by side.
        words: words that a window multiplies.
        blocks: blocks of output channels of a tile.
        tiles: tiles in a row.
    """
    few = FEW_TILES if blocks == 1 else 1
    return rows == planes == 1 and tiles > few and FIRST_WORDS < words <= SHORT_WORDS


def multiplied_words(channels: int, pixel_words: int, planes: int) -> int:
    """Words of a pixel that tiles multiply: with one plane, only pairs of words that hold a channel; else all words.

    Args:
        channels: the logical channels.
        pixel_words: the words of 4 channels in a stored pixel.
        planes: planes of channels, which don't lie side by side.

    >>> [multiplied_words(channels, 8, 1) for channels in (3, 12, 24, 32)], multiplied_words(40, 8, 2)
    ([2, 4, 6, 8], 8)
    """
    pairs = ceil(channels / PAIR_BYTES)
    return pixel_words if planes > 1 else min(pixel_words, pairs * (PAIR_BYTES // WORD_CHANNELS))


def joins_planes(columns: int, pixel_words: int, planes: int) -> bool:
    """Whether the words that a window of one column multiplies in narrow blocks are one run, from plane to plane.

    Args:
        columns: columns of taps.
        pixel_words: the words of 4 channels in a stored pixel of a plane.
        planes: planes of channels, which don't lie side by side.
    """
    return columns == 1 and planes > 1 and pixel_words < CHANNEL_BLOCK // WORD_CHANNELS


def has_vector_rows(pixel_bytes: int, columns: int) -> bool:
    """Whether rows are whole vectors of 128 bytes, and vectors hold whole pixels or pixels hold whole vectors.

    >>> [has_vector_rows(8, 16), has_vector_rows(8, 17), has_vector_rows(256, 3), has_vector_rows(40, 16)]
    [True, False, True, False]
    """
    fits = VECTOR_BYTES % pixel_bytes == 0 or pixel_bytes % VECTOR_BYTES == 0
    return fits and columns * pixel_bytes % VECTOR_BYTES == 0


def splats_serve(row_bytes: int, filter_zero: int, sums_windows_ahead: bool) -> bool:
    """Whether a conv can multiply splats (a word in all lanes): rows are whole vectors, and tiles sum no windows."""
    return row_bytes % VECTOR_BYTES == 0 and (filter_zero == 0 or sums_windows_ahead)


def unsigned_zero(chain: Chain, index: int) -> int:
    """Return the zero point that the filter of conv `index` has as uint8."""
    return chain.conv[index].filter_zero_point + (MADE_UNSIGNED if chain.dtype_of_filters == "int8" else 0)


def filled_columns(extents: Extents, pixels: int) -> list[int]:
    """The columns at which vectors of the fringe are stored in a row in narrow blocks, of which `pixels` are a vector.

    Stores of results cover whole vectors from the first logical column on. What else is stored is padding.

    >>> filled_columns(Extents(1, 8, 70, 12, top=1, left=1, logical_rows=6, logical_columns=68), 32)
    [0]
    >>> filled_columns(Extents(1, 8, 100, 12, top=1, left=1, logical_rows=6, logical_columns=68), 32)
    [0, 96]
    """
    first, end = extents.valid_columns
    reached = first + ceil((end - first) / pixels) * pixels
    return [at for at in range(0, extents.columns, pixels) if at < first or min(at + pixels, extents.columns) > reached]


def packets_of_words(conv: Conv2d, dtype: str, columns: int, unit: int, steps: int) -> float:
    """Estimate the packets of a row of outputs with 32 channels as lanes that multiply `steps` words under a window.

    Two products fit a packet, or one of anything else.

    Args:
        conv: the conv.
        dtype: the dtype of what it makes.
        columns: the columns of a row of outputs.
        unit: the channels that lie together in its target.
        steps: words under a window.
    """
    blocks, ending = ceil(conv.out_channels / CHANNEL_BLOCK), ending_instructions(conv, dtype)
    return columns * (blocks * (steps / PRODUCTS_OF_PACKET + ending) - _saved(conv, unit, blocks, ending))


def _saved(conv: Conv2d, unit: int, blocks: int, ending: float) -> float:
    """The packets that narrow blocks of the target save for each pixel.

    Pixels share vectors of the last block's sums, where it fits a narrow one, and then vectors of results, which are
    dealt and stored; an instruction puts two vectors into one. Of other blocks, one more exchanges the channels of 8
    pixels.
    """
    if unit >= CHANNEL_BLOCK:
        return 0.0
    folds = conv.out_channels - (blocks - 1) * CHANNEL_BLOCK <= unit
    left_out = (1 - unit / CHANNEL_BLOCK) * (ending + MOVED / VECTOR_BLOCKS - 1) if folds else 0.0
    return left_out / ENDINGS_OF_PACKET - (blocks - folds) / EXCHANGED_PIXELS


@lru_cache(REMEMBERED)
def ending_instructions(conv: Conv2d, dtype: str) -> float:
    """Instructions that narrow a vector of sums, with a fourth of those that narrow four to bytes, or that store it."""
    if conv.requantize is None:
        return 1
    sequence, _offset = narrowing_of(conv.requantize, dtype)
    if not isinstance(sequence, FixedPoint):
        return 1 + TIES * (sequence.halves is not None)
    is_even = sequence.has_halves
    saturated = SATURATING * (sequence.saturates_at is not None)
    return 3 + TIES * is_even + sequence.ties_away + (sequence.shift is None) + (sequence.lift > 0) + saturated
