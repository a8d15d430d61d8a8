"""Cut the output of a conv on the host into tiles of sums that stay in registers.

A tile is `pixels` by `vectors` of output channels. For one input channel of one tap it loads `vectors` vectors of the
filter, broadcasts `pixels` activations, and does `pixels * vectors` multiply-adds.

Rows that are no multiple of a tile can be cut in two ways: alone, into tiles that are nearly as wide, or together with
the rows below. In the second way, the columns that whole tiles leave are cut into tiles that span several rows and have
as many pixels:

    62 columns of 6 pixels a tile:  alone 7 * 6 + 4 * 5 in every row;  in threes 10 * 6 in every row and 2 * 3 in all

Smaller tiles have too few sums to keep a core's units busy; so the second way pays where there are few registers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.host.registers import Registers

MULTIPLY_ADDS_PER_CYCLE = 2
MULTIPLY_ADD_CYCLES = 4  # latency from one addition to the next one to the same sum
NEARNESS = 6  # how much two such limits that are near each other add up: measured, 4 and 4 cycles make 4.5
LOADS_PER_CYCLE = 1.6  # of 2 units, measured with tiles of one vector

MOST_VECTORS = 4
MOST_PIXELS = 12  # more sums gain nothing
BROADCASTS = 1  # registers for activations
MOST_ROWS = 8  # of a stripe; some have more

Tiles = Sequence[tuple[int, int, int]]
"""Tiles as (number of tiles, pixels of each, vectors of each)."""


@dataclass(frozen=True)
class Tiling:
    """How rows of an output are cut.

    Attributes:
        columns: the columns of a row.
        pixels: the most pixels of a tile.
        vectors: the most vectors of output channels of a tile.
        rows: the number of rows that are cut together; 1 where each row is cut alone.
    """

    columns: int
    pixels: int
    vectors: int
    rows: int = 1

    @property
    def alone(self) -> tuple[tuple[int, int], ...]:
        """(tiles, pixels of each) of a row that is cut alone, from the left on."""
        return split_evenly(self.columns, self.pixels)

    @property
    def whole(self) -> int:
        """The full tiles of one row in a row that is cut together with others."""
        return self.columns // self.pixels

    @property
    def tall_columns(self) -> int:
        """The columns of a tile that spans all rows."""
        return self.pixels // self.rows

    @property
    def tall(self) -> int:
        """The number of tiles, side by side, that span all rows."""
        return self.columns % self.pixels // self.tall_columns


def tiling(registers: Registers, rows: int, columns: int, vectors: int) -> Tiling:
    """How `rows` rows of `columns` pixels of `vectors` vectors are cut.

    It takes the way of fewest cycles, which multiply-adds, loads and the latency of a sum decide. Ways that differ by
    half a percent of the multiply-adds count as equal: of these, rows alone go before rows together, then the fewest
    loads decide. It doesn't matter which cache holds the filter: read from first to last vector, it arrives from the
    second-level cache as fast as from the first.

    >>> zmm, ymm = Registers(16, 32), Registers(8, 16)
    >>> tiling(zmm, 62, 62, 8), tiling(ymm, 62, 62, 16)
    (Tiling(columns=62, pixels=6, vectors=4, rows=1), Tiling(columns=62, pixels=6, vectors=2, rows=3))
    """
    some_rows = min(rows, MOST_ROWS)
    least_cycles = some_rows * columns * vectors / MULTIPLY_ADDS_PER_CYCLE

    def cost(way: Tiling) -> tuple[int, int, int]:
        cycles = cycles_per_product(way, some_rows, vectors)
        return round(200 * cycles / least_cycles), way.rows, _loads(_tiles(way, some_rows, vectors))

    most_vectors = range(1, min(vectors, MOST_VECTORS) + 1)
    return min((way for most in most_vectors for way in _ways(registers, columns, most)), key=cost)


def split_evenly(size: int, most: int) -> tuple[tuple[int, int], ...]:
    """Split `size` into as few parts of at most `most` as possible, as evenly as possible: (parts, size of each).

    >>> split_evenly(62, 14), split_evenly(64, 16), split_evenly(5, 8)
    (((2, 13), (3, 12)), ((4, 16),), ((1, 5),))
    """
    parts = math.ceil(size / most)
    small, larger = divmod(size, parts)
    return tuple((count, part) for count, part in ((larger, small + 1), (parts - larger, small)) if count)


def _ways(registers: Registers, columns: int, vectors: int) -> list[Tiling]:
    """The ways to cut rows into tiles of up to `vectors` vectors, as large as the registers that are left allow."""
    most = min((registers.count - vectors - BROADCASTS) // vectors, MOST_PIXELS)
    alone = Tiling(columns, split_evenly(columns, most)[0][1], vectors)
    return [alone, Tiling(columns, most, vectors, most // math.gcd(columns, most))]


def _tiles(way: Tiling, rows: int, vectors: int) -> Tiles:
    """All tiles of some rows."""
    groups, left = divmod(rows, way.rows) if way.rows > 1 else (0, rows)
    together = (groups * (way.whole * way.rows + way.tall), way.pixels)
    alone = [(count * left, pixels) for count, pixels in way.alone]
    return [
        (count * parts, pixels, part)
        for count, pixels in (together, *alone)
        for parts, part in split_evenly(vectors, way.vectors)
    ]


def _loads(tiles: Tiles) -> int:
    """Loads per product."""
    return sum(count * (pixels + part) for count, pixels, part in tiles)


def cycles_per_product(way: Tiling, rows: int, vectors: int) -> float:
    """The cycles that `rows` rows take for one product of each of their sums."""
    return sum(count * tile_cycles(pixels, part) for count, pixels, part in _tiles(way, rows, vectors))


def tile_cycles(pixels: int, vectors: int) -> float:
    """The cycles of a tile for one product of each of its sums; `python -m hexconv.bench.tiles` measures them."""
    multiply_adds = pixels * vectors / MULTIPLY_ADDS_PER_CYCLE
    sums = (multiply_adds**NEARNESS + MULTIPLY_ADD_CYCLES**NEARNESS) ** (1 / NEARNESS)
    return max(sums, (pixels + vectors) / LOADS_PER_CYCLE)
