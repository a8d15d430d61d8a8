"""Assemble LLVM's text to an object file, in a process apart that loads TVM's libraries and none of its Python."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm_ffi.libinfo import load_lib_ctypes

from hexconv.errors import ToolMissing

STDERR = 2
LIBRARIES = {"tvm_runtime": "RTLD_GLOBAL", "tvm_compiler": "RTLD_LOCAL"}


def assemble(task: dict[str, Any]) -> dict[str, Any]:
    """Assemble `module` (LLVM's text) to `kernel` (an object); LLVM's messages go to `said`."""
    _load()
    usual = os.dup(STDERR)
    said = os.open(task["said"], os.O_WRONLY | os.O_CREAT)
    os.dup2(said, STDERR)
    os.close(said)
    try:
        tvm_ffi.load_module(task["module"]).write_to_file(task["kernel"], "o")
    finally:
        os.dup2(usual, STDERR)
        os.close(usual)
    return {}


@cache
def _load() -> None:
    """Load TVM's libraries, as its Python does.

    Raises:
        ToolMissing: TVM is not installed.
    """
    found = find_spec("tvm")
    if found is None or found.origin is None:
        raise ToolMissing("apache-tvm is not installed: pip install hexconv")
    for name, mode in LIBRARIES.items():
        load_lib_ctypes("tvm", name, mode, extra_lib_paths=[Path(found.origin).parent / "lib"])
