"""The tables of exported networks, of operators and of drawn cases: what they say of every row."""

from pathlib import Path

import pandas as pd
import pytest

from hexconv.network.operator_table import TABLE
from reports.engine_programs import DRAWS, SEEDS
from reports.engine_sweep import CASES, Row

REPORTS = Path(__file__).parents[2] / "reports"
NO_STEP = {"DequantizeLinear", "Dropout", "Identity"}
"""What changes no number, and is no step."""


def test_every_conv_that_is_taken_runs_on_hvx_and_is_right() -> None:
    table = pd.read_csv(REPORTS / "networks.csv")
    assert not table.duplicated(["network", "form"]).any()
    assert (table["wrong_layers"] == 0).all()
    assert (table["plain_share"] == 0).all()
    assert (table["chained"] <= table["taken"]).all()
    assert (table["packets"] * table["macs_per_packet"]).sub(table["macs"]).abs().le(table["packets"] * 0.01).all()


def test_no_operator_differs_from_onnx_runtime_by_more_than_the_pages_say() -> None:
    """By float32's error, which is one code; behind convs a table may be off by more, which an import tells."""
    table = pd.read_csv(REPORTS / "operator_differences.csv").set_index("operator")
    assert set(TABLE) - set(table.index) <= NO_STEP
    assert (table["wrong"] == 0).all()
    operators = table.drop(index="Conv")
    assert (operators[["largest", "evaluator_largest"]].fillna(0) <= 1).all(axis=None)
    assert (operators["differing_percent"] < 2).all()
    assert (operators["evaluator_percent"].fillna(0) < 2).all()


def test_no_drawn_case_of_the_matrix_engine_is_wrong() -> None:
    table = pd.read_csv(REPORTS / "engine_sweep.csv")
    assert not table.duplicated("seed").any()
    assert (table["cases"] == CASES).all()
    assert (table["wrong"] == 0).all()
    assert (table["holding"] + table["refused"] == CASES).all()
    assert (table["refused"] <= CASES * 0.01).all()
    assert (table[["engine_cases", "double_cases"]] >= CASES * 0.4).all(axis=None)


def test_no_drawn_network_of_the_matrix_engine_is_wrong() -> None:
    table = pd.read_csv(REPORTS / "engine_programs.csv")
    assert not table.duplicated("seed").any()
    assert (table["wrong"] == 0).all()
    assert (table["holding"] + table["refused"] + table["apart"] == table["programs"]).all()
    assert table["programs"].sum() >= len(SEEDS) * DRAWS
    assert table[["fast_programs", "shared_programs"]].sum().ge(0.25 * table["holding"].sum()).all()


@pytest.mark.parametrize("status", ["differs", "failed", "crashed", "overran", "out_of_memory"])
def test_a_drawn_case_that_neither_holds_nor_is_refused_is_wrong(status: str) -> None:
    found = {
        "status": ["holds", status, "refused"],
        "kernel_used": ["hmx", "hmx", "plain"],
        "buffering": ["double"] * 3,
    }
    assert Row.of(7, pd.DataFrame(found)) == Row(7, 3, 2, 3, 1, 1, 1)
