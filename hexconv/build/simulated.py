"""Runs a built library on the simulator, through the library's own C functions.

Its platform is the simulator's harness: memory between guards, copies that are performed at any moment between their
start and the wait for them, and threads that take turns in an order that a seed draws.
"""

from importlib import resources
from pathlib import Path

import numpy as np

from hexconv.build.chain import Built
from hexconv.lower.hexagon import HexagonObject
from hexconv.run.runner import Array, Measurement
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.toolchain import join_foreign

_PLACE = resources.files("hexconv.build") / "simulator"
_HARNESS = resources.files("hexconv.run") / "simulator"
"""The folder that `harness/copies.h` and its like are found in."""


def simulated_chain(folder: Path, chain: Built, image: Array, simulator: Simulator) -> Measurement:
    """Call a chain that was built for Hexagon once: `NAME_init`, then `NAME_run`.

    Args:
        folder: the folder that the chain was built into.
        chain: the built chain.
        image: the input of the chain, logical NHWC.
        simulator: a simulator whose instruction set is the chain's.

    Raises:
        RunFailed: the library doesn't link, returned an error, or broke a guard.
        ToolMissing: zig isn't installed, or no simulator for this instruction set is.
    """
    kernel = chain_object(folder, chain, folder / f"{chain.name}.o")
    weights = np.fromfile(folder / f"{chain.name}.weights.bin", np.uint8)
    return called_chain(kernel, chain, image, weights, simulator)


def chain_object(folder: Path, chain: Built, library: Path) -> HexagonObject:
    """Link one chain of an object or archive behind the entry that the simulator calls; errors are as above.

    Args:
        folder: the folder with the chain's header.
        chain: the built chain.
        library: the object or archive that has it.
    """
    flags = (f"-DCHAIN={chain.name}", f'-DHEADER="{folder / chain.name}.h"')
    elf = joined(folder, library, "chain_entry.c", chain.isa, *flags)
    return called(elf, chain.isa, chain.scratch_bytes, chain.vtcm_bytes, chain.threads)


def called_chain(
    kernel: HexagonObject, chain: Built, image: Array, weights: Array, simulator: Simulator
) -> Measurement:
    """Call a chain that is linked once, as `simulated_chain` does.

    Args:
        kernel: the object that `chain_object` made of it.
        chain: the built chain.
        image: the input of the chain, logical NHWC.
        weights: the bytes of its weights.
        simulator: a simulator whose instruction set is the chain's.
    """
    given = chain.input.layout_for(chain.image_shape).pack(image)
    return simulator.run_object(kernel, [given, weights], [(chain.output.shape, chain.output.dtype)])


def joined(folder: Path, library: Path, entry: str, isa: str, *flags: str) -> bytes:
    """Link a library and the function that the harness calls to one object.

    Args:
        folder: the folder with the library's headers.
        library: the object or archive of the library.
        entry: the file with the function that the harness calls; it lies beside the simulator's platform.
        isa: the instruction set of the library.
        flags: further flags for the compiler.
    """
    with resources.as_file(_PLACE) as place, resources.as_file(_HARNESS) as harness:
        return join_foreign(library, place / entry, isa, f"-I{folder}", f"-I{harness}", *flags)


def called(elf: bytes, isa: str, scratch_bytes: int, vtcm_bytes: int, threads: int) -> HexagonObject:
    """Describe a library to the simulator; a library asks once for VTCM and once for scratch memory."""
    several = threads if threads > 1 else 0
    return HexagonObject(isa, elf, (scratch_bytes,), (vtcm_bytes,) if vtcm_bytes else (), threads=several)
