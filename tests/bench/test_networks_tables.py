"""The tables of whole networks: what they say of every row."""

import sys
from pathlib import Path

import pandas as pd
import pytest

from reports import wild

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


def test_every_network_of_other_people_is_taken_and_holds_on_both_targets() -> None:
    table = pd.read_csv(REPORTS / "wild.csv")
    assert set(table["network"]) == set(tomllib.loads(wild.TABLE.read_text()))
    assert (table["taken"] == table["convs"]).sum() >= len(table) - 1  # one has two transposed convs
    assert (table["convs"] - table["taken"]).max() <= 2
    assert (table["scalar"] == 0).all()
    ran = table[table["verify_hexagon"] != "not asked"]
    assert (ran["differing"] == 0).all()
    assert (ran["packets"] == ran["chains_packets"] + ran["operators_packets"]).all()
    assert ran["critical_packets"].between(ran["packets"] / wild.THREADS, ran["packets"]).all()
    assert table[["verify_llvm", "verify_hexagon"]].isin(["holds", "not asked"]).all(axis=None)


def test_a_network_that_fails_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orinet.onnx").write_bytes(b"no model")
    assert wild.main(["orinet", "--folder", str(tmp_path), "--csv", str(tmp_path / "wild.csv")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path}/orinet.onnx: ")
    with pytest.raises(SystemExit):
        wild.main(["nothing", "--folder", str(tmp_path)])
    assert "no network nothing in" in capsys.readouterr().err
