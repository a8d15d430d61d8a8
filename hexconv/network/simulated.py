"""A built network on the simulator, called through its own functions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hexconv.build.library import ARCHIVE
from hexconv.build.simulated import called, joined
from hexconv.lower.hexagon import HexagonObject
from hexconv.network.facts import BuiltNetwork
from hexconv.run.runner import Array, Measurement
from hexconv.run.simulator.runner import Simulator

SOURCES = ("network.c", "hexconv_operators.c")


def network_object(folder: Path, built: BuiltNetwork) -> HexagonObject:
    """A network that was built for Hexagon, with one input and one output, behind the entry that the simulator calls.

    Raises:
        RunFailed: it doesn't link.
        ToolMissing: no zig.
    """
    sources = [str(folder / name) for name in SOURCES]
    flags = (f"-DNETWORK={built.name}", *sources, "-Wl,--whole-archive")
    elf = joined(folder, folder / ARCHIVE, "network_entry.c", built.isa, *flags)
    return called(elf, built.isa, built.scratch_bytes, built.vtcm_bytes, built.threads)


def simulated_network(
    folder: Path, built: BuiltNetwork, kernel: HexagonObject, image: Array, simulator: Simulator
) -> Measurement:
    """Call it once: `NAME_init`, then `NAME_run`.

    Args:
        folder: that it was built into.
        built: what is known of it.
        kernel: made of it, by `network_object`.
        image: its input, as the model has it.
        simulator: whose instruction set is the network's.

    Raises:
        RunFailed: it returned an error, or broke a guard.
        ToolMissing: no simulator for this instruction set.
    """
    weights = np.fromfile(folder / "network.weights.bin", np.uint8)
    outputs: Sequence = [(port.shape, port.dtype) for port in built.ports if port.way == "output"]
    return simulator.run_object(kernel, [image, weights], outputs)
