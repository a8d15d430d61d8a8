"""Run a built network on the simulator, called through its own C functions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hexconv.build.library import ARCHIVE
from hexconv.build.simulated import called, joined
from hexconv.lower.hexagon import HexagonObject
from hexconv.network.facts import BuiltNetwork
from hexconv.network.texts import SOURCES
from hexconv.run.runner import Array, Measurement
from hexconv.run.simulator.runner import Simulator


def network_object(folder: Path, built: BuiltNetwork) -> HexagonObject:
    """Link a Hexagon network of one input and one output behind the entry that the simulator calls.

    Raises:
        RunFailed: the network doesn't link.
        ToolMissing: zig is not installed.
    """
    sources = [str(folder / name) for name in SOURCES]
    flags = (f"-DNETWORK={built.name}", *sources, "-Wl,--whole-archive")
    elf = joined(folder, folder / ARCHIVE, "network_entry.c", built.isa, *flags)
    return called(elf, built.isa, built.scratch_bytes, built.vtcm_bytes, built.threads)


def simulated_network(
    folder: Path, built: BuiltNetwork, kernel: HexagonObject, image: Array, simulator: Simulator
) -> Measurement:
    """Call the network once: `NAME_init`, then `NAME_run`.

    Args:
        folder: the folder that the network was built into.
        built: the facts about the network.
        kernel: the object that `network_object` made of it.
        image: its input, in the model's shape.
        simulator: a simulator of the network's instruction set.

    Raises:
        RunFailed: the network returned an error, or wrote past its buffers into a guard.
        ToolMissing: there is no simulator for this instruction set.
    """
    weights = np.fromfile(folder / "network.weights.bin", np.uint8)
    outputs: Sequence = [(port.shape, port.dtype) for port in built.ports if port.way == "output"]
    return simulator.run_object(kernel, [image, weights], outputs)
