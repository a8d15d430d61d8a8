"""The tables of exported networks and of operators: what they say of every row."""

from pathlib import Path

import pandas as pd

from hexconv.network.operator_table import TABLE

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
    assert (operators["differing_percent"] < 1).all()
    assert (operators["evaluator_percent"].fillna(0) < 1).all()
