"""Every column of a committed table, and every key of a command's JSON, has a sentence on the page of columns."""

import contextlib
import csv
import io
import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hexconv.cli.answers import VERSION
from hexconv.cli.app import exit_code
from hexconv.report.json_keys import COMMANDS, keys_of
from hexconv.spec import Plan
from reports.columns import TABLES, columns_page
from tests.deep import one_in
from tests.docs.console import inside
from tests.search.test_calibration import LINES

ROOT = Path(__file__).parents[2]
NAMES_OF_VALUES = ("plan", "plans", "stalls", "fixed", "turned", "statuses", "view", "address")
"""Keys whose value has names that the page doesn't list: knobs, causes, and names of the model or of a layout."""

CASE = """
[chain]
input = [1, 16, 16, 32]
dtype = "uint8"
conv = [{ out_channels = 32, requantize = { multiplier = 1073741824 } }, { out_channels = 32 }]
"""
OF_CASES = ("run case.toml --target llvm", "cache case.toml", "tir case.toml", "layout compare case.toml --csv t.csv")
COMMAND_LINES = {
    "best": ("best case.toml --vtcm 1MiB", "best case.toml --vtcm 4KiB"),
    "build CASE": ("build case.toml -o lib",),
    "build MODEL": ("build residual.onnx -o net",),
    "calibrate": ("calibrate lines.txt",),
    "doctor": ("doctor",),
    "example": ("example",),
    "import": ("import residual.onnx -o chains",),
    "layout": (
        "layout onednn nChw16c --shape 1,3,4,4 --at 0,0,0,0",
        "layout okk aligned --shape 1,3,4,4 --at 0,0,0,0",
        "layout mace conv2d_filter --shape 8,8,3,3",
    ),
    "sweep --random": ("sweep --random 1 --seed 1 --workers 1",),
    **{" ".join(line.split()[: 2 if line.startswith("layout") else 1]): (line,) for line in OF_CASES},
}


def committed() -> list[str]:
    """The names of the tables that the repository has; none outside of a repository."""
    listed = subprocess.run(("git", "ls-files", "reports/*.csv"), cwd=ROOT, capture_output=True, text=True)
    return [Path(name).name for name in listed.stdout.splitlines()]


@pytest.mark.parametrize("name", sorted({*TABLES, *committed()}))
def test_every_column_of_every_committed_table_has_a_sentence(name: str) -> None:
    with (ROOT / "reports" / name).open(newline="") as file:
        header = next(csv.reader(file))
    _, said = TABLES[name]
    assert [column for column in header if not said.get(column)] == []


def test_the_page_shows_every_table_and_every_command() -> None:
    page = columns_page()
    for name, (_, columns) in TABLES.items():
        assert f"## `reports/{name}`" in page
        assert all(f"| `{column}` |" in page for column in columns)
    for command in COMMANDS:
        assert f"### hexconv {command} --json" in page
        assert all(keys_of(command).values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("json")
    (place / "case.toml").write_text(CASE)
    (place / "lines.txt").write_text(LINES)
    with inside(place), contextlib.redirect_stdout(io.StringIO()):
        exit_code(["example"])
    return place


@pytest.mark.parametrize("command", one_in(3, COMMAND_LINES))
def test_every_key_of_json_has_a_sentence(command: str, folder: Path) -> None:
    known = {name.replace("[]", ""): said for name, said in keys_of(command).items()}
    for line in COMMAND_LINES[command]:
        out = io.StringIO()
        with inside(folder), contextlib.redirect_stdout(out):
            exit_code([*shlex.split(line), "--json"])
        rows = json.loads(out.getvalue())
        assert all(row["version"] == VERSION for row in (rows if isinstance(rows, list) else [rows]))
        found = set(_keys(rows, known))
        assert found, line
        assert found - set(known) == set()


def _keys(value: Any, known: Mapping[str, str], prefix: str = "") -> Iterator[str]:
    """The keys of JSON as the page spells them, but for the marks of lists; it goes where a sentence says no keys."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each, known, prefix)
    elif isinstance(value, dict):
        for name, inner in value.items():
            key = prefix + ("*" if prefix == "kernels." and isinstance(inner, list) else name)
            if not key.endswith(".*"):
                yield key
            if name not in NAMES_OF_VALUES and "keys" not in known.get(key, ""):
                yield from _keys(inner, known, f"{key}.")


def test_the_knobs_of_a_plan_have_a_page_of_their_own() -> None:
    assert "knobs.md" in columns_page()
    assert {one.name for one in fields(Plan)} <= {name.strip("`") for name in _words(columns_page())}


def _words(page: str) -> Iterator[str]:
    return (line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `"))
