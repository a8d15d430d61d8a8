"""The table of networks as libraries: what runs is compared with numpy, what does not run is linked, and says so."""

from dataclasses import replace
from importlib import resources
from pathlib import Path
from shutil import copy

import numpy as np
import pandas as pd
import pytest

from hexconv.apart import Limits
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.copy_engine import CopyCounts
from hexconv.run.measurement import Counts, Measurement
from hexconv.run.simulator.qemu import relabelled
from hexconv.run.simulator.toolchain import probe_program
from hexconv.sweep.journal import Journal
from reports.built_networks import HOST, Called, Calls, Chain, Network, Seeds, main
from tests.deep import DEEP

COPIES = CopyCounts(moved_bytes=(), most_in_flight=(), sizes=(), pieces=3, pieces_2d=0, short_pieces=0)
ONE, TWO = bytes.fromhex("20c00078"), bytes.fromhex("40c00078")
"""`{ r0 = #1 }`, the first packet of the probe, and `{ r0 = #2 }`."""
CHAIN = Chain(None, np.zeros(1, np.uint8), ())  # pyright: ignore[reportArgumentType]


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
    asked = ["--isas", "v67", "v79", "--threads", "2", "--seeds", "3", "--network-seeds", "2", "--csv", str(table)]
    asked += ["--journal", str(tmp_path / "calls")]
    assert main([str(model), *asked]) == 0
    rows = pd.read_csv(table).set_index("isa")
    assert list(rows.index) == ["v67", "v79", HOST]
    assert list(rows.threads[:2]) == [2, 2]
    assert list(rows.elements) == [131072, 0, 131072]
    assert list(rows.chain_seeds) == [3, 0, 0]
    assert list(rows.network_seeds) == [2, 0, 0]
    assert rows.copies["v67"] > 10, "seeds choose nothing where nothing is copied by the engine"
    chains = rows.chains["v67"]
    made = (tmp_path / "calls").read_text().splitlines()
    assert len(made) == 3 * chains + 2
    assert main([str(model), *asked]) == 0
    assert (tmp_path / "calls").read_text().splitlines() == made, "a call that is known was made again"
    assert rows.differing.sum() == 0
    assert rows.packets["v67"] > 10**6
    assert rows.library_bytes.max() < 1 << 20


def test_an_element_that_differs_is_counted(model: Path, tmp_path: Path) -> None:
    network = Network(model, "llvm", 1)
    changed = {name: values.copy() for name, values in network.tensors.items()}
    changed["result"].flat[7] += 1
    network.__dict__["tensors"] = changed
    with Journal.opened(tmp_path / "calls", Limits(60, 1 << 30)) as journal:
        row = network.row(HOST, Seeds(0, 0), Calls(journal))
    assert row.differing == 1
    assert not row.holds


def test_an_element_that_a_chain_writes_wrong_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each call; and a call that is known is looked up."""
    right = np.arange(6, dtype=np.uint8)
    run = Measurement(outputs=(right,), seconds=0.0, counts=Counts(5, 6, 7), copies=COPIES)
    monkeypatch.setattr(Chain, "run", lambda *_: run)
    monkeypatch.setattr(Chain, "content", b"chain")
    kernel = HexagonObject("v67", probe_program().read_bytes(), (), ())
    with Journal.opened(tmp_path / "calls", Limits(60, 1 << 30)) as journal:
        calls = Calls(journal)
        wrong = replace(CHAIN, wanted=(right + np.array([0, 0, 1, 0, 2, 0], np.uint8),))
        assert calls.of(kernel, wrong, 1) == Called(2, 5, 3)
        assert calls.of(kernel, replace(CHAIN, wanted=(right,)), 2) == Called(0, 5, 3)
        assert len(journal.rows) == 2


def test_the_same_code_for_two_instruction_sets_is_called_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Measurement(outputs=(), seconds=0.0, counts=Counts(5, 6, 7), copies=COPIES)
    monkeypatch.setattr(Chain, "run", lambda *_: run)
    monkeypatch.setattr(Chain, "content", b"chain")
    code = probe_program().read_bytes()
    other = code.replace(ONE, TWO)
    assert other != code
    with Journal.opened(tmp_path / "calls", Limits(60, 1 << 30)) as journal:
        for isa, elf in (("v66", code), ("v73", code), ("v73", other)):
            Calls(journal).of(HexagonObject(isa, relabelled(elf, isa), (), ()), CHAIN, 1)
        assert len(journal.rows) == 2
