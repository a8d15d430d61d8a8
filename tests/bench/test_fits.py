"""The table of chains in ever less VTCM, and what makes its rows."""

from pathlib import Path

import pandas as pd

from hexconv.bench.fits import LIMITS_BYTES
from hexconv.bench.networks import chains_of

TABLE = Path(__file__).parents[2] / "reports" / "fits.csv"


def test_every_chain_of_the_networks_runs_within_every_limit() -> None:
    """Whole, or as pieces that are named after their convs."""
    table = pd.read_csv(TABLE)
    for name in chains_of("vgg16", "resnet50"):
        for limit in LIMITS_BYTES:
            rows = table[(table["limit_bytes"] == limit) & table["case"].str.fullmatch(rf"{name}(-conv\d+(-\d+)?)?")]
            assert len(rows) >= 1, (name, limit)


def test_what_was_predicted_was_allocated_and_used() -> None:
    table = pd.read_csv(TABLE)
    assert table["holds"].all()
    assert (table["predicted_bytes"] <= table["limit_bytes"]).all()
    assert (table["predicted_bytes"] == table["allocated_bytes"]).all()
    assert (table["predicted_bytes"] == table["used_bytes"]).all()
    assert (table["packets"] > 0).all()
