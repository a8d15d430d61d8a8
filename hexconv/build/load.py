"""Loads a built library on this machine, and calls it with numpy arrays.

chain = hexconv.load("out")["double_3x3"]
output = chain(image)
"""

import ctypes
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.build.wording import Argument
from hexconv.errors import InputError, RunFailed
from hexconv.lower.signature import ALIGNMENT_BYTES
from hexconv.run.runner import Array
from hexconv.run.simulator.toolchain import zig
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


def shared(place: Path, files: Iterable[str], *flags: str) -> ctypes.CDLL:
    """Link some files of a folder to one shared library, which needs no file once it is loaded."""
    with scratch() as folder:
        made, sources = str(folder / "made.so"), (str(place / file) for file in files)
        zig("cc", "-shared", "-fPIC", "-O2", "-fno-sanitize=all", *flags, *sources, "-o", made)
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
