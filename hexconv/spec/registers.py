"""Vector registers of the host, and the shape of the tile of sums that they hold.

A tile is `pixels` of a row by `vectors` of output channels. For one input channel of one tap it loads `vectors` vectors
of the filter, broadcasts `pixels` activations, and does `pixels * vectors` multiply-adds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hexconv.spec.plan import Simd

LOADS_PER_CYCLE = 2
MULTIPLY_ADDS_PER_CYCLE = 2
MULTIPLY_ADD_CYCLES = (
    6  # from one addition to a sum to the next: 4 for the instruction, and what units wait for operands
)
MOST_VECTORS = 4
BROADCASTS = 1  # registers for activations
ELEMENT_BYTES = 4

Tiles = Sequence[tuple[int, int, int]]
"""(how many, pixels, vectors)."""


@dataclass(frozen=True)
class Registers:
    """Registers of one instruction set: float32 lanes of each, and how many there are."""

    lanes: int
    count: int


SETS = {"avx512": Registers(16, 32), "avx2": Registers(8, 16)}
CPU_FLAGS = Path("/proc/cpuinfo")


def registers_of(simd: Simd) -> Registers:
    """The registers that a plan asks for, or this machine's; tiles for either run on any machine, but not as fast."""
    return SETS[_machine() if simd == "auto" else simd]


@cache
def _machine() -> Simd:
    """The widest that Linux says this processor has; where nothing says so, AVX2."""
    flags = CPU_FLAGS.read_text(errors="replace").split() if CPU_FLAGS.exists() else []
    return "avx512" if "avx512f" in flags else "avx2"


@dataclass(frozen=True)
class TileShape:
    """Pixels in a row by vectors of output channels."""

    pixels: int
    vectors: int


def tile_shape(registers: Registers, columns: int, vectors: int) -> TileShape:
    """The tile for rows of `columns` pixels of `vectors` vectors.

    The one that takes the fewest cycles: what multiply-adds, loads and the latency of a sum each need per product, the
    longest of them. Of these, the one with the fewest loads. Where the filter lies doesn't matter: read from first to
    last vector, it arrives from the second-level cache as fast as from the first.

    >>> zmm, ymm = Registers(16, 32), Registers(8, 16)
    >>> tile_shape(zmm, 64, 8), tile_shape(ymm, 60, 16)
    (TileShape(pixels=6, vectors=4), TileShape(pixels=6, vectors=2))
    """

    def cost(shape: TileShape) -> tuple[float, int]:
        tiles = _tiles(shape, columns, vectors)
        return _cycles(tiles), _loads(tiles)

    return min((_shape(registers, columns, most) for most in range(1, min(vectors, MOST_VECTORS) + 1)), key=cost)


def split_evenly(size: int, most: int) -> tuple[tuple[int, int], ...]:
    """`size` in as few parts of at most `most` as there can be, as even as they come: (parts, size of each).

    >>> split_evenly(62, 14), split_evenly(64, 16), split_evenly(5, 8)
    (((2, 13), (3, 12)), ((4, 16),), ((1, 5),))
    """
    parts = math.ceil(size / most)
    small, larger = divmod(size, parts)
    return tuple((count, part) for count, part in ((larger, small + 1), (parts - larger, small)) if count)


def _shape(registers: Registers, columns: int, vectors: int) -> TileShape:
    """The tile of so many vectors, as wide as a row lets it be with the registers that are left."""
    most = (registers.count - vectors - BROADCASTS) // vectors
    return TileShape(split_evenly(columns, most)[0][1], vectors)


def _tiles(shape: TileShape, columns: int, vectors: int) -> Tiles:
    """All tiles of a row."""
    return [
        (count * groups, pixels, part)
        for count, pixels in split_evenly(columns, shape.pixels)
        for groups, part in split_evenly(vectors, shape.vectors)
    ]


def _loads(tiles: Tiles) -> int:
    """Loads per product."""
    return sum(count * (pixels + part) for count, pixels, part in tiles)


def _cycles(tiles: Tiles) -> float:
    """Cycles per product."""
    return sum(count * _tile_cycles(pixels, part) for count, pixels, part in tiles)


def _tile_cycles(pixels: int, vectors: int) -> float:
    loads = (pixels + vectors) / LOADS_PER_CYCLE
    return max(pixels * vectors / MULTIPLY_ADDS_PER_CYCLE, loads, MULTIPLY_ADD_CYCLES)
