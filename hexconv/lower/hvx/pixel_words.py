"""Load words of weights where lanes are pixels, and store results: vectors of words become vectors of pixels."""

from collections.abc import Callable, Sequence
from math import ceil

from tvm import tirx

from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.lower.hvx import across, vector
from hexconv.lower.hvx.target import Target, kept, store_vector
from hexconv.schedule.block import Block, Number


def weights_of(block: Block, words: tirx.Var, byte: tirx.Expr, channels: Sequence[int]) -> list[tirx.Expr]:
    """Load the words of some output channels, two at a time; the first channel is even."""
    found: list[tirx.Expr] = []
    for channel in channels[::2]:
        pair = vector.doubleword(words, byte + channel * WORD_CHANNELS)
        found += vector.halves(block.bind("weights", pair, "int64"))
    return found[: len(channels)]


def with_fringe(words: tirx.Expr, fringe: int, channels: int) -> tirx.Expr:
    """Keep the first `channels` bytes of each word, and put the fringe into the others."""
    if channels == WORD_CHANNELS:
        return words
    there = (1 << 8 * channels) - 1
    kept_words = tirx.bitwise_and(words, vector.splat(there))
    others = (fringe & 0xFF) * 0x01010101 & ~there
    return tirx.bitwise_or(kept_words, vector.splat(vector.signed(others))) if fringe else kept_words


def store_pixels(
    block: Block,
    target: Target,
    element: Callable[[Number], Number],
    column: Number,
    words: Sequence[tirx.Expr | None],
    pixels: int,
) -> None:
    """Store the results of up to 32 pixels from a stored column on, given as words of all channels that lie together.

    `element` returns where these channels of a stored column begin.
    """
    together, fringe = target.conv.units.together, vector.splat(vector.signed((target.conv.fringe & 0xFF) * 0x01010101))
    shuffled, most = _shuffled(block, words, fringe), target.vector_pixels
    for number in range(ceil(pixels / most)):
        value, there = shuffled[number], min(pixels - number * most, most)
        assert value is not None, "some channel is there"
        ordered = kept(target.conv, value, [together] * there, together)
        store_vector(block, target, element(column + number * most), ordered)


def _shuffled(block: Block, words: Sequence[tirx.Expr | None], fringe: tirx.Expr) -> list[tirx.Expr | None]:
    """Turn vectors of words, one word a pixel, into vectors of pixels with all of their words.

    None stands for a vector that holds nothing but the fringe.
    """
    if len(words) == 1:
        return list(words)
    found: list[tirx.Expr | None] = []
    halves = (_shuffled(block, words[::2], fringe), _shuffled(block, words[1::2], fringe))
    for even, odd in zip(*halves, strict=True):
        if even is None and odd is None:
            found += [None, None]
            continue
        low, high = (fringe if value is None else value for value in (even, odd))
        pair = block.bind("shuffled", across.shuffle_words(high, low), "int32x64")
        found += [across.lower(pair), across.upper(pair)]
    return found
