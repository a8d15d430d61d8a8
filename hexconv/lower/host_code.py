"""Compile lowered modules to code for this machine."""

from collections.abc import Iterable, Mapping
from functools import cache

import tvm
from tvm.target import Target, codegen

from hexconv.lower.stages import without_compaction


@cache
def host_target() -> Target:
    """This machine, as LLVM knows it: its CPU by name, without the instructions that it has not.

    A name alone promises too much: LLVM calls a virtual machine on a Zen 4 `znver4`, which has AVX-512, even where the
    virtual machine doesn't pass AVX-512 on. Code for the name ends with SIGILL there.
    """
    cpu = str(codegen.llvm_get_system_cpu())
    named = map(str, codegen.llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": cpu})))
    here = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    without = missing(named, {str(feature): bool(there) for feature, there in here.items()})
    return Target({"kind": "llvm", "mcpu": cpu, **({"mattr": without} if without else {})})


def missing(named: Iterable[str], here: Mapping[str, bool]) -> list[str]:
    """Return the features to take from a CPU's name: those that are known not to be here; LLVM knows of others nothing.

    >>> missing(["avx2", "avx512f", "macrofusion"], {"avx2": True, "avx512f": False, "gfni": False})
    ['-avx512f']
    """
    return [f"-{feature}" for feature in sorted(named) if not here.get(feature, True)]


def compile_for_host(module: tvm.IRModule, target: Target) -> tvm.runtime.Executable:
    """Compile a lowered module by TVM's own pipeline, without the passes that lowering has already done."""
    with without_compaction():
        return tvm.compile(module, target=target)
