"""A misspelt name is answered with the nearest right one: a field, a value, a file, a command, an option, a layout."""

from pathlib import Path
from typing import Literal

import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import did_you_mean
from hexconv.layout.mace import KINDS
from hexconv.layout.onednn.tags import COMMON, FormatTag

CHAIN = "[chain]\ninput = [1, 8, 8, 4]\n{chain}\n[[chain.conv]]\nout_channels = 2\n{conv}\n[plan]\n{plan}\n"


@pytest.mark.parametrize(
    ("fields", "path", "meant"),
    [
        ({"chain": "dtyp = 'int8'"}, "chain.dtyp", "dtype"),
        ({"chain": "dtype = 'flaot32'"}, "chain.dtype", "float32"),
        ({"conv": "kernal = 3"}, "chain.conv[0].kernal", "kernel"),
        ({"conv": "activation = 'relo'"}, "chain.conv[0].activation", "relu"),
        ({"conv": "requantize = { multiplyer = 3 }"}, "chain.conv[0].requantize.multiplyer", "multiplier"),
        ({"plan": "h_spilt = 2"}, "plan.h_spilt", "h_split"),
        ({"plan": "order = 'h_outter'"}, "plan.order", "h_outer"),
        ({"plan": "storage = 'vtmc'"}, "plan.storage", "vtcm"),
    ],
)
def test_a_misspelt_field_or_value(
    fields: dict[str, str], path: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case.toml"
    file.write_text(CHAIN.format(**{"chain": "", "conv": "", "plan": "", **fields}))
    assert exit_code(["cache", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hexconv: {file}: {path}: got ")
    assert f"did you mean {meant}? " in line


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("tirr x.toml", "tir"),
        ("cahce x.toml", "cache"),
        ("run --targte llvm x.toml", "--target"),
        ("run --target hexagn x.toml", "hexagon"),
        ("layout pakced NHWC --shape 1", "packed"),
        ("layout mace in-out-chanel --shape 1,2,3,4", "in-out-channel"),
        ("layout okk alined --shape 1,2,3,4", "aligned"),
        ("layout okk aligned --shape 1,2,3,4 --chip bm1688x", "bm1688"),
        ("layout onednn nChw16k --shape 1,2,3,4", "nChw16c"),
        ("layout packed NHWC --shape 1,2,3,4 --dtype flaot16", "float16"),
    ],
)
def test_a_misspelt_word_of_the_command_line(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"id you mean {meant}?" in line.replace('"', "")


def test_a_misspelt_file_is_answered_with_its_neighbour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "split-3x3.toml").touch()
    assert exit_code(["cache", str(tmp_path / "spilt-3x3.toml")]) == 2
    assert f"did you mean {tmp_path / 'split-3x3.toml'}? " in capsys.readouterr().err
    assert exit_code(["cache", str(tmp_path / "nowhere" / "a.toml")]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_an_unknown_architecture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "case.toml"
    file.write_text(CHAIN.format(chain="", conv="", plan='storage = "vtcm"\narch = "v86"'))
    assert exit_code(["run", str(file)]) == 2
    assert "got 'v86'; did you mean v81? 'v65', 'v66', 'v67', 'v68'" in capsys.readouterr().err


def test_nothing_near_is_no_question_and_giants_are_quick() -> None:
    assert did_you_mean("x" * 10**6, ("float32",)) == ""
    assert did_you_mean("FLOAT32", ("float32",)) == "did you mean float32? "


def test_every_name_that_is_offered_exists() -> None:
    assert "in-out-channel" in KINDS
    for tag in COMMON:
        if tag not in ("any", "undef"):
            assert FormatTag.parse(tag)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(shell: Literal["bash", "zsh", "fish"]) -> None:
    from hexconv.cli.app import app

    script = app.generate_completion(shell=shell)
    for word in ("best", "cache", "doctor", "layout", "report", "run", "sweep", "tir", "target", "hexagon"):
        assert word in script
