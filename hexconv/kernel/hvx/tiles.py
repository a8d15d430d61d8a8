"""How a row of outputs is cut into tiles of sums in registers, and what of them goes together."""

from math import ceil, gcd

PAIR_BYTES = 8
"""Of the words of a pixel that are loaded together."""
WORD_CHANNELS = 4
VECTOR_BYTES = 128
VECTOR_BLOCKS = 4
"""Blocks of 32 channels of pixels in a vector."""
MOST_BLOCKS = 4
"""Blocks of output channels that a tile of sums in registers has at most."""
FEW_BLOCKS = 2
"""Tiles of so few blocks of output channels are of eight pixels, all others of four."""
FIRST_WORDS = 2
"""Of a tile, that are multiplied while the tile before it is narrowed."""
FEW_TILES = 4
"""Of one block of channels, in a row."""
SHORT_WORDS = 128
"""Under a window whose tiles' start and end count."""


def tile_blocks(k_split: int) -> int:
    """Blocks of output channels in a tile of sums: at most 4, as even as a step's come.

    >>> [tile_blocks(k_split) for k_split in (1, 4, 5, 8)]
    [1, 4, 3, 4]
    """
    return ceil(k_split / ceil(k_split / MOST_BLOCKS))


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile: as many as make 12 or 16 sums.

    >>> [tile_pixels(blocks) for blocks in (1, 2, 3, 4)]
    [8, 8, 4, 4]
    """
    return 8 if blocks <= FEW_BLOCKS else 4


def interleaved_blocks(out_blocks: int, k_split: int) -> int:
    """Blocks of output channels that lie side by side in a filter: a tile's, where these divide all there are.

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


def overlaps_tiles(rows: int, planes: int, words: int, blocks: int, tiles: int) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed.

    Worth it where a reduction is short; possible where it is one run of words. The first words of a row's first tile
    have no tile before them: tiles of one block of channels have too little else to do if they are few.

    Args:
        rows: of taps.
        planes: of channels that don't lie side by side.
        words: under a window.
        blocks: of output channels of a tile.
        tiles: in a row.
    """
    few = FEW_TILES if blocks == 1 else 1
    return rows == planes == 1 and tiles > few and FIRST_WORDS < words <= SHORT_WORDS


def multiplied_words(channels: int, pixel_words: int, planes: int) -> int:
    """Words of a pixel that tiles multiply: pairs with a channel in them, where a pixel has all of its channels.

    Args:
        channels: logical.
        pixel_words: of 4 channels, as a pixel lies.
        planes: of channels that don't lie side by side.

    >>> [multiplied_words(channels, 8, 1) for channels in (3, 12, 24, 32)], multiplied_words(40, 8, 2)
    ([2, 4, 6, 8], 8)
    """
    pairs = ceil(channels / PAIR_BYTES)
    return pixel_words if planes > 1 else min(pixel_words, pairs * (PAIR_BYTES // WORD_CHANNELS))


def has_vector_rows(pixel_bytes: int, columns: int) -> bool:
    """Whether vectors of 128 bytes hold whole pixels, or pixels whole vectors, and rows are whole vectors.

    >>> [has_vector_rows(8, 16), has_vector_rows(8, 17), has_vector_rows(256, 3), has_vector_rows(40, 16)]
    [True, False, True, False]
    """
    fits = VECTOR_BYTES % pixel_bytes == 0 or pixel_bytes % VECTOR_BYTES == 0
    return fits and columns * pixel_bytes % VECTOR_BYTES == 0


def splats_serve(row_bytes: int, filter_zero: int, sums_windows_ahead: bool) -> bool:
    """Whether a conv can multiply splats of its source: its rows are whole vectors, and tiles sum no windows."""
    return row_bytes % VECTOR_BYTES == 0 and (filter_zero == 0 or sums_windows_ahead)
