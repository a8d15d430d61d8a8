"""The network that the package brings, and weights that go with the answers of a search."""

from pathlib import Path

import numpy as np
import pytest
from onnx import checker, load_model

from hexconv.cli.app import exit_code
from hexconv.example import NETWORK
from hexconv.example.make import example_network
from hexconv.model import import_model
from hexconv.network.answer import answer
from hexconv.network.planned_model import plan, question_of
from hexconv.run.given import weights_of

LARGEST_BYTES = 200_000


def test_the_network_is_what_its_script_makes() -> None:
    model = load_model(NETWORK)
    assert model == example_network()
    checker.check_model(model, full_check=True)
    assert NETWORK.stat().st_size < LARGEST_BYTES


def test_the_command_writes_it_and_refuses_what_is_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["example", "-o", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / NETWORK.name).read_bytes() == NETWORK.read_bytes()
    assert exit_code(["example", "-o", str(tmp_path / "new" / NETWORK.name)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_answers_have_the_weights_of_their_convs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In 1 MiB the first chain is fused, in 16 KiB it is cut in two; all convs keep their filters."""
    net, whole, cut = (str(tmp_path / name) for name in ("net", "whole", "cut"))
    assert exit_code(["import", str(NETWORK), "-o", net, "--weights"]) == 0
    chain = f"{net}/01-stem1.toml"
    assert exit_code(["best", chain, "--vtcm", "1MiB", "-o", whole]) == 0
    assert exit_code(["best", chain, "--vtcm", "16KiB", "--caches", "all-in-vtcm", "-o", cut]) == 0
    source = np.load(f"{net}/01-stem1.npz")
    fused = np.load(f"{whole}/01-stem1.npz")
    assert set(source) == set(fused)
    for number in (1, 2):
        piece = np.load(f"{cut}/01-stem1-conv{number}.npz")
        assert set(piece) == {"filter1", "bias1"}
        for name in ("filter", "bias"):
            np.testing.assert_array_equal(piece[f"{name}1"], source[f"{name}{number}"])
            np.testing.assert_array_equal(fused[f"{name}{number}"], source[f"{name}{number}"])
    assert "wrote 4 files" in capsys.readouterr().out


def test_answers_of_cases_without_weights_have_none(tmp_path: Path) -> None:
    assert exit_code(["import", str(NETWORK), "-o", str(tmp_path / "net")]) == 0
    assert exit_code(["best", str(tmp_path / "net" / "03-head1.toml"), "-o", str(tmp_path / "plans")]) == 0
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["03-head1.toml"]


def test_arrays_are_numbered_anew() -> None:
    arrays = {f"filter{number}": np.full(1, number) for number in range(1, 13)}
    assert {name: int(array[0]) for name, array in weights_of(arrays, 9, 2).items()} == {
        "filter1": 10,
        "filter2": 11,
    }


def test_blocks_of_the_network_compute_what_its_chains_and_adds_do() -> None:
    """Its residual block is one chain with all other convs; in numpy, step by step, the outputs are the same bytes."""
    image = {"image": np.random.default_rng(0).integers(0, 256, (1, 3, 128, 128)).astype(np.float32)}
    made = []
    for blocks, chains in ((False, 3), (True, 1)):
        imported = import_model(NETWORK, blocks=blocks)
        assert len(imported.cases) == chains
        program = plan(imported, question_of(1 << 20, target="llvm")).as_read
        assert program
        made.append(answer(program, {port.name: image["image"] for port in program.inputs}))
    assert [conv.add.from_ for conv in imported.cases[0].chain.conv if conv.add] == ["conv2"]
    for name, array in made[0].items():
        assert np.array_equal(array, made[1][name])
