"""Compile the functions that C calls to an object file that holds nothing else."""

import tempfile
from pathlib import Path

import tvm
from tvm import tirx

from hexconv.lower.callable import Callable
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.host import host_target
from hexconv.lower.object_file import object_file
from hexconv.lower.passes import without_compaction

ENTRY = "tirx.is_entry_func"
"""An attribute that TVM's pipeline gives to a module's only function: LLVM would then get TVM's own entry beside it."""


def compiled(functions: Callable, target: str, isa: str) -> bytes:
    """Compile functions by TVM's own passes and LLVM.

    Args:
        functions: the result of `callable_module`.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, if the target is Hexagon.
    """
    machine = hexagon_target(isa, functions.module) if target == "hexagon" else host_target()
    pipeline, finish, _device = tirx.get_tir_pipeline("default")
    bound = tirx.transform.BindTarget(machine.with_host(machine))(functions.module)
    with without_compaction():
        finished = finish()(pipeline(bound))
    plain = tvm.IRModule({name: function.without_attr(ENTRY) for name, function in finished.functions.items()})
    library = tvm.get_global_func("target.build.llvm")(plain, machine)
    if target == "hexagon":
        return object_file(library, library.inspect_source("asm"), isa, machine)[0]
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        path = Path(folder) / "kernel.o"
        library.write_to_file(str(path), "o")
        return path.read_bytes()
