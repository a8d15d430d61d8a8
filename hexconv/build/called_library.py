"""Call a built library: on this machine with numpy arrays, or on the simulator through its C functions.

chain = hexconv.load("out")["double_3x3"]
output = chain(image)

Its platform is the simulator's harness: memory between guards, copies that are performed at any moment between their
start and the wait for them, and threads that run in an order that a seed draws.
"""

import ctypes
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.build.built_chain import Argument, Built
from hexconv.errors import InputError, RunFailed
from hexconv.kernel.engine_words import LEAVES, PREFIX, in_c
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.measurement import Array, Measurement
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.toolchain import join_foreign, zig
from hexconv.spec.places import ALIGNMENT_BYTES
from hexconv.written import scratch

CONTEXT_POINTERS = 4
"""How many pointers a chain's context holds, as its header declares it."""


@dataclass(frozen=True)
class Loaded:
    """One chain of a loaded library; it has one context, so it serves one call at a time.

    Attributes:
        name: the C identifier that its functions begin with.
        input: the tensor that a call reads.
        output: the tensor that a call writes.
        image_shape: the logical NHWC shape of the input.
        shape: the logical NHWC shape of the output.
    """

    name: str
    input: Argument
    output: Argument
    image_shape: tuple[int, ...]
    shape: tuple[int, ...]
    _library: ctypes.CDLL
    _context: ctypes.Array[ctypes.c_void_p]
    _kept: tuple[Any, ...]

    def __call__(self, image: Array) -> Array:
        """Compute the output, logical NHWC, of one input, logical NHWC.

        Raises:
            InputError: the image has another shape or dtype than the chain's input.
            RunFailed: the chain returns an error.
        """
        if image.shape != self.image_shape or str(image.dtype) != self.input.dtype:
            given = f"{image.dtype} of {'x'.join(map(str, image.shape))}"
            raise InputError("image", given, f"{self.input.dtype} of {'x'.join(map(str, self.image_shape))}")
        source, target = (aligned(end.shape, end.dtype) for end in (self.input, self.output))
        source[...] = self.input.layout_for(self.image_shape).pack(image)
        call(self._library, f"{self.name}_run", self._context, pointer(source), pointer(target))
        return self.output.layout_for(self.shape).unpack(target)


def load(folder: Path | str) -> dict[str, Loaded]:
    """Load the chains of a folder that `hexconv build --target llvm` wrote; returns them by their names in C.

    Raises:
        InputError: the folder has no built chain, or its chains were built for Hexagon.
        ToolMissing: zig isn't installed, which links the library.
        RunFailed: the library doesn't link, or a chain refuses its weights.
    """
    place = Path(folder)
    manifests = [json.loads(path.read_text()) for path in sorted(place.glob("*.json"))]
    if not manifests:
        raise InputError(str(place), "no built chain", "a folder that hexconv build --target llvm wrote")
    if foreign := [chain["name"] for chain in manifests if chain["target"] != "llvm"]:
        raise InputError(str(place), f"{foreign[0]}.o for {manifests[0]['target']}", "chains built with --target llvm")
    library = shared(place, [*(f"{chain['name']}.o" for chain in manifests), "hexconv_posix.c"])
    return {chain["name"]: _loaded(place, chain, library) for chain in manifests}


SHARED_FLAGS = ("-fPIC", "-O2", "-fno-sanitize=all")
"""The flags that C of a shared library is compiled with."""


def shared(place: Path, files: Iterable[str], *flags: str) -> ctypes.CDLL:
    """Link some files of a folder to one shared library, which needs no file once it is loaded."""
    with scratch() as folder:
        made, sources = str(folder / "made.so"), (str(place / file) for file in files)
        zig("cc", "-shared", *SHARED_FLAGS, *flags, *sources, "-o", made)
        return ctypes.CDLL(made)


def _loaded(place: Path, chain: dict[str, Any], library: ctypes.CDLL) -> Loaded:
    """Return a loaded chain whose context is ready."""
    weights = aligned_bytes(chain["weights_bytes"])
    weights[...] = np.fromfile(place / f"{chain['name']}.weights.bin", np.uint8)
    platform = posix(library)
    context = (ctypes.c_void_p * CONTEXT_POINTERS)()
    call(library, f"{chain['name']}_init", context, pointer(weights), ctypes.byref(platform))
    source, target = (Argument(**{**chain[side], "shape": tuple(chain[side]["shape"])}) for side in ("input", "output"))
    shapes = tuple(chain["image_shape"]), tuple(chain["shape"])
    return Loaded(chain["name"], source, target, *shapes, library, context, (weights, platform))


class _Platform(ctypes.Structure):
    """C's `struct hexconv_platform`, which is six pointers."""

    _fields_ = [("pointers", ctypes.c_void_p * 6)]


def posix(library: ctypes.CDLL) -> _Platform:
    """Return the platform that hexconv_posix.c implements."""
    library.hexconv_posix.restype = _Platform
    return library.hexconv_posix()


def call(library: ctypes.CDLL, function: str, *arguments: Any) -> None:
    """Call a C function that returns one of `enum hexconv_error`; raise RunFailed unless it is HEXCONV_OK."""
    if error := getattr(library, function)(*arguments):
        raise RunFailed(f"{function} returned error {error} of enum hexconv_error (hexconv_platform.h)")


def aligned(shape: Sequence[int], dtype: str) -> Array:
    """Return an uninitialised array whose address is a multiple of a vector's 128 bytes."""
    return aligned_bytes(prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def aligned_bytes(size: int) -> Array:
    """Uninitialised bytes whose address is a multiple of a vector's 128 bytes."""
    memory = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[start : start + size]


def pointer(array: Array) -> ctypes.c_void_p:
    """Return a pointer to the first element of an array."""
    return ctypes.c_void_p(array.ctypes.data)


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
    flags = (f"-DCHAIN={chain.name}", f'-DHEADER="{chain.name}.h"')
    elf = joined(folder, library, "chain_entry.c", chain.isa, *flags, chains=(chain.name,))
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


def joined(folder: Path, library: Path, entry: str, isa: str, *flags: str, chains: Sequence[str] = ()) -> bytes:
    """Link a library and the function that the harness calls to one object.

    Args:
        folder: the folder with the library's headers.
        library: the object or archive of the library.
        entry: the file with the function that the harness calls; it lies beside the simulator's platform.
        isa: the instruction set of the library.
        flags: further flags for the compiler.
        chains: the C names of the chains in the library.
    """
    with resources.as_file(_PLACE) as place, resources.as_file(_HARNESS) as harness, scratch() as own:
        packets = own / "packets.c"
        packets.write_text(_modelled_packets(library.read_bytes(), chains))
        flags = (str(packets), f"-I{folder}", f"-I{harness}", *flags)
        return join_foreign(library, place / entry, isa, *flags)


def _modelled_packets(library: bytes, chains: Sequence[str]) -> str:
    """Return C that takes the place of the matrix engine's packets in chains: functions that jump to the model's."""
    names = [f"{chain}_hmx_{packet}" for chain in chains for packet in LEAVES]
    return "".join(
        in_c(name, f"{{ jump {PREFIX}{name.rpartition('_hmx_')[2]} }}") for name in names if name.encode() in library
    )


def called(elf: bytes, isa: str, scratch_bytes: int, vtcm_bytes: int, threads: int) -> HexagonObject:
    """Describe a library to the simulator; a library asks once for VTCM and once for scratch memory."""
    several = threads if threads > 1 else 0
    return HexagonObject(isa, elf, (scratch_bytes,), (vtcm_bytes,) if vtcm_bytes else (), threads=several)
