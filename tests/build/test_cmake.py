"""What CMake makes of a library's CMakeLists.txt."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.build.test_build import CASES, ZIG, built

needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")


def made(folder: Path) -> Path:
    """The example of `double`, configured and compiled by CMake."""
    build, environment = folder / "made", {**os.environ, "CC": shutil.which("cc") or ZIG}
    told = {"capture_output": True, "text": True, "env": environment, "check": False}
    for command in (["cmake", "-S", str(folder), "-B", str(build)], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, **told)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "double_example"


@needs_cmake
def test_an_example_that_cmake_makes_runs_on_this_machine(tmp_path: Path) -> None:
    built(tmp_path, CASES["double"])
    done = subprocess.run([str(made(tmp_path))], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("double: 0 of "), done.stderr
