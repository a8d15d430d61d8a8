"""Load the taps of a depthwise conv, in all variants (`hexconv.kernel.depthwise_words`), and multiply them.

A variant is a word of the filter as it lies, or one whose bytes are shifted. So registers get all variants from one
load of each word, and no memory holds them. What is no tap is 0 in the filter.

    5 taps     w0 w1 w2 w3 | w4 0 0 0      becomes, for every second output,      0 w0 w1 w2 | w3 w4 0 0
"""

from collections.abc import Mapping, Sequence

from tvm import tirx

from hexconv.kernel.depthwise_words import WORD_PIXELS, Moved, Variant, moved_words, taps_of, variants
from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.lower.hvx import across, dots, vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.schedule.block import Block, Number

Taps = Mapping[tuple[int, Variant], tirx.Expr]
"""Vectors of taps by (row of taps, variant)."""


def loaded_taps(block: Block, conv: InnerConv, filter: tirx.Var, byte: Number) -> Taps:
    """Load all taps of 32 channels, which begin at byte `byte` of the filter cache."""
    spec, found = conv.spec, dict[tuple[int, Variant], tirx.Expr]()
    base, words_of_row = block.bind("of_block", byte), -(-spec.kernel[1] // WORD_PIXELS)
    rows = range(spec.kernel[0])
    places = [[base + (row * words_of_row + word) * VECTOR_BYTES for word in range(words_of_row)] for row in rows]
    words = [[block.bind("tap", vector.load(filter, place), vector.VECTOR) for place in of_row] for of_row in places]
    for row in rows:
        for variant in variants(spec):
            value = _assembled(words[row], moved_words(spec, variant))
            found[row, variant] = block.bind("tap", vector.moved(value), vector.VECTOR)
    return found


def _assembled(words: Sequence[tirx.Expr], parts: Sequence[Moved]) -> tirx.Expr:
    """Put a variant together of words of the filter."""
    first, *others = parts
    value = _moved(words[first.word], first)
    for part in others:
        if part.up > 0 and part.kept is None:
            value = vector.shift_left_add(value, words[part.word], 8 * part.up)
        else:
            value = tirx.bitwise_or(value, _moved(words[part.word], part))
    return value


def _moved(word: tirx.Expr, part: Moved) -> tirx.Expr:
    """Shift the bytes of a word, and keep those that the variant has of it."""
    if part.up:
        bits = 8 * abs(part.up)
        word = vector.shift_left(word, bits) if part.up > 0 else vector.shift_right_logical(word, bits)
    return word if part.kept is None else tirx.bitwise_and(word, _bytes(part.kept, 0xFF))


def _bytes(there: int, value: int) -> tirx.Expr:
    """Return a word, in every lane, that has `value` in the bytes that `there` has bits for."""
    word = sum(value << 8 * byte for byte in range(WORD_PIXELS) if there >> byte & 1)
    return vector.splat(vector.signed(word))


def twice(block: Block, taps: Taps) -> Taps:
    """Put the taps of the first 16 channels into both halves of each vector."""
    return {name: across.twice(block, value) for name, value in taps.items()}


def add_product(
    block: Block, conv: InnerConv, total: tirx.Expr, words: tirx.Expr, taps: tirx.Expr, variant: Variant
) -> tirx.Expr:
    """Add to `total` the products of one word in every lane, corrected for the zero point of the filter."""
    signed = conv.filter_is_signed
    value = block.bind("sum", dots.dot4_of_vectors(total, words, taps, conv.is_signed, signed), vector.VECTOR)
    if not conv.filter_zero:
        return value
    there = sum(1 << byte for _, byte in taps_of(conv.spec, variant))
    zeros = _bytes(there, -conv.filter_zero & 0xFF)
    return block.bind("sum", dots.dot4_of_vectors(value, words, zeros, conv.is_signed, True), vector.VECTOR)
