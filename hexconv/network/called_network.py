"""Call a built network from numpy, on this machine.

network = hexconv.load("out")["residual"]
output = network(image)
"""

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hexconv import build
from hexconv.build.called_library import (
    CONTEXT_POINTERS,
    SHARED_FLAGS,
    aligned,
    aligned_bytes,
    call,
    called,
    joined,
    pointer,
    posix,
    shared,
)
from hexconv.build.library import ARCHIVE
from hexconv.errors import InputError
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.network.texts import CALLS, IN_SCALARS, MANIFEST, WEIGHTS, BuiltNetwork
from hexconv.run.measurement import Array, Measurement
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.toolchain import harness_flags, kept_object

OPERATORS = 18
"""How many pointers `struct hexconv_operators` has."""
POINTERS_OF_A_CONTEXT = 4
"""How many pointers the struct of a context has besides the contexts of its chains."""


class _Operators(ctypes.Structure):
    _fields_ = [("pointers", ctypes.c_void_p * OPERATORS)]


@dataclass(frozen=True)
class LoadedNetwork:
    """A loaded network with a context of its own; it serves one call at a time.

    Attributes:
        name: the C identifier that its functions begin with.
        facts: the contents of its `network.json`.
    """

    name: str
    facts: dict[str, Any]
    _library: ctypes.CDLL
    _context: Any
    _kept: tuple[Any, ...]

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        """Run the network; return its outputs in the model's order and shapes.

        Raises:
            InputError: the number of inputs, a shape or a dtype is not the model's.
            RunFailed: the network reports an error.
        """
        ports = self.facts["ports"]
        wanted = [port for port in ports if port["way"] == "input"]
        if len(inputs) != len(wanted):
            raise InputError(
                "inputs", str(len(inputs)), f"{len(wanted)}: {', '.join(port['tensor'] for port in wanted)}"
            )
        memories = [aligned(port["shape"], port["dtype"]) for port in ports]
        for port, memory, given in zip(wanted, memories, inputs, strict=False):
            if given.shape != memory.shape or given.dtype != memory.dtype:
                told = f"{given.dtype} of {list(given.shape)}"
                raise InputError(port["tensor"], told, f"{memory.dtype} of {list(memory.shape)}")
            memory[...] = given
        call(self._library, f"{self.name}_run", self._context, *map(pointer, memories))
        return tuple(memories[len(wanted) :])


def load(folder: Path | str) -> dict[str, Any]:
    """Load what `hexconv build --target llvm` wrote into a folder, chains or a network, by their names in C.

    Raises:
        InputError: there is no such folder, or it was written for Hexagon.
        ToolMissing: zig, which links it, is not installed.
        RunFailed: the library doesn't link, or refuses its weights.
    """
    place = Path(folder)
    if not (place / MANIFEST).exists():
        return dict(build.load(place))
    facts = json.loads((place / MANIFEST).read_text())
    if facts["target"] != "llvm":
        raise InputError(str(place), f"a network for {facts['target']}", "one built with --target llvm")
    network = ready(place, facts, linked_library(place))
    return {network.name: network}


def linked_library(place: Path, *more: str) -> ctypes.CDLL:
    """Link a network for this machine to one shared library; `more` are further flags and sources."""
    operators = [str(kept_object(place / name, *SHARED_FLAGS)) for name in IN_SCALARS]
    return shared(place, (CALLS, "hexconv_posix.c", ARCHIVE), f"-I{place}", *operators, *more)


def ready(place: Path, facts: dict[str, Any], library: ctypes.CDLL, other: Any = None) -> LoadedNetwork:
    """Prepare a context of a loaded network; `other` computes what hexconv has no operator for."""
    weights = aligned_bytes(facts["weights_bytes"])
    weights[...] = np.fromfile(place / WEIGHTS, np.uint8)
    library.hexconv_plain_operators.restype = _Operators
    platform, operators = posix(library), library.hexconv_plain_operators()
    if other is not None:
        operators.pointers[OPERATORS - 1] = ctypes.cast(other, ctypes.c_void_p).value
    context = (ctypes.c_void_p * (POINTERS_OF_A_CONTEXT + CONTEXT_POINTERS * len(facts["chains"])))()
    name = facts["name"]
    call(library, f"{name}_init", context, pointer(weights), ctypes.byref(platform), ctypes.byref(operators))
    return LoadedNetwork(name, facts, library, context, (weights, platform, operators))


def network_object(folder: Path, built: BuiltNetwork, *more: str) -> HexagonObject:
    """Link a Hexagon network behind the entry that the simulator calls; `more` are further flags and sources.

    Raises:
        RunFailed: the network doesn't link.
        ToolMissing: zig is not installed.
    """
    inputs = sum(port.way == "input" for port in built.ports)
    first = inputs + 1 + bool(more)  # behind the weights, and behind what is given where the network is checked
    numbers = (*range(inputs), *range(first, first + len(built.ports) - inputs))
    arguments = ", ".join(f"DATA({number})" for number in numbers)
    operators = [str(kept_object(folder / name, *harness_flags(built.isa))) for name in IN_SCALARS]
    flags = (f"-DNETWORK={built.name}", f"-DTHREADS={built.threads}", f"-DCALL={arguments}", f"-DWEIGHTS={inputs}")
    flags = (*flags, *more, str(folder / CALLS), *operators, "-Wl,--whole-archive")
    elf = joined(folder, folder / ARCHIVE, "network_entry.c", built.isa, *flags, chains=built.chains)
    return called(elf, built.isa, built.scratch_bytes, built.vtcm_bytes, built.threads)


def simulated_network(
    folder: Path, built: BuiltNetwork, kernel: HexagonObject, images: Sequence[Array], simulator: Simulator
) -> Measurement:
    """Call the network once: `NAME_init`, then `NAME_run`.

    Args:
        folder: the folder that the network was built into.
        built: the facts about the network.
        kernel: the object that `network_object` made of it.
        images: its inputs, in the model's shapes.
        simulator: a simulator of the network's instruction set.

    Raises:
        RunFailed: the network returned an error, or wrote past its buffers into a guard.
        ToolMissing: there is no simulator for this instruction set.
    """
    outputs = [(port.shape, port.dtype) for port in built.ports if port.way == "output"]
    return simulator.run_object(kernel, [*images, np.fromfile(folder / WEIGHTS, np.uint8)], outputs)
