"""TVMScript of tests, parsed once, from a short stack."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tvm import tirx
from tvm.script import tirx as T  # noqa: N812 -- TVMScript is written with this name


def prim_func(function: Callable[..., Any]) -> tirx.PrimFunc:
    """Parse a function as `T.prim_func` does, in a thread: TVM reads the source of each frame of its caller's stack.

    There are sixty of them while pytest imports a module, a fifth of a second for each function of its own.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(T.prim_func, function, s_tir=True).result()


vars(prim_func)["dispatch_token"] = "tirx"  # TVM's parser looks for a decorator that has it
