"""Compile lowered modules to code for this machine."""

import tvm
from tvm.target import Target

from hexconv.lower.passes import without_compaction


def compile_for_host(module: tvm.IRModule, target: Target) -> tvm.runtime.Executable:
    """Compile a lowered module by TVM's own pipeline, without the passes that lowering has already done."""
    with without_compaction():
        return tvm.compile(module, target=target)
