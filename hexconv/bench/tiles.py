"""Cycles of the host kernel's tiles on this machine, beside those that the rule of `hexconv.spec.tiles` counts with.

    python -m hexconv.bench.tiles

One thread, a 1x1 conv of 256 channels, in turns. The first tile of each table has the cycles of the rule; what is
measured is how long the others take beside it.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import tvm

from hexconv.bench.host import target_of
from hexconv.lower.function import lower_function
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.schedule.host import chain_function
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.plan import Simd
from hexconv.spec.registers import SETS, registers_of
from hexconv.spec.tiles import Tiling, tile_cycles

Row = dict[str, Any]
Tile = tuple[int, int]
"""Pixels, vectors."""

TILES: dict[Simd, Sequence[Tile]] = {
    "avx512": [
        (6, 4),
        (5, 4),
        (4, 4),
        (3, 4),
        (9, 3),
        (7, 3),
        (5, 3),
        (4, 3),
        (12, 2),
        (9, 2),
        (6, 2),
        (12, 1),
        (8, 1),
    ],
    "avx2": [(6, 2), (5, 2), (4, 2), (3, 2), (2, 2), (4, 3), (3, 3), (2, 3), (2, 4), (12, 1), (10, 1), (8, 1), (6, 1)],
}
DEPTH, ROWS, BESIDE, GROUPS = 256, 32, 4, 2
TURNS, RUNS = 40, 5


def rows(simd: Simd, tiles: Sequence[Tile], turns: int = TURNS) -> list[Row]:
    """A row a tile."""
    runs = [_run(simd, tile) for tile in tiles]
    seconds: list[list[float]] = [[] for _ in tiles]
    for _ in range(turns):
        for run, samples in zip(runs, seconds, strict=True):
            run()
            samples += [_timed(run) for _ in range(RUNS)]
    medians = [statistics.median(samples) for samples in seconds]
    cycle = medians[0] / tile_cycles(*tiles[0])
    return [_row(simd, tile, median / cycle) for tile, median in zip(tiles, medians, strict=True)]


def _row(simd: Simd, tile: Tile, measured: float) -> Row:
    counted = tile_cycles(*tile)
    named = {"simd": simd, "pixels": tile[0], "vectors": tile[1]}
    return {**named, "rule": round(counted, 2), "measured": round(measured, 2), "ratio": round(measured / counted, 2)}


def _run(simd: Simd, tile: Tile) -> Callable[[], object]:
    """A conv whose output is a whole number of such tiles, ready to run."""
    pixels, vectors = tile
    columns, channels = BESIDE * pixels, GROUPS * vectors * SETS[simd].lanes
    chain = Chain(input=(1, ROWS, columns, DEPTH), conv=(Conv2d(out_channels=channels),))
    plan = Plan(kernel="host", simd=simd, threads=1, h_split=ROWS // 8)
    function = chain_function(chain, plan, lambda *_: Tiling(columns, pixels, vectors))
    kernel = tvm.compile(lower_function(function).module, target=target_of(simd))["main"]
    arrays = packed_arguments(chain, random_tensors(chain))
    inputs = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in arrays]
    output = tvm.runtime.tensor(np.zeros(output_shape(chain), np.float32))
    return lambda: kernel(*inputs, output)


def _timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> int:
    """Print a table for each instruction set that this machine has."""
    sets: Sequence[Simd] = ("avx512", "avx2") if registers_of("auto") == SETS["avx512"] else ("avx2",)
    for simd in sets:
        print(pd.DataFrame(rows(simd, TILES[simd])).to_string(index=False), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
