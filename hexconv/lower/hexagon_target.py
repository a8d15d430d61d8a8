"""The Hexagon that code is compiled for: TVM's target, and the instruction sets that there are.

TVM's kind `hexagon` builds x86 code in 0.27 unless a vendor toolchain is there; its kind `llvm` with a
Hexagon triple gives the real thing (facts of TVM 0.27: HVX intrinsics, vectors of 128 bytes, one entry
`__tvm_ffi_main`).
"""

import re

from tvm.target import Target, codegen

from hexconv.lower.aligned import LLVM_OPTIONS

TRIPLE = "hexagon-unknown-linux-musl"

_BARE_TARGET = Target({"kind": "llvm", "mtriple": TRIPLE})


def isas() -> tuple[str, ...]:
    """Return the instruction sets that TVM's LLVM can emit and that have HVX, newest first: ("v81", ..., "v60")."""
    names = [re.fullmatch(r"hexagonv(\d+)", str(cpu)) for cpu in codegen.llvm_get_cpu_archlist(_BARE_TARGET)]
    numbers = sorted((int(name[1]) for name in names if name), reverse=True)
    return tuple(f"v{number}" for number in numbers if number >= 60)


def hexagon_target(isa: str) -> Target:
    """Return TVM's target for one instruction set with HVX of 128 bytes."""
    features = [f"+hvx{isa}", "+hvx-length128b"]
    options = list(LLVM_OPTIONS)
    return Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": f"hexagon{isa}", "mattr": features, "cl-opt": options})
