"""The Hexagon that code is compiled for: TVM's target, and the instruction sets that there are.

TVM's kind `hexagon` builds x86 code in 0.27 unless a vendor toolchain is there; its kind `llvm` with a
Hexagon triple gives the real thing (facts of TVM 0.27: HVX intrinsics, vectors of 128 bytes, one entry
`__tvm_ffi_main`).
"""

import re
from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.target import Target, codegen

from hexconv.lower.aligned import LLVM_OPTIONS

TRIPLE = "hexagon-unknown-linux-musl"

LONG_LOOPS = "hexconv.long_loops"
"""An attribute of functions whose loops LLVM should pipeline though a trip is longer than its default limit."""

_PIPELINES_LONG_LOOPS = "-pipeliner-max-mii:int=60"
"""LLVM's default is 27 packets a trip. Two rows of a depthwise conv that go down take 40; those that go along rows lose
by being pipelined, since there are too few of them to fill and drain a pipeline."""

_REMADE = "-disable-machine-cse:bool=1"
WAYS = (
    (),
    (_REMADE, "-grow-region-complexity-budget:uint=0"),
    (_REMADE, "-disable-merge-into-combines:bool=1"),
)
"""Options of LLVM: none, a constant made anew wherever it is used and fewer values in registers over loops that don't
use them, and the same constants without joining two words into a pair. Some loops then take fewer packets, and some
more."""

_BARE_TARGET = Target({"kind": "llvm", "mtriple": TRIPLE})


def isas() -> tuple[str, ...]:
    """Return the instruction sets that TVM's LLVM can emit and that have HVX, newest first: ("v81", ..., "v60")."""
    names = [re.fullmatch(r"hexagonv(\d+)", str(cpu)) for cpu in codegen.llvm_get_cpu_archlist(_BARE_TARGET)]
    numbers = sorted((int(name[1]) for name in names if name), reverse=True)
    return tuple(f"v{number}" for number in numbers if number >= 60)


def with_long_loops(function: tirx.PrimFunc, like: tirx.PrimFunc) -> tirx.PrimFunc:
    """Let a function's long loops be pipelined if those of another one are."""
    return function.with_attr(LONG_LOOPS, True) if (like.attrs or {}).get(LONG_LOOPS) else function


def hexagon_target(isa: str, module: tvm.IRModule | None = None, more: Sequence[str] = ()) -> Target:
    """Return TVM's target for one instruction set with HVX of 128 bytes.

    Args:
        isa: the instruction set.
        module: what is compiled; it says which of LLVM's options it wants.
        more: further options of LLVM.
    """
    features = [f"+hvx{isa}", "+hvx-length128b"]
    functions = module.functions.values() if module else ()
    has_long = any((function.attrs or {}).get(LONG_LOOPS) for function in functions)
    options = [*LLVM_OPTIONS, *([_PIPELINES_LONG_LOOPS] if has_long else []), *more]
    return Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": f"hexagon{isa}", "mattr": features, "cl-opt": options})
