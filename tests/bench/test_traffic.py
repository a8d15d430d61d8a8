"""The table of bytes that chains move: it is what the search finds, and no figure beats what is needed."""

from pathlib import Path

import pandas as pd
import pytest

from hexconv.bench.traffic import CHAINS, DEFINES_BYTES, LIMITS_MIB, QNN_BYTES, rows

TABLE = pd.read_csv(Path(__file__).parents[2] / "reports" / "bytes.csv")


def test_every_chain_stands_there_under_every_limit() -> None:
    assert set(QNN_BYTES) == set(CHAINS) >= set(DEFINES_BYTES)
    assert list(zip(TABLE.chain, TABLE.vtcm_mib, strict=True)) == [(c, m) for c in CHAINS for m in LIMITS_MIB]


def test_nothing_moves_less_than_is_needed_and_more_memory_never_moves_more() -> None:
    moved = TABLE.dropna(subset="traffic_bytes")
    assert (moved.traffic_bytes >= moved.needed_bytes).all()
    assert all(group.traffic_bytes.is_monotonic_decreasing for _, group in moved.groupby("chain"))


@pytest.mark.parametrize("name", ["pointwise", "windows"])
def test_the_table_is_what_the_search_finds(name: str) -> None:
    found = [(row.vtcm_mib, row.needed_bytes, row.traffic_bytes, row.pieces) for row in rows([name])]
    stated = TABLE[TABLE.chain == name][["vtcm_mib", "needed_bytes", "traffic_bytes", "pieces"]]
    assert found == [tuple(map(int, row)) for row in stated.to_numpy()]
