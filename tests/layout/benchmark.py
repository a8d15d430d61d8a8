"""How quick layouts are beside what numpy needs at least: `python -m tests.layout.benchmark`. A table, not a test."""

import timeit
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from hexconv.layout import Layout, mace, okk, packed
from hexconv.layout.onednn import MemoryDesc

POINTS = 1_500_000


def main() -> None:
    table = Table("what", "milliseconds", "numpy alone", "ratio")
    for layout in (
        packed("NHWC8h8w32c", (3, 112, 112, 40)),
        MemoryDesc.by_tag((3, 40, 112, 112), "f32", "aBcd16b").layout(),
        mace.image("in-out-channel", (3, 112, 112, 40)),
        okk.local(okk.CHIPS["bm1684"], "aligned", (3, 40, 112, 112), "float32", start_npu=40),
    ):
        index = [np.random.default_rng(0).integers(0, size, POINTS) for size in layout.shape]
        table.add_row(f"{layout.name}: address of {POINTS:,} indices", _ms(lambda: layout.address(index)))  # noqa: B023
        table.add_row(f"{layout.name}: table of {layout.logical_elements:,}", _ms(layout.positions))
    _packing(table)
    Console().print(table)


def _packing(table: Table) -> None:
    """A tensor of 64 x 64 x 128 beside the transpose that moves the same elements."""
    layout = packed("NHWC8h8w32c", (1, 64, 64, 128))
    array = np.random.default_rng(0).random(layout.shape, dtype=np.float32)
    store = layout.pack(array)
    there = _seconds(lambda: np.ascontiguousarray(array.reshape(1, 8, 8, 8, 8, 4, 32).transpose(0, 1, 3, 5, 2, 4, 6)))
    back = _seconds(lambda: np.ascontiguousarray(store.transpose(0, 1, 4, 2, 5, 3, 6)))
    _beside(table, layout, "pack", _seconds(lambda: layout.pack(array)), there)
    _beside(table, layout, "unpack", _seconds(lambda: layout.unpack(store)), back)


def _beside(table: Table, layout: Layout, what: str, ours: float, numpys: float) -> None:
    figures = (f"{1e3 * ours:.3f}", f"{1e3 * numpys:.3f}", f"{ours / numpys:.2f}")
    table.add_row(f"{layout.name}: {what} 64x64x128", *figures)


def _ms(call: Callable[[], object]) -> str:
    return f"{1e3 * _seconds(call, 5):.1f}"


def _seconds(call: Callable[[], object], times: int = 50) -> float:
    """The quickest of some runs: what the machine can do when nobody else is at it."""
    return min(timeit.repeat(call, number=1, repeat=times))


if __name__ == "__main__":
    main()
