"""Tiles of the host kernel: each pixel once, in registers that there are, in no more cycles than another way takes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.host.registers import SETS
from hexconv.host.tiles import MOST_ROWS, Tiling, split_evenly, tiling

SIMDS = st.sampled_from(sorted(SETS))


def covered(way: Tiling, rows: int) -> Counter[tuple[int, int]]:
    """How often each pixel of so many rows is in a tile."""
    found: Counter[tuple[int, int]] = Counter()
    together = rows // way.rows * way.rows if way.rows > 1 else 0
    for y in range(together):
        found.update((y, x) for x in range(way.whole * way.pixels))
    for top in range(0, together, way.rows):
        for tile in range(way.tall):
            left = way.whole * way.pixels + tile * way.tall_columns
            found.update((top + dy, left + dx) for dy in range(way.rows) for dx in range(way.tall_columns))
    for y in range(together, rows):
        found.update((y, x) for x in range(sum(count * pixels for count, pixels in way.alone)))
    return found


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 64), SIMDS)
def test_every_pixel_is_in_one_tile(rows: int, columns: int, vectors: int, simd: str) -> None:
    way = tiling(SETS[simd], rows, columns, vectors)
    assert covered(way, rows) == Counter((y, x) for y in range(rows) for x in range(columns))


@given(st.integers(1, 70), st.integers(1, 300), st.integers(1, 64), SIMDS)
def test_tiles_fit_the_registers(rows: int, columns: int, vectors: int, simd: str) -> None:
    way = tiling(SETS[simd], rows, columns, vectors)
    assert way.vectors <= vectors
    assert way.pixels * way.vectors + way.vectors + 1 <= SETS[simd].count
    assert way.tall_columns * way.rows == way.pixels or way.rows == 1
    assert way.rows <= min(rows, MOST_ROWS)


@given(st.integers(1, 300), st.integers(1, 64))
def test_parts_are_even_and_as_few_as_there_can_be(size: int, most: int) -> None:
    parts = split_evenly(size, most)
    sizes = [part for _, part in parts]
    assert sum(count * part for count, part in parts) == size
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert (sum(count for count, _ in parts) - 1) * most < size


@pytest.mark.parametrize(
    ("columns", "vectors", "rows", "whole", "tall"),
    [(62, 2, 3, 10, 1), (64, 2, 3, 10, 2), (63, 2, 2, 10, 1), (5, 2, 6, 0, 5), (7, 3, 4, 1, 3)],
)
def test_avx2_has_twelve_sums_in_all_tiles(columns: int, vectors: int, rows: int, whole: int, tall: int) -> None:
    way = tiling(SETS["avx2"], 60, columns, 16)
    assert (way.pixels, way.vectors, way.rows, way.whole, way.tall) == (12 // vectors, vectors, rows, whole, tall)


@pytest.mark.parametrize("columns", [60, 6, 12])
def test_rows_of_whole_tiles_are_cut_alone(columns: int) -> None:
    assert tiling(SETS["avx2"], 60, columns, 16) == Tiling(columns, 6, 2)


def test_rows_are_cut_alone_where_there_are_too_few() -> None:
    assert tiling(SETS["avx2"], 2, 62, 16).rows == 1
