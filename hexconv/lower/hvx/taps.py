"""Lay out the taps of a depthwise conv once in scratch, in all variants (`hexconv.kernel.depthwise_words`).

Their zero point decides whether they are signed. With a zero point of 128, which int8 filters have, taps are signed and
nothing is left to correct. With 0 they are unsigned. Any other zero point takes one more product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.depthwise_words import WORD_PIXELS, Variant, taps_of, variants
from hexconv.kernel.hvx.tiles import MADE_UNSIGNED
from hexconv.lower.hvx import across, dots, vector
from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv
from hexconv.schedule.block import Block, Number
from hexconv.spec.names import numbered

Taps = Mapping[tuple[int, Variant], tirx.Expr]
"""Vectors of taps by (row of taps, variant)."""


def taps_memory(conv: InnerConv, scope: str) -> tirx.Buffer | None:
    """Allocate the scratch for all variants of a depthwise conv's taps; None for other convs."""
    if conv.depthwise is None:
        return None
    elements = conv.out_blocks * _block_bytes(conv)
    return tirx.decl_buffer(
        (elements,), "uint8", numbered("taps", conv.number), scope=scope, data_alignment=VECTOR_BYTES
    )


@dataclass(frozen=True)
class Stored:
    """Where taps come from, and where they are laid out.

    Attributes:
        memory: the scratch.
        filter: the filter cache.
        filter_byte: the byte of the filter cache where the step's channels begin.
        block: the first block of 32 channels of the step.
    """

    memory: tirx.Buffer
    filter: tirx.Var
    filter_byte: tirx.Expr
    block: tirx.Expr


def stage_taps(block: Block, conv: InnerConv, stored: Stored, blocks: int) -> None:
    """Lay out the taps of `blocks` blocks of channels."""

    def one(at: Block, part: tirx.Expr) -> None:
        _lay_out(at, conv, stored, at.bind("byte", stored.filter_byte + part * conv.group_bytes), stored.block + part)

    block.loop("block", blocks, one)


def _lay_out(block: Block, conv: InnerConv, stored: Stored, byte: Number, at: Number) -> None:
    """Lay out the taps of block `at` of channels, from byte `byte` of the filter on."""
    spec = conv.depthwise
    assert spec
    words_of_row = -(-spec.kernel[1] // WORD_PIXELS)
    for row in range(spec.kernel[0]):
        places = [byte + (row * words_of_row + word) * VECTOR_BYTES for word in range(words_of_row)]
        words = [block.bind("stored", vector.load(stored.filter, place), vector.VECTOR) for place in places]
        for place, variant in enumerate(variants(spec)):
            value = _assembled(words, list(taps_of(spec, variant)), _is_signed(conv))
            target = at * _block_bytes(conv) + (row * len(variants(spec)) + place) * VECTOR_BYTES
            block.store(stored.memory, vector.at(target), vector.stored(value))


def _assembled(words: Sequence[tirx.Expr], places: Sequence[tuple[int, int]], signed: bool) -> tirx.Expr:
    """Put each tap of a variant into its byte, and zero into the other bytes."""
    value, there = vector.splat(0), 0
    for tap, byte in places:
        apart = 8 * (byte - tap % WORD_PIXELS)
        moved = words[tap // WORD_PIXELS]
        moved = vector.shift_left(moved, apart) if apart > 0 else vector.shift_right(moved, -apart) if apart else moved
        value = tirx.bitwise_or(value, tirx.bitwise_and(moved, _bytes(1 << byte, 0xFF)))
        there |= 1 << byte
    return tirx.bitwise_xor(value, _bytes(there, MADE_UNSIGNED)) if signed else value


def _bytes(there: int, value: int) -> tirx.Expr:
    """Return a word, in every lane, that has `value` in the bytes that `there` has bits for."""
    word = sum(value << 8 * byte for byte in range(WORD_PIXELS) if there >> byte & 1)
    return vector.splat(vector.signed(word))


def taps_zero(conv: InnerConv) -> int:
    """Return the zero point that taps still have after they are laid out."""
    return conv.filter_zero - MADE_UNSIGNED if _is_signed(conv) else 0


def loaded_taps(block: Block, conv: InnerConv, memory: tirx.Buffer, at: Number) -> Taps:
    """Load all taps of 32 channels."""
    assert conv.depthwise
    named = [(row, variant) for row in range(conv.kernel[0]) for variant in variants(conv.depthwise)]
    base = block.bind("of_block", at * _block_bytes(conv))
    return {
        name: block.bind("tap", vector.load(memory, base + place * VECTOR_BYTES), vector.VECTOR)
        for place, name in enumerate(named)
    }


def twice(block: Block, taps: Taps) -> Taps:
    """Put the taps of the first 16 channels into both halves of each vector."""
    return {name: across.twice(block, value) for name, value in taps.items()}


def add_product(
    block: Block, conv: InnerConv, total: tirx.Expr, words: tirx.Expr, taps: tirx.Expr, variant: Variant
) -> tirx.Expr:
    """Add to `total` the products of one word in every lane, corrected for the zero point that taps still have."""
    signed = _is_signed(conv)
    value = block.bind("sum", dots.dot4_of_vectors(total, words, taps, conv.is_signed, signed), vector.VECTOR)
    if not (zero := taps_zero(conv)):
        return value
    assert conv.depthwise
    there = sum(1 << byte for _, byte in taps_of(conv.depthwise, variant))
    zeros = _bytes(there, -zero & 0xFF)
    return block.bind("sum", dots.dot4_of_vectors(value, words, zeros, conv.is_signed, True), vector.VECTOR)


def _is_signed(conv: InnerConv) -> bool:
    """Whether taps are laid out as signed bytes."""
    return conv.filter_zero != 0


def _block_bytes(conv: InnerConv) -> int:
    """Count the bytes of the taps of 32 channels."""
    assert conv.depthwise
    return conv.kernel[0] * len(variants(conv.depthwise)) * VECTOR_BYTES
