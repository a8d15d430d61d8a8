"""Words of a depthwise conv with channels as lanes: which words of pixels are multiplied with which taps.

A word holds 4 neighbouring pixels of one channel; a vector holds the words of 32 channels. An output reads one or more
words in a row of its window, and the first of them begins at an even pixel. So a word serves two neighbouring outputs:
the second one multiplies it with weights that are shifted by a pixel.

    stride 1, 3 taps:   pixels 0 1 2 3    output 0: w0 w1 w2 0    output 1: 0 w0 w1 w2
                        pixels 2 3 4 5    output 2: w0 w1 w2 0    output 3: 0 w0 w1 w2

The weights of a row of taps come in variants: by the shift in pixels, and by the number of the word. 3 taps of stride 1
have two variants.

A word that begins in the middle of 4 pixels is put together of two. That takes one instruction where its halves are
turned, 4 5 2 3, since all bytes then stay where they are; but it takes further variants of the weights. So words are
turned where registers hold all variants (`turns_words`):

    stride 2, 3 taps:   pixels 0 1 2 3    output 0: w0 w1 w2 0
                        pixels 4 5 2 3    output 1: w2 0 w0 w1
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from hexconv.spec import Conv2d
from hexconv.spec.extents import REMEMBERED

WORD_PIXELS = 4
TURN = WORD_PIXELS // 2
TILE_PIXELS = 4
"""Neighbouring outputs of a row that are computed together."""
MOST_CARRIED = 5
"""The most vectors of words that stay in registers from a tile to the next one of its row."""
MOST_TURNED = 8
"""The most vectors of taps with which words are turned: more of them would leave too few registers for sums."""


class Variant(NamedTuple):
    """How the weights of a row of taps lie in a word.

    Attributes:
        shift: the pixels by which they are shifted.
        word: the number of the word in the row of taps.
        turned: whether the halves of the word are turned.
    """

    shift: int
    word: int
    turned: bool = False


@dataclass(frozen=True)
class Use:
    """One product of an output: the pixel at which its word begins, counted from the tile's window, and its weights."""

    pixel: int
    variant: Variant

    @property
    def pixels(self) -> tuple[int, ...]:
        """The pixels of the word, in the order of its bytes."""
        return tuple(self.pixel + (byte ^ (TURN if self.variant.turned else 0)) for byte in range(WORD_PIXELS))


def taps_of(conv: Conv2d, variant: Variant) -> Iterator[tuple[int, int]]:
    """Yield (tap, byte of the word) for the taps of a row that lie in the word of a variant."""
    for tap in range(conv.kernel[1]):
        place = variant.shift + tap * conv.dilation[1]
        if place // WORD_PIXELS == variant.word:
            yield tap, place % WORD_PIXELS ^ (TURN if variant.turned else 0)


class Moved(NamedTuple):
    """Part of a variant: the taps that come from one word of the filter, all shifted by as many bytes.

    Attributes:
        word: the number of the word in the row of taps, as it is packed: tap 0 is byte 0 of word 0.
        up: the bytes by which the taps move up; down if it is negative.
        kept: the bytes of the variant that hold these taps, as bits; None where a shift leaves nothing else.
    """

    word: int
    up: int
    kept: int | None


@lru_cache(REMEMBERED)
def moved_words(conv: Conv2d, variant: Variant) -> tuple[Moved, ...]:
    """The words of the filter that a variant is put together of, those that move down first.

    >>> conv = Conv2d(out_channels=8, kernel=(5, 5))
    >>> [tuple(part) for part in moved_words(conv, Variant(1, 1))]
    [(0, -3, None), (1, 1, None)]
    """
    parts: dict[tuple[int, int], int] = {}
    for tap, byte in taps_of(conv, variant):
        word, place = divmod(tap, WORD_PIXELS)
        parts[byte - place, word] = parts.get((byte - place, word), 0) | 1 << byte
    found = []
    for (up, word), wanted in sorted(parts.items()):
        taps = range(min(conv.kernel[1] - word * WORD_PIXELS, WORD_PIXELS))
        there = sum(1 << place + up for place in taps if 0 <= place + up < WORD_PIXELS)
        found.append(Moved(word, up, wanted if there != wanted else None))
    return tuple(found)


def variants(conv: Conv2d) -> tuple[Variant, ...]:
    """All variants of weights that the outputs of a row use, in order.

    >>> [tuple(variant) for variant in variants(Conv2d(out_channels=8, kernel=(5, 5)))]
    [(0, 0, False), (0, 1, False), (1, 0, False), (1, 1, False)]
    >>> [tuple(variant) for variant in variants(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)))]
    [(0, 0, False), (0, 0, True)]
    """
    found = {use.variant for uses in tile_uses(conv, TILE_PIXELS) for use in uses}
    return tuple(sorted(found))


@lru_cache(REMEMBERED)
def tile_uses(conv: Conv2d, pixels: int) -> tuple[tuple[Use, ...], ...]:
    """For each of `pixels` neighbouring outputs, the products of one row of its window."""
    found = _straight_uses(conv, pixels)
    return tuple(tuple(map(_turned, uses)) for uses in found) if turns_words(conv) else found


def turns_words(conv: Conv2d) -> bool:
    """Whether words that begin in the middle of 4 pixels are turned.

    >>> turns_words(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))), turns_words(
    ...     Conv2d(out_channels=8, kernel=(3, 3))
    ... )
    (True, False)
    """
    found = {_turned(use).variant for uses in _straight_uses(conv, TILE_PIXELS) for use in uses}
    return conv.kernel[0] * len(found) <= MOST_TURNED


def _turned(use: Use) -> Use:
    return replace(use, variant=use.variant._replace(turned=use.pixel % WORD_PIXELS != 0))


def _straight_uses(conv: Conv2d, pixels: int) -> tuple[tuple[Use, ...], ...]:
    return tuple(tuple(_uses(conv, pixel * conv.stride[1])) for pixel in range(pixels))


def _uses(conv: Conv2d, start: int) -> Iterator[Use]:
    shift = start % 2
    for word in range((shift + conv.reach[1] - 1) // WORD_PIXELS + 1):
        variant = Variant(shift, word)
        if any(taps_of(conv, variant)):
            yield Use(start - shift + word * WORD_PIXELS, variant)


def quads_read(conv: Conv2d, pixels: int) -> int:
    """The groups of 4 pixels of a row that `pixels` neighbouring outputs read, from the first one's window on.

    >>> quads_read(Conv2d(out_channels=8, kernel=(3, 3)), 8)
    3
    """
    ends = [use.pixel + WORD_PIXELS for uses in tile_uses(conv, pixels) for use in uses]
    return -(-max(ends) // WORD_PIXELS)


@lru_cache(REMEMBERED)
def quads_used(conv: Conv2d, pixels: int) -> tuple[int, ...]:
    """The numbers of the groups of 4 pixels of a row whose words `pixels` neighbouring outputs multiply.

    >>> quads_used(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)), 4)
    (0, 1, 2)
    """
    pixels_read = {use.pixel for uses in tile_uses(conv, pixels) for use in uses}
    quads = {pixel // WORD_PIXELS for pixel in pixels_read}
    return tuple(sorted(quads | {pixel // WORD_PIXELS + 1 for pixel in pixels_read if pixel % WORD_PIXELS}))


@lru_cache(REMEMBERED)
def carried_quads(conv: Conv2d) -> tuple[int, ...]:
    """The groups of 4 pixels whose words a tile takes over from the tile before it, in registers.

    Tiles of convs whose words aren't turned load all of their words: these convs need the registers for taps.

    >>> carried_quads(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))), carried_quads(
    ...     Conv2d(out_channels=8, kernel=(3, 3))
    ... )
    ((0,), ())
    """
    used = quads_used(conv, TILE_PIXELS)
    found = tuple(quad for quad in used if quad + conv.stride[1] in used)
    return found if turns_words(conv) and conv.kernel[0] * len(found) <= MOST_CARRIED else ()


@lru_cache(REMEMBERED)
def words_of_row(conv: Conv2d, pixels: int) -> tuple[Use, ...]:
    """The words of a row of the source that `pixels` neighbouring outputs multiply, each once.

    >>> [use.pixel for use in words_of_row(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)), 4)]
    [0, 2, 4, 6]
    """
    found = {use.pixel: use for uses in tile_uses(conv, pixels) for use in uses}
    return tuple(found[pixel] for pixel in sorted(found))
