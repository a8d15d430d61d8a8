"""The copy engine on this machine: the harness's own source, built as a library that compiled kernels find by name."""

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
    """The library, its functions visible to kernels that are compiled from now on.

    Raises:
        ToolMissing: no zig to build it.
    """
    return ctypes.CDLL(str(engine_library()), ctypes.RTLD_GLOBAL)


@contextmanager
def opened(copies: Copies) -> Iterator[Any]:
    """An engine for one run; what it found stands in the structure afterwards."""
    library, found = loaded(), np.zeros(1, COPIES)
    copies.ask(found[0])
    library.copies_open(ctypes.c_void_p(found.ctypes.data))
    yield found[0]
    library.copies_close()
