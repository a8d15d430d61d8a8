"""The table of networks as libraries: what runs is compared with numpy, what does not run is linked, and says so."""

from importlib import resources
from pathlib import Path
from shutil import copy

import pandas as pd
import pytest

from hexconv.bench.built import HOST, Network, main
from tests.deep import DEEP


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network that the package brings, in a form."""
    path = tmp_path_factory.mktemp("built") / "residual-tensor.onnx"
    copy(str(resources.files("hexconv.example") / "residual.onnx"), path)
    return path


@DEEP
@pytest.mark.simulator
def test_a_network_is_run_where_it_can_be_and_linked_elsewhere(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "built.csv"
    asked = ["--isas", "v67", "v79", "--threads", "2", "--seeds", "2", "--csv", str(table)]
    assert main([str(model), *asked]) == 0
    rows = pd.read_csv(table).set_index("isa")
    assert list(rows.index) == ["v67", "v79", HOST]
    assert list(rows.threads[:2]) == [2, 2]
    assert list(rows.elements) == [131072, 0, 131072]
    assert list(rows.seeds) == [2, 0, 0]
    assert rows.differing.sum() == 0
    assert rows.packets["v67"] > 10**6
    assert rows.library_bytes.max() < 1 << 20


def test_an_element_that_differs_is_counted(model: Path) -> None:
    network = Network(model, "llvm", 1)
    changed = {name: values.copy() for name, values in network.tensors.items()}
    changed["result"].flat[7] += 1
    network.__dict__["tensors"] = changed
    row = network.row(HOST, 0)
    assert row.differing == 1
    assert not row.holds
