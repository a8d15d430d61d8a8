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

OPTIONS = "hexconv.llvm_options"
"""An attribute of functions: options of LLVM that they want beside those that all are compiled with."""

PIPELINES_LONG_LOOPS = "-pipeliner-max-mii:int=60"
"""LLVM's default is 27 packets a trip. Two rows of a depthwise conv that go down take 40; those that go along rows lose
by being pipelined, since there are too few of them to fill and drain a pipeline."""

KEEPS_ADDRESS_SUMS = "-isel-rebalance-addr:bool=0"
"""LLVM 22 balances sums of addresses and reads nodes that it has replaced meanwhile (LLVM 64371, mended by pull request
179239): chains with an Add in bands of several threads, whose copies overlap compute, end the process. No other chain
did, and depthwise convs of stride 2 take 5 % more packets without."""

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


def with_options_of(like: tirx.PrimFunc, function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Let a function be compiled with the options that another one wants."""
    wanted = (like.attrs or {}).get(OPTIONS)
    return function.with_attr(OPTIONS, wanted) if wanted else function


def hexagon_target(isa: str, module: tvm.IRModule | None = None, more: Sequence[str] = ()) -> Target:
    """Return TVM's target for one instruction set with HVX of 128 bytes.

    Args:
        isa: the instruction set.
        module: what is compiled; its functions say which of LLVM's options they want.
        more: further options of LLVM.
    """
    features = [f"+hvx{isa}", "+hvx-length128b"]
    functions = module.functions.values() if module else ()
    wanted = {str(option) for function in functions for option in (function.attrs or {}).get(OPTIONS, ())}
    options = [*LLVM_OPTIONS, *sorted(wanted), *more]
    return Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": f"hexagon{isa}", "mattr": features, "cl-opt": options})
