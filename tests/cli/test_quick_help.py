"""What needs no TVM doesn't wait for it."""

import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest

from hexconv.cli.app import app
from hexconv.cli.commands import COMMANDS, described

SLOW = ("tvm", "tvm_ffi", "numpy", "pandas", "altair", "pydantic")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=lambda one: one[0])
def test_the_program_tells_of_its_commands_without_importing_any(arguments: list[str]) -> None:
    asked = f"""
import sys
from hexconv.cli.app import exit_code
code = exit_code({arguments!r})
print(code, sorted({{name.partition(".")[0] for name in sys.modules}} & set({SLOW!r})), file=sys.stderr)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stderr.splitlines()[-1] == "0 []"
    if arguments == ["--help"]:
        assert all(f" {name} " in told.stdout for name in COMMANDS)


def test_a_layout_is_described_without_tvm() -> None:
    asked = """
import sys
from hexconv.cli.app import exit_code
code = exit_code(["layout", "packed", "NHWC8h8w32c", "--shape", "1,8,8,4", "--json"])
print(code, sorted({"tvm", "pandas", "altair", "pydantic"} & sys.modules.keys()), file=sys.stderr)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stderr.splitlines()[-1] == "0 []"


def test_the_help_of_every_command_needs_no_tvm_and_names_only_files_that_are_there(tmp_path: Path) -> None:
    """One program asks for all of them, in a folder of its own: an installed wheel has no `schedules`."""
    asked = f"""
import sys
from hexconv.cli.app import exit_code
for command in {[[name] for name in COMMANDS] + [["layout", "compare"], ["layout", "reorder"], []]!r}:
    assert exit_code([*command, "--help"]) == 0
    print(command, sorted({{name.partition(".")[0] for name in sys.modules}} & set({SLOW!r})))
"""
    wide = {**os.environ, "COLUMNS": "400"}
    told = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path, env=wide
    ).stdout
    assert told.count("] []\n") == len(COMMANDS) + 3
    named = re.findall(r"[\w./-]*/[\w.-]+\.(?:md|toml)\b", told)
    assert named
    assert all(Path(name).is_file() for name in named), named


def test_help_fits_the_terminal_and_breaks_no_word() -> None:
    """A program for each of four widths asks for all of it; the widest shows every word whole."""
    asked = f"""
from hexconv.cli.app import exit_code
for command in {[[name] for name in COMMANDS] + [["layout", "compare"], ["layout", "reorder"]]!r}:
    assert exit_code([*command, "--help"]) == 0
"""
    shown: dict[int, str] = {}
    for width in (1000, 60, 80, 140):
        told = {**os.environ, "COLUMNS": str(width)}
        program = [sys.executable, "-c", asked]
        shown[width] = subprocess.run(program, capture_output=True, text=True, check=True, env=told).stdout
    words = {width: set(re.sub("[│╭╮╰╯─]", " ", text).split()) for width, text in shown.items()}
    for width in (60, 80, 140):
        assert max(map(len, shown[width].splitlines())) <= width
        assert words[width] <= words[1000]


def test_a_search_of_chains_and_of_a_model_needs_no_tvm_and_no_pandas(tmp_path: Path) -> None:
    """It lowers nothing: one program plans both, for each objective, without runs."""
    asked = """
import sys
from hexconv.cli.app import exit_code
for command in ("example", "import residual.onnx -o net", *(
    f"best {what} --vtcm 1MiB --no-run --objective {objective} --json"
    for what in ("net", "residual.onnx") for objective in ("time", "traffic", "latency", "footprint")
)):
    assert exit_code(command.split()) == 0, command
    print(command, sorted({"tvm", "pandas", "jinja2"} & sys.modules.keys()), file=sys.stderr)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stderr.count(" []\n") == 10, told.stderr


EXTRAS = ("altair", "vl_convert", "onnxruntime", "PIL", "distributed", "scipy", "hypothesis", "elftools")


def test_the_way_of_readme_needs_no_package_of_an_extra(tmp_path: Path) -> None:
    """One program walks it with those packages taken away, as after `pip install hexconv` alone."""
    asked = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))
from hexconv.cli.app import exit_code
way = ("example", "import residual.onnx -o net --weights", "best net --vtcm 1MiB -o plans", "best residual.onnx",
       "doctor", "cache net/03-head1.toml", "tir net/03-head1.toml -o tir",
       "run plans --target llvm", "build plans -o lib")
for command in way:
    assert exit_code(command.split()) == 0, command
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_read_from_the_source_is_what_the_command_says_of_itself(name: str) -> None:
    module, _, member = COMMANDS[name].partition(":")
    command = getattr(import_module(f"hexconv.cli.{module}"), member)
    whole = command.help if name == "layout" else inspect.getdoc(command)
    assert described(module, member)
    assert whole
    assert whole.startswith(described(module, member))
    assert "Args:" not in described(module, member)
    assert app[name].help == described(module, member)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_runs_no_program(shell: Literal["bash", "zsh", "fish"]) -> None:
    script = app.generate_completion(shell=shell)
    assert "$(hexconv" not in script
    assert "`hexconv" not in script
    assert "(hexconv " not in script
