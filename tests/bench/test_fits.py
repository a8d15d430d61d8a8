"""The table of the board's answers as they were lowered, counted and run."""

import re
from pathlib import Path

import pandas as pd
import pytest

from reports.board import LIMITS_MIB, MIB, NETS

TABLE = pd.read_csv(Path(__file__).parents[2] / "reports" / "fits.csv")


@pytest.mark.parametrize("net", ["vgg16", "resnet50"])
@pytest.mark.parametrize("limit", LIMITS_MIB)
def test_every_chain_of_the_net_runs_within_every_limit(net: str, limit: int) -> None:
    """Whole, or as pieces that are named after their convs."""
    cases = [row["case"] for row in TABLE.to_dict("records") if (row["net"], row["vtcm_mib"]) == (net, limit)]
    for chain in NETS[net]:
        assert any(re.fullmatch(rf"{chain}(-conv\d+(-\d+)?)?", case) for case in cases), chain


def test_what_was_predicted_was_allocated_and_used() -> None:
    assert TABLE["holds"].all()
    assert (TABLE["predicted_bytes"] <= TABLE["vtcm_mib"] * MIB).all()
    assert (TABLE["predicted_bytes"] == TABLE["allocated_bytes"]).all()
    assert (TABLE["predicted_bytes"] == TABLE["used_bytes"]).all()
    assert (TABLE["packets"] > 0).all()
