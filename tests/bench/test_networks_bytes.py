"""The table of whole networks in codes: what it says of every row, and how a row is made."""

from math import prod
from pathlib import Path

import onnx
import pandas as pd
import pytest

from reports.networks_bytes import known, main, needed_bytes
from tests.verify import full_size
from tests.verify.families import mobilenet

TABLE = Path(__file__).parents[2] / "reports" / "networks_bytes.csv"


def test_more_vtcm_never_moves_more_and_nothing_moves_less_than_is_needed() -> None:
    table = pd.read_csv(TABLE)
    assert not table.duplicated(["network", "vtcm_mib"]).any()
    assert (table["needed_bytes"] <= table["moved_bytes"]).all()
    assert (table["moved_bytes"] <= table["apart_bytes"]).all()
    assert table.sort_values("vtcm_mib").groupby("network")["moved_bytes"].is_monotonic_decreasing.all()


def test_the_pages_say_how_many_points_move_more_than_qnn_states() -> None:
    """One: the U-Net in 1 MiB."""
    table = pd.read_csv(TABLE).dropna(subset=["qnn_v73_bytes"])
    least = table[["qnn_v73_bytes", "qnn_v75_bytes"]].min(axis=1)
    over = table[table["moved_bytes"] > least]
    assert [*zip(over["network"], over["vtcm_mib"], strict=True)] == [("unet", 1)]
    assert (over["moved_bytes"] / least[over.index]).max() < 1.05


def test_a_row_is_kept_and_what_qnn_stated_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    monkeypatch.setitem(full_size.NETWORKS, "mobilenet", mobilenet)
    full_size.write(tmp_path, ["mobilenet"], ["tensor"], codes=True)
    path, table = tmp_path / "mobilenet-tensor-codes.onnx", tmp_path / "table.csv"
    arguments = [str(path), "--vtcm", "1", "--csv", str(table)]
    assert main(arguments) == 0
    assert known(table, "mobilenet", 1) == {"v73": None, "v75": None}
    first = pd.read_csv(table)
    first.assign(qnn_v73_bytes=7, qnn_v75_bytes=8).to_csv(table, index=False)
    assert main(arguments) == 0
    assert known(table, "mobilenet", 1) == {"v73": 7, "v75": 8}
    again = pd.read_csv(table)
    assert again["moved_bytes"].tolist() == first["moved_bytes"].tolist()
    weights = {3 * 16 * 9: 1, 16 * 64: 3, 64 * 9: 1, 64 * 20: 1}  # bytes of int8, and how many have so many
    biases = 4 * (16 + 64 + 64 + 16 + 64 + 20)
    ends = 3 * 32 * 32 + 20
    assert needed_bytes(onnx.load(path)) == sum(map(prod, weights.items())) + biases + ends
