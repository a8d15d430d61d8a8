"""Measures cycles of the host kernel's tiles on this machine, beside those that `hexconv.host.tiles` assumes.

    python -m hexconv.bench.tiles

Tiles of a 1x1 conv of 256 channels are timed in turns, on one thread. The first tile of each table has the cycles that
the rule assumes; measured is how long the others take in comparison.
"""

import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hexconv.bench.host import ready
from hexconv.bench.turns import Run, in_turns, median
from hexconv.host.loops import chain_function
from hexconv.host.registers import SETS, sets_here
from hexconv.host.tiles import Tiling, tile_cycles
from hexconv.lower.function import lower_function
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.knobs import Simd

Row = dict[str, Any]
Tile = tuple[int, int]
"""A tile: its pixels, and its vectors of output channels."""

PIXELS: dict[Simd, dict[int, Sequence[int]]] = {
    "avx512": {4: (6, 5, 4, 3), 3: (9, 7, 5, 4), 2: (12, 9, 6), 1: (12, 8)},
    "avx2": {2: (6, 5, 4, 3, 2), 3: (4, 3, 2), 4: (2,), 1: (12, 10, 8, 6)},
}
"""The tiles to time, by their vectors; the others are compared with the first."""

DEPTH, ROWS, BESIDE, GROUPS = 256, 32, 4, 2
TURNS = 10


def rows(simd: Simd, tiles: Sequence[Tile], turns: int = TURNS) -> list[Row]:
    """Return a row of the table for each tile."""
    times = in_turns({str(tile): _run(simd, tile) for tile in tiles}, turns)
    medians = [median(times[str(tile)]) for tile in tiles]
    cycle = medians[0] / tile_cycles(*tiles[0])
    return [_row(simd, tile, each / cycle) for tile, each in zip(tiles, medians, strict=True)]


def _row(simd: Simd, tile: Tile, measured: float) -> Row:
    counted = tile_cycles(*tile)
    named = {"simd": simd, "pixels": tile[0], "vectors": tile[1]}
    return {**named, "rule": round(counted, 2), "measured": round(measured, 2), "ratio": round(measured / counted, 2)}


def _run(simd: Simd, tile: Tile) -> Run:
    """Build a conv whose output is a whole number of such tiles; returns what runs it."""
    pixels, vectors = tile
    columns, channels = BESIDE * pixels, GROUPS * vectors * SETS[simd].lanes
    chain = Chain(input=(1, ROWS, columns, DEPTH), conv=(Conv2d(out_channels=channels),))
    plan = Plan(kernel="host", simd=simd, threads=1, h_split=ROWS // 8)
    function = chain_function(chain, plan, lambda *_: Tiling(columns, pixels, vectors), lambda reads, _: reads.rows)
    run, _ = ready(chain, lower_function(function).module, simd, random_tensors(chain))
    return run


def main() -> int:
    """Print a table for each instruction set that this machine has."""
    for simd in sets_here():
        tiles = [(pixels, vectors) for vectors, most in PIXELS[simd].items() for pixels in most]
        print(pd.DataFrame(rows(simd, tiles)).to_string(index=False), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
