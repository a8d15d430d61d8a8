"""Every command in every environment: 0, 1 or 2, and where it is 2 one line on standard error, whatever goes wrong.

A row of a table is a command line and what surrounds it: files that are pipes, folders that are missing, disks that are
full, numbers that no one meant. Names in braces are files of `surroundings`.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TextIO

import onnx
import pytest
from onnx import TensorProto, helper

from hexconv.cli.app import exit_code
from hexconv.cli.cases import Batch, network_of
from hexconv.cli.commands import COMMANDS
from hexconv.model import ChainEntry, Manifest, NotTaken
from hexconv.model.multipliers import ROUNDING
from tests.deep import one_in

GOOD = "[chain]\ninput = [1, 8, 8, 4]\ndtype = 'uint8'\n[[chain.conv]]\nout_channels = 2\n[plan]\n"
HUGE = GOOD.replace("[plan]", "kernel = 1000\npadding = 1000\n[plan]")
FULL = ("full.csv", "full.npz", "full.svg", "full.html", "into/good.tir", "into/good.toml", "journaled.csv.journal")
PIPES = ("pipe.toml", "pipe.onnx", "pipe.csv", "tables/simulator.csv", "mixed/pipe.toml")
FOLDERS = ("into", "tables", "mixed", "empty", "network", "net")


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good files, and others."""
    here = tmp_path_factory.mktemp("here")
    for folder in FOLDERS:
        (here / folder).mkdir()
    for name in ("good.toml", "mixed/good.toml", "net/1.toml", "net/2.toml"):
        (here / name).write_text(GOOD)
    (here / "grid.toml").write_text(GOOD)
    (here / "huge.toml").write_text(HUGE)
    (here / "nested.toml").write_text("a = " + "[" * 100_000 + "]" * 100_000)
    (here / "network" / "network.toml").write_text("chain = " + "[" * 100_000)
    (here / "nested.csv.journal").write_text("[" * 100_000 + '\n{"key": [1], "limits": {}, "row": {}}\n')
    for name in PIPES:
        os.mkfifo(here / name)
    for name in FULL:
        (here / name).symlink_to("/dev/full")
    onnx.save(model(), here / "model.onnx")
    return here


def model() -> onnx.ModelProto:
    """One conv of 4 to 2 channels."""
    sizes = {"x": [1, 4, 8, 8], "y": [1, 2, 8, 8]}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in sizes.items())
    weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 4, 1, 1], [1.0] * 8)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "net", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def inside(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(surroundings)
    return surroundings


NUMBERS = [
    *([command, "good.toml", "--seconds", number] for command in ("run", "best") for number in ("inf", "1e300", "nan")),
    *(["sweep", "grid.toml", "--out", "t.csv", "--seconds", number] for number in ("inf", "-1", "1e300", "nan")),
    ["run", "good.toml", "--seconds", "0"],
    ["run", "good.toml", "--seed", "-1"],
    ["run", "good.toml", "--seed", "1" + "0" * 30],
    ["run", "good.toml", "--seeds", "0"],
    ["run", "good.toml", "--seeds", "1" + "0" * 12],
    ["sweep", "--random", "1" + "0" * 12],
    ["sweep", "grid.toml", "--out", "t.csv", "--workers", "1" + "0" * 9],
    ["sweep", "grid.toml", "--out", "t.csv", "--memory", "inf"],
    ["best", "good.toml", "--vtcm", "4"],
    ["best", "good.toml", "--vtcm", "-4MiB"],
    ["best", "good.toml", "--vtcm", "\N{ARABIC-INDIC DIGIT FOUR}MiB"],
    ["best", "good.toml", "--vtcm", "infMiB"],
    ["layout", "packed", "NHWC8h8w32c", "--shape", "-1,8,8,4"],
    ["layout", "packed", "NHWC8h8w32c", "--shape", "inf,8,8,4"],
    ["layout", "okk", "aligned", "--shape", "1,8,8,4", "--offset", "-1"],
]
ABSENT = ("missing", "no*.toml", "no**.toml", "[n]o")
MISSING = [
    ["cache", "good.toml", "--csv", "missing/x.csv"],
    ["run", "good.toml", "--csv", "missing/x.csv"],
    ["run", "good.toml", "--save", "missing/x.npz"],
    ["best", "good.toml", "--plot", "missing/x.svg"],
    ["report", "good.toml", "-o", "missing/x.html"],
    ["sweep", "grid.toml", "--out", "missing/x.csv"],
    ["layout", "compare", "good.toml", "--csv", "missing/x.csv"],
    ["layout", "packed", "NHWC8h8w32c", "--shape", "1,8,8,4", "--svg", "missing/x.svg"],
    *([command, name] for command in ("cache", "run", "tir", "best", "report") for name in ABSENT),
    ["sweep", "missing.toml", "--out", "t.csv"],
    ["import", "missing.onnx", "-o", "missing"],
    *([command, "empty"] for command in ("cache", "run", "tir", "best", "report")),
    ["run", "good.toml", "--save", "good.toml"],
    ["run", "good.toml", "--save", "x.toml"],
    ["run", "net", "--save", "x.npz"],
    ["run", "good.toml", "--seeds", "2", "--save", "x.npz"],
    ["cache", "good.toml", "--csv", "into"],
    *([command, "good.toml", "--csv", "good.toml"] for command in ("cache", "run")),
    ["layout", "compare", "good.toml", "--csv", "good.toml"],
    ["report", "good.toml", "-o", "good.toml"],
    ["tir", "good.toml", "-o", "good.toml"],
    ["tir", "good.toml", "-o", "/proc/none/of/this"],
    ["best", "good.toml", "-o", "good.toml/inside"],
    ["report", "good.toml", "--plots", "good.toml"],
    ["import", "model.onnx", "-o", "good.toml"],
]
PIPED = [
    *([command, "pipe.toml"] for command in ("cache", "run", "tir", "best", "report")),
    ["layout", "compare", "pipe.toml", "--csv", "t.csv"],
    ["sweep", "pipe.toml", "--out", "t.csv"],
    ["import", "pipe.onnx", "-o", "missing"],
    ["report", "good.toml", "--sweep", "pipe.csv", "-o", "t.html"],
    ["report", "good.toml", "--tables", "tables", "-o", "t.html"],
    ["cache", "/dev/zero"],
    ["sweep", "/dev/zero", "--out", "t.csv"],
]
FOUND_OUT_LATER = [
    ["run", "huge.toml"],
    ["cache", "good.toml", "--csv", "full.csv"],
    ["run", "good.toml", "--csv", "full.csv"],
    ["run", "good.toml", "--save", "full.npz"],
    ["best", "good.toml", "--plot", "full.svg"],
    ["best", "good.toml", "-o", "into"],
    ["tir", "good.toml", "-o", "into"],
    ["report", "good.toml", "-o", "full.html"],
    ["layout", "compare", "good.toml", "--csv", "full.csv"],
    ["layout", "packed", "NHWC8h8w32c", "--shape", "1,8,8,4", "--svg", "full.svg"],
    ["sweep", "grid.toml", "--out", "journaled.csv"],
]
NESTED = [
    *([command, "nested.toml"] for command in ("cache", "run", "tir", "best", "report")),
    ["sweep", "nested.toml", "--out", "t.csv"],
    ["best", "network"],
]


@pytest.mark.parametrize("words", NUMBERS + MISSING + PIPED + FOUND_OUT_LATER + NESTED, ids=" ".join)
def test_what_can_not_be_done_is_2_and_one_line(
    words: list[str], inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name for path in inside.iterdir()}
    assert exit_code(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("hexconv: ")
    assert captured.err.count("\n") == 1
    assert captured.err.rstrip("\n").isprintable()
    if words not in FOUND_OUT_LATER:
        assert captured.out == ""
        assert {path.name for path in inside.iterdir()} == before


ANSWERED = [
    ["cache", "huge.toml"],
    ["sweep", "grid.toml", "--out", "nested.csv", "--workers", "1"],
    ["best", "good.toml", "--vtcm", "4 MB"],
    ["best", "good.toml", "--vtcm", "999999999999999GiB"],
    ["cache", "net"],
    ["cache", "[g]oo[a-d].toml"],
    ["layout", "compare", "[g]oo[a-d].toml", "--csv", "t.csv"],
    ["tir", "net/*.toml", "-o", "made/of/need"],
]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("words", ANSWERED, ids=" ".join)
def test_what_can_be_done_is_done(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(words) == 0
    assert capsys.readouterr().err == ""


COMMAND_LINES = {
    "best": ["best", "good.toml"],
    "best, where nothing fits": ["best", "good.toml", "--vtcm", "1KiB", "--caches", "all-in-vtcm", "--json"],
    "build": ["build", "good.toml", "-o", "built", "--target", "llvm"],
    "cache": ["cache", "good.toml"],
    "cache --json": ["cache", "good.toml", "--json"],
    "calibrate --help": ["calibrate", "--help"],
    "doctor": ["doctor", "--json"],
    "example": ["example", "-o", "examples"],
    "import": ["import", "model.onnx", "-o", "imported", "--target", "llvm"],
    "layout": ["layout", "packed", "NHWC8h8w32c", "--shape", "1,8,8,4", "--draw"],
    "layout compare": ["layout", "compare", "good.toml", "--csv", "t.csv"],
    "report": ["report", "good.toml", "-o", "t.html"],
    "run": ["run", "good.toml"],
    "sweep": ["sweep", "grid.toml", "--out", "t.csv", "--workers", "1"],
    "tir": ["tir", "good.toml"],
    "verify --help": ["verify", "--help"],
    "--help": ["--help"],
    "run --help": ["run", "--help"],
    "--version": ["--version"],
}


def test_every_command_is_in_the_table() -> None:
    assert {words[0] for words in COMMAND_LINES.values() if not words[0].startswith("-")} == set(COMMANDS)


def closed_pipe() -> TextIO:
    """What `| head -0` leaves of standard output."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def full_disk() -> TextIO:
    return Path("/dev/full").open("w")


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_pipe_that_closes_changes_nothing(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert exit_code(COMMAND_LINES[name]) == (1 if "nothing fits" in name else 0)
        assert capsys.readouterr().err == ""
        monkeypatch.undo()


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_full_disk_is_told(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with full_disk() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert exit_code(COMMAND_LINES[name]) == 2
        said = capsys.readouterr().err
        monkeypatch.undo()
    assert said == "hexconv: standard output: No space left on device; write to a place that has room\n"


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("environment", [closed_pipe, full_disk])
def test_nobody_has_to_read_the_errors(environment: Callable[[], TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    with environment() as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert exit_code(["cache", "missing.toml"]) == 2
        monkeypatch.undo()


WHOLE_PROGRAMS = [
    ("layout packed NHWC8h8w32c --shape 1,8,8,4 | true; exit ${PIPESTATUS[0]}", 0, 0),
    ("layout packed NHWC8h8w32c --shape 1,8,8,4 > /dev/full", 2, 1),
    ("layout packed NHWC8h8w32c --shape 1,8,8,4 >&-", 0, 0),
    ("layout packed NHWC8h8w32c --shape 1,x 2>&-", 2, 0),
    ("--help | true; exit ${PIPESTATUS[0]}", 0, 0),
    ("sweep grid.toml --out t.csv --fresh --scheduler garbage", 2, 1),
    ("sweep grid.toml --out t.csv --fresh --scheduler tls://localhost:4", 2, 1),
]
"""Redirections of a shell, the exit code, and lines on standard error, with what Python says as it ends."""


@pytest.mark.parametrize(("words", "code", "lines"), one_in(2, WHOLE_PROGRAMS))
def test_the_whole_program_ends_as_quietly(words: str, code: int, lines: int, inside: Path) -> None:
    command = f"'{sys.executable}' -m hexconv {words}"
    done = subprocess.run(["bash", "-c", command], cwd=inside, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (code, lines), done.stderr


def test_a_fault_of_our_own_is_one_line_and_shown_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = import_module("hexconv.cli.app")

    def broken(_arguments: list[str]) -> int:
        raise KeyError("a\nb")

    monkeypatch.setattr(program, "exit_code", broken)
    with pytest.raises(SystemExit) as ending:
        program.main([])
    assert ending.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("HEXCONV_TRACEBACK", "1")
    with pytest.raises(KeyError):
        program.main([])


BAD = ("pipe.toml", "broken.toml", "wide.toml", "again/good.toml")


@pytest.fixture
def one_bad_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two good cases among a pipe, no TOML, a case that can't be lowered or run, and a second file of one name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "again").mkdir()
    for name in ("good.toml", "other.toml", "again/good.toml"):
        (tmp_path / name).write_text(GOOD)
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "broken.toml").write_text("[chain")
    (tmp_path / "wide.toml").write_text(GOOD.replace("8, 8, 4", "8, 8, 0"))
    assert stat.S_ISFIFO((tmp_path / "pipe.toml").stat().st_mode)
    return tmp_path


@pytest.mark.parametrize("command", ["cache", "run", "tir", "best", "report", "layout compare"])
def test_a_bad_file_hides_no_good_one(command: str, one_bad_of_many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = {"report": ["-o", "page.html"], "tir": ["-o", "out"], "layout compare": ["--csv", "t.csv"]}.get(command, [])
    assert exit_code([*command.split(), ".", "again/*.toml", *out]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == len(BAD)
    assert all(sum(name in line for line in captured.err.splitlines()) == 1 for name in BAD[:3])
    shown = captured.out + "".join(path.read_text() for path in one_bad_of_many.glob("page.html"))
    assert all(name in shown for name in ("good", "other"))


def test_the_manifest_of_a_network_is_no_case_beside_others_and_stands_for_its_folder_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = "[chain]\ninput = [1, 8, 8, 4]\ndtype = 'uint8'\nconv = [{ out_channels = 2 }]\n"
    entry = {"convs": ("c",), "input": "x", "output": "y", "ended_by": "output", "reason": "it is given back"}
    names = ["two", "one", "unlisted"]
    for name in names:
        (tmp_path / f"{name}.toml").write_text(chain)
    chains = tuple(ChainEntry(case=name, **entry) for name in names[:2])
    manifest = Manifest(model="a.onnx", notes=(ROUNDING, "two: off", "one: off"), chain=chains)
    (tmp_path / "network.toml").write_text(manifest.to_toml())
    every, alone = sorted(tmp_path.glob("*.toml")), [tmp_path / "network.toml"]
    for paths in (every, [tmp_path / "*.toml"], [tmp_path], alone):
        assert [case.name for case in Batch.of(paths, "llvm").cases] == sorted(names)
    listed = [*alone, *(tmp_path / f"{name}.toml" for name in names[:2])]
    for paths in (listed, alone, [tmp_path]):
        assert network_of(paths) == (manifest, [tmp_path / f"{name}.toml" for name in names[:2]])
    assert network_of(every) is None
    note = f"hexconv: a.onnx: 2 notes on convs that differ from the model: {tmp_path}/network.toml\n"
    for command in ("cache", "run", "tir", "best"):
        assert exit_code([command, *map(str, every), "--json"]) == 0
        assert capsys.readouterr().err == note


@pytest.mark.parametrize("command", ["best", "run", "cache"])
def test_a_network_without_a_chain_says_so_and_why(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for left_out, why in ((), "it has no conv"), ((("c", "open sizes"),), "1 conv in none, such as c: open sizes"):
        convs = tuple(NotTaken(node=node, op="Conv", reason=reason) for node, reason in left_out)
        (tmp_path / "network.toml").write_text(Manifest(model="a.onnx", not_taken=convs).to_toml())
        for path in (tmp_path, tmp_path / "network.toml"):
            assert exit_code([command, str(path)]) == 2
            assert f"{tmp_path}/network.toml: a.onnx has no chain: {why}; " in capsys.readouterr().err
