"""Multiply vectors only: load 32 words of activations at a time, and spread each word over all lanes of a vector.

So no scalar load reads a cache: scalar loads from VTCM are slow. `hexconv.lower.hvx.reduce` multiplies scalar words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tvm import tirx

from hexconv.kernel.hvx.tiles import PAIR_BYTES, VECTOR_BYTES
from hexconv.lower.hvx import across, dots, vector
from hexconv.lower.hvx.operands import Operands, weights_of
from hexconv.lower.hvx.passes import Pass
from hexconv.lower.hvx.tile import Tile, put, trips, value_in
from hexconv.schedule.block import Block, int32, vector_register


@dataclass(frozen=True)
class Splats:
    """A run of words under the windows of a tile's pixels, and the filter vectors that multiply them.

    Attributes:
        operands: the operands of the tile.
        over: the pass over the window.
        byte: the byte of the first pixel's first word.
        step: the first filter vector.
    """

    operands: Operands
    over: Pass
    byte: tirx.Expr
    step: tirx.Expr


def reduce_splats(block: Block, tile: Tile, splats: Splats, words: int) -> None:
    """Add the products of a run of words; load 32 words of each pixel at a time, and splat each."""
    whole, rest = divmod(words, vector.WORDS)

    def some(at: Block, number: tirx.Expr, count: int) -> None:
        start = at.bind("start", splats.byte + number * vector.BYTES)
        apart = tile.conv.spec.stride[1] * tile.conv.plane.pixel_bytes
        held = [vector_register(at, f"words{pixel}") for pixel in range(tile.pixels)]
        for pixel, register in enumerate(held):
            put(at, register, _vector_from(at, splats.operands.source, start + pixel * apart))
        first = splats.step + number * vector.WORDS
        ways = [at.bind("way", across.way_to_word(half), vector.VECTOR) for half in range(2)]
        at.loop(
            "pair", trips(count // 2, tile.blocks), lambda inner, pair: add_pair(inner, held, ways, first + pair * 2)
        )

    def add_pair(at: Block, held: Sequence[tirx.Buffer], ways: Sequence[tirx.Expr], step: tirx.Expr) -> None:
        for half, way in enumerate(ways):
            spread = [at.bind("splat", across.spread(value_in(register), way), vector.VECTOR) for register in held]
            for part in range(tile.blocks):
                weights = at.bind("weights", weights_of(tile, splats.operands, step + half, part), vector.VECTOR)
                for pixel, register in enumerate(row[part] for row in tile.sums):
                    total, signed = value_in(register), splats.over.is_signed
                    put(at, register, dots.dot4_of_vectors(total, weights, spread[pixel], False, signed))
        for register in held:
            put(at, register, across.rotated(value_in(register), PAIR_BYTES))

    block.loop("chunk", whole, lambda at, number: some(at, number, vector.WORDS))
    if rest:
        some(block, int32(whole), rest)


def _vector_from(block: Block, source: tirx.Buffer, byte: tirx.Expr) -> tirx.Expr:
    """Load 128 bytes from a word on, out of two vectors; bytes past the end of the source come from its last vector."""
    last = prod(int(size) for size in source.shape) // VECTOR_BYTES - 1
    first = block.bind("aligned", tirx.floordiv(byte, int32(VECTOR_BYTES)))
    low = vector.load(source, first * VECTOR_BYTES)
    high = vector.load(source, tirx.min(first + 1, int32(last)) * VECTOR_BYTES)
    return across.aligned(high, low, byte)
