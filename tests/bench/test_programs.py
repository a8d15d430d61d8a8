"""The bench of whole programs: what differs is counted, what is known is not run again, and what the tables say."""

import sys
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from shutil import copy

import numpy as np
import pandas as pd
import pytest

from hexconv.build.built_chain import c_files
from hexconv.network import built_network
from reports import programs, wild
from reports.programs import FASTEST, KEY, THREADS, Bench, Library, Row, main, read_rows
from tests.deep import DEEP

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
REPORTS = Path(__file__).parents[2] / "reports"
NETWORKS, FORMS = ("edsr", "fsrcnn", "mobilenet_v2", "resnet18", "unet"), ("channel", "tensor")
WAYS = (
    *(("hexagon", threads, FASTEST) for threads in (1, THREADS)),
    ("llvm", 1, FASTEST),
    *(("hexagon", THREADS, kernel) for kernel in ("hmx-exact", "hmx-fast")),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network that the package brings, in a form."""
    path = tmp_path_factory.mktemp("programs") / "residual-tensor.onnx"
    copy(str(resources.files("hexconv.example") / "residual.onnx"), path)
    return path


@pytest.fixture(scope="module")
def table(model: Path) -> Path:
    """The table of this machine."""
    path = model.with_suffix(".csv")
    assert main([str(model), "--targets", "llvm", "--csv", str(path)]) == 0
    return path


def test_a_row_has_what_verify_and_the_library_say(table: Path) -> None:
    [row] = read_rows(table)
    assert (row.network, row.form, row.target, row.threads, row.answer) == ("residual", "tensor", "llvm", 1, "holds")
    assert (row.chains_equal, row.operators_equal) == (row.chains, row.operators)
    assert row.library_elements == 131072
    assert (row.differing, row.library_differing, row.packets, row.inputs) == (0, 0, None, 8)
    assert row.counted_bytes == row.chains_after_bytes


def test_what_is_built_to_the_same_bytes_is_not_run_again(
    model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.read_text()
    monkeypatch.setattr(programs, "verify_network", None)
    monkeypatch.setattr(Library, "called", None)
    assert main([str(model), "--targets", "llvm", "--csv", str(table)]) == 0
    assert table.read_text() == before
    monkeypatch.setattr(built_network, "c_files", lambda *folder: {**c_files(*folder), "another.h": b""})
    with pytest.raises(TypeError):
        main([str(model), "--targets", "llvm", "--csv", str(table)])


@pytest.mark.parametrize(
    "wrong", ["differing", "library_differing", "not_float32", "chains_equal", "operators_equal", "counted_bytes"]
)
def test_a_row_does_not_hold_where_anything_differs(table: Path, wrong: str) -> None:
    [row] = read_rows(table)
    assert row.holds
    assert not replace(row, **{wrong: getattr(row, wrong) + 1}).holds
    assert not replace(row, answer="not compared").holds


def test_an_element_of_the_library_that_differs_is_counted(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the example expects another element than the library gives."""

    def off(*asked: object) -> dict[str, np.ndarray]:
        tensors = {name: values.copy() for name, values in tensors_of(*asked).items()}  # pyright: ignore[reportArgumentType]
        tensors["result"].flat[7] += 1
        return tensors

    tensors_of = programs.tensors_of
    monkeypatch.setattr(programs, "tensors_of", off)
    monkeypatch.setattr(programs, "INPUTS", {"llvm": 1})
    [row] = Bench([("llvm", 1)], table=model.with_name("none.csv")).rows(model, ("residual", "tensor"))
    assert (row.library_differing, row.differing, row.holds) == (1, 0, False)


@DEEP
@pytest.mark.simulator
@pytest.mark.parametrize("kernel", ["hmx-exact", "hmx-fast"])
def test_a_network_is_called_on_the_engine(model: Path, tmp_path: Path, kernel: str) -> None:
    """Its words are no instructions of the simulator: the example isn't run, calls of the library are."""
    table = tmp_path / "programs.csv"
    assert (
        main([str(model), "--targets", "hexagon", "llvm", "--threads", "2", "--kernels", kernel, "--csv", str(table)])
        == 0
    )
    [row] = read_rows(table)
    assert (row.kernel, row.holds, row.library_elements, row.library_differing) == (kernel, True, 0, 0)
    assert row.seeds == programs.SEEDS
    assert 0 < row.engine_macs_share <= 1
    assert 0 < (row.engine_useful_share or 0) <= 1
    assert row.predicted_packets is None


@DEEP
@pytest.mark.simulator
def test_a_network_is_called_on_the_simulator(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "programs.csv"
    assert main([str(model), "--targets", "hexagon", "--threads", "2", "--csv", str(table)]) == 0
    [row] = read_rows(table)
    assert (row.threads, row.seeds, row.holds) == (2, programs.SEEDS, True)
    assert row.copies, "seeds choose nothing where nothing is copied by the engine"
    assert row.packets == (row.chains_packets or 0) + (row.operators_packets or 0)
    assert row.packets
    assert row.packets / 2 <= (row.critical_packets or 0) < row.packets
    assert abs((row.predicted_packets or 0) / row.packets - 1) < 0.2


@pytest.mark.parametrize(("name", "most_off"), [("programs.csv", 0.15), ("wild.csv", 0.25)])
def test_every_row_of_the_tables_holds(name: str, most_off: float) -> None:
    rows = read_rows(REPORTS / name)
    assert rows
    assert [row for row in rows if not row.holds and not row.left] == []
    assert all(row.largest <= 1 for row in rows)
    assert all(row.scalar == 0 for row in rows)
    on_hexagon = [row for row in rows if row.packets and row.kernel == FASTEST]
    assert all(row.engine_macs_share for row in rows if row.kernel != FASTEST)
    assert {row.target for row in rows if not row.packets} <= {"llvm"}
    for row in on_hexagon:
        assert row.packets == (row.chains_packets or 0) + (row.operators_packets or 0)
        assert row.packets
        between_steps = 0.001  # of all packets at most: the slowest thread has them, and no step
        assert row.packets / row.threads <= (row.critical_packets or 0) <= row.packets * (1 + between_steps)
        assert row.predicted_packets is not None
        assert abs(row.predicted_packets / row.packets - 1) <= most_off, (row.network, row.form, row.threads)


def test_the_table_has_five_networks_in_two_forms() -> None:
    table = pd.read_csv(REPORTS / "programs.csv")
    found = set(table[list(KEY)].itertuples(index=False, name=None))
    assert {(name, form, "hexagon", THREADS, FASTEST) for name in NETWORKS for form in FORMS} <= found
    assert found <= {(name, form, *way) for name in NETWORKS for form in FORMS for way in WAYS}
    assert len(found) == len(table)
    assert (table["seeds"][table["target"] == "hexagon"] > 0).all()
    assert (table["library_elements"][table["kernel"] == FASTEST] > 0).all()


def test_the_table_of_other_people_has_rows_of_its_networks_alone() -> None:
    table = pd.read_csv(REPORTS / "wild.csv")
    assert set(table["network"]) <= set(tomllib.loads(wild.TABLE.read_text()))
    assert set(table[["target", "threads"]].itertuples(index=False, name=None)) <= {("hexagon", THREADS), ("llvm", 1)}
    assert not table.duplicated(list(KEY)).any()
    assert (table["convs"] - table["taken"]).max() <= 2  # one has two transposed convs


def test_rows_are_read_as_they_were_written(table: Path) -> None:
    [row] = read_rows(table)
    assert Row(**asdict(row)) == row
    assert read_rows(table.with_name("none.csv")) == []


def test_a_network_that_fails_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orinet.onnx").write_bytes(b"no model")
    assert wild.main(["orinet", "--folder", str(tmp_path), "--csv", str(tmp_path / "wild.csv")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path}/orinet.onnx: ")
    with pytest.raises(SystemExit):
        wild.main(["nothing", "--folder", str(tmp_path)])
    assert "no network nothing in" in capsys.readouterr().err
