"""Load the operands of a tile: words of activations, vectors of filters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.lower.hvx import vector
from hexconv.lower.hvx.tile import Tile
from hexconv.schedule.block import Block, Number

Words = Sequence[Sequence[tirx.Expr]]
"""[pixel][word of the step]."""


@dataclass(frozen=True)
class Operands:
    """The places of a tile's operands.

    Attributes:
        source: the activations, flat.
        row: byte of the source where the r-th row of taps of the tile's row begins.
        filter: the filter cache, flat.
        filter_byte: where the tile's first block begins.
    """

    source: tirx.Buffer
    row: Callable[[Block, tirx.Expr], tirx.Expr]
    filter: tirx.Buffer
    filter_byte: Number


def words_of(block: Block, tile: Tile, operands: Operands, byte: tirx.Expr) -> Words:
    """Load two words of every pixel."""
    apart = tile.conv.spec.stride[1] * tile.conv.plane.pixel_bytes
    loads = [vector.doubleword(operands.source, byte + pixel * apart) for pixel in range(tile.pixels)]
    return [vector.halves(pair) for pair in [block.bind("words", load, "int64") for load in loads]]


def weights_of(tile: Tile, operands: Operands, step: tirx.Expr, part: int) -> tirx.Expr:
    """Load a vector of the filter: 4 weights for each of 32 output channels."""
    conv = tile.conv
    group, lane = divmod(part, conv.side_by_side)
    byte = operands.filter_byte + group * conv.group_bytes
    return vector.load(operands.filter, byte + (step * conv.side_by_side + lane) * VECTOR_BYTES)
