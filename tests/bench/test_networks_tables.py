"""The tables of whole networks: what they say of every row."""

from pathlib import Path

import pandas as pd

REPORTS = Path(__file__).parents[2] / "reports"


def test_every_chain_equals_numpy_and_onnx_runtime_differs_by_its_float32_alone() -> None:
    table = pd.read_csv(REPORTS / "verify_networks.csv")
    assert not table.duplicated(["network", "form", "target"]).any()
    assert (table["equal_to_numpy"] == table["chains"]).all()
    assert (table["largest"] <= 1).all()
    assert (table["not_float32"] == 0).all()
    assert (table["in_a_million"] <= 10).all()


def test_every_conv_that_is_taken_runs_on_hvx_and_is_right() -> None:
    table = pd.read_csv(REPORTS / "networks.csv")
    assert not table.duplicated(["network", "form"]).any()
    assert (table["wrong_layers"] == 0).all()
    assert (table["plain_share"] == 0).all()
    assert (table["chained"] <= table["taken"]).all()
    assert (table["packets"] * table["macs_per_packet"]).sub(table["macs"]).abs().le(table["packets"] * 0.01).all()
