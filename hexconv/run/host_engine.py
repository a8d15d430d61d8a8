"""The copy engine on this machine: the harness's source, built as a library whose functions kernels find by name."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from hexconv.run.copies import Copies
from hexconv.run.simulator.structures import COPIES
from hexconv.run.simulator.toolchain import engine_library


@lru_cache
def loaded() -> ctypes.CDLL:
    """Load the library, so that kernels compiled from now on find its functions.

    Raises:
        ToolMissing: zig, which builds the library, is not installed.
    """
    return ctypes.CDLL(str(engine_library()), ctypes.RTLD_GLOBAL)


@contextmanager
def opened(copies: Copies) -> Iterator[Any]:
    """Open an engine for one run. After the run the structure holds what the engine found."""
    library, found = loaded(), np.zeros(1, COPIES)
    copies.ask(found[0])
    library.copies_open(ctypes.c_void_p(found.ctypes.data))
    yield found[0]
    library.copies_close()
