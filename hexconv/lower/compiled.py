"""Compile the functions that C calls to an object file that holds nothing else.

Functions for Hexagon are compiled in three ways, and the one whose innermost loops take fewest packets is taken. Their
caches are parameters, so that LLVM begins with other live ranges than where a kernel allocates its caches itself. Which
registers it then gives to a loop is a matter of luck, and with it how many of the loop's instructions share a packet.
"""

import re
from functools import lru_cache

import tvm
from tvm import tirx
from tvm.target import Target

from hexconv.lower.callable import Callable
from hexconv.lower.hexagon_target import WAYS, hexagon_target, isas
from hexconv.lower.host import host_target
from hexconv.lower.object_file import as_it_is, object_file
from hexconv.lower.passes import without_compaction

ENTRY = "tirx.is_entry_func"
"""An attribute that TVM's pipeline gives to a module's only function: LLVM would then get TVM's own entry beside it."""

UNKNOWN_TRIPS = 8
"""What a loop counts for whose trips are in a register."""
MOST_CHAINS = 64
"""How many chains keep what TVM's passes made of them, for the next instruction set."""


def compiled(functions: Callable, target: str, isa: str) -> bytes:
    """Compile functions by TVM's own passes and LLVM.

    Args:
        functions: the result of `callable_module`.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, if the target is Hexagon.
    """
    if target == "hexagon":
        ways = [hexagon_target(isa, functions.module, more) for more in WAYS]
        libraries = [(_library(functions, target, machine), machine) for machine in ways]
        made = [object_file(library, library.inspect_source("asm"), isa, machine) for library, machine in libraries]
        return min(made, key=lambda each: packets_in_loops(each[1]))[0]
    return as_it_is(_library(functions, target, host_target()))


def packets_in_loops(text: str) -> int:
    r"""Count the packets that one entry of each innermost hardware loop of some assembly takes.

    >>> loop = [".LBB0_1:", "{", "r0 = add(r0,#1)", "}", "{", "r1 = r0", "} :endloop0", "{", "jumpr r31", "}"]
    >>> packets_in_loops("\n".join(["loop0(.LBB0_1,#9)", "}", *loop]))
    18
    >>> packets_in_loops("\n".join(["loop0(.LBB0_1,r7)", "}", *loop])) == 2 * UNKNOWN_TRIPS
    True
    """
    trips = {begin: int(count) if count.isdigit() else UNKNOWN_TRIPS for begin, count in _LOOP.findall(text)}
    now, packets, found = 0, 0, 0
    for line in text.splitlines():
        label = line.partition(":")[0]
        if label in trips:
            now, packets = trips[label], 0
        elif _END.match(line):
            packets += 1
            found += now * packets if ":endloop0" in line else 0
    return found


_LOOP, _END = re.compile(r"loop0\(#*([.\w$]+),\s*#*(\w+)\)"), re.compile(r"\s*}")


def _library(functions: Callable, target: str, machine: Target) -> tvm.runtime.Module:
    """Let LLVM compile functions for a machine."""
    passed = _passed(functions, target).functions
    bound = {name: function.with_attr("target", machine) for name, function in passed.items()}
    return tvm.get_global_func("target.build.llvm")(tvm.IRModule(bound), machine)


@lru_cache(maxsize=MOST_CHAINS)
def _passed(functions: Callable, target: str) -> tvm.IRModule:
    """Run TVM's own passes, which see no instruction set, and none of LLVM's options."""
    pipeline, finish, _device = tirx.get_tir_pipeline("default")
    machine = hexagon_target(isas()[0]) if target == "hexagon" else host_target()
    bound = tirx.transform.BindTarget(machine.with_host(machine))(functions.module)
    with without_compaction():
        finished = finish()(pipeline(bound))
    return tvm.IRModule({name: function.without_attr(ENTRY) for name, function in finished.functions.items()})
