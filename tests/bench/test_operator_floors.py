"""The floors of operators are least: no counted row is below its own, and what copies costs what its vectors cost."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.network.program_steps import NCHW, Along, Dimension, Operand, Operation, View
from reports.operator_floors import VECTOR_BYTES, Issued, least_of

REPORTS = Path("reports")


@pytest.mark.parametrize("table", ["operators.csv", "wild_operators.csv"])
def test_no_counted_operator_is_below_its_floor(table: str) -> None:
    with (REPORTS / table).open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert not [row for row in rows if row["over_floor"] and float(row["over_floor"]) < 1]


def _copy(source: Operand, result: Operand, *loops: tuple[int, int, int]) -> Issued:
    view = View(tuple(Dimension(*loop) for loop in loops))
    found = least_of(Operation("view", "view", (source,), result, (view,)), {})
    assert found
    return found


@given(st.integers(1, 50), st.sampled_from((VECTOR_BYTES, 2 * VECTOR_BYTES)))
def test_what_lies_in_whole_vectors_is_loaded_and_stored(rows: int, channels: int) -> None:
    operand = Operand("x", (1, rows, 1, channels), "uint8")
    found = _copy(operand, operand, (rows, channels, channels), (channels, 1, 1))
    assert found == Issued(loads=rows * channels / 128, stores=rows * channels / 128)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(2, 8))
def test_a_reordering_takes_no_less_than_a_copy(pixels: int, channels: int, groups: int) -> None:
    """Channels of each pixel are shuffled: all vectors are loaded and stored, and something moves in them."""
    each = channels * groups
    operand = Operand("x", (1, pixels, 1, each), "uint8")
    found = _copy(operand, operand, (pixels, each, each), (channels, 1, groups), (groups, channels, 1))
    assert found.packets >= np.ceil(pixels * each / VECTOR_BYTES) - 1
    assert channels == 1 or found.permutes + found.exchanges > 0


@given(st.lists(st.integers(1, 60), min_size=2, max_size=4), st.sampled_from((3, 1)))
def test_sources_of_other_codes_cost_products(channels: list[int], axis: int) -> None:
    def concat(scale: float) -> Issued:
        def sized(extents: tuple[int, int, int, int], scale: float) -> Operand:
            return Operand("x", extents, "uint8", scale=scale)

        sources = tuple(sized((1, each, 4, 8) if axis == 1 else (1, 4, 8, each), scale) for each in channels)
        whole = sum(channels)
        result = sized((1, whole, 4, 8) if axis == 1 else (1, 4, 8, whole), 1.0)
        found = least_of(Operation("concat", "concat", sources, result, (Along(axis),)), {})
        assert found
        return found

    more = concat(0.5).double_products - concat(1.0).double_products
    assert np.isclose(more, 2 * 32 * sum(channels) / VECTOR_BYTES)


def test_an_operator_in_another_layout_has_no_floor() -> None:
    source = Operand("x", (1, 8, 8, 32), "float32", "NHWC8h8w32c")
    assert (
        least_of(Operation("convert", "convert", (source,), Operand("y", source.extents, "float32", NCHW)), {}) is None
    )
