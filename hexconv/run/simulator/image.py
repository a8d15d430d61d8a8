"""The memory image of a run: one file that holds all that a kernel may touch, laid out and poisoned here.

    header | guard | stack | guard | argument 0 | guard | argument 1 | ... | guard | heap | VTCM | guard

The simulator maps the file, the kernel runs in it, and the same pages are read here afterwards: tensors of
tens of MB go in and out without a pipe. The file has no name: nothing is left when a process dies.
"""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi

from hexconv.errors import Unsupported
from hexconv.kernel.engine import LINE_BYTES
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.measurement import Array, ShapeAndType
from hexconv.run.poison import poison
from hexconv.run.simulator.structures import HEADER, MAGIC, MAX_ARGUMENTS, MAX_DIMENSIONS, Arena
from hexconv.spec.capacities import GRANULE_BYTES

GUARD_BYTES = 4096
STACK_BYTES = 1 << 20
VECTOR_BYTES = 128  # every buffer starts on a whole HVX vector
WORKSPACE_GUARD_BYTES = 1024


@dataclass(frozen=True)
class Layout:
    """The layout of an image: the header to start it with, which holds all offsets, and the size of the image."""

    header: Any
    size_bytes: int


@dataclass(frozen=True)
class Image:
    """A mapped image. `header` and `memory` are views of the same bytes that the simulator maps."""

    file: int
    header: Any
    memory: Array

    def tensor(self, index: int, shape: Sequence[int], dtype: str) -> Array:
        """Return argument `index` as an array over the image's own memory."""
        return self.region(self.header["arguments"][index]["data"]).view(np.dtype(dtype)).reshape(shape)

    def region(self, region: Any) -> Array:
        """Return the bytes of one region."""
        return self.memory[int(region["offset"]) : int(region["offset"] + region["bytes"])]


def laid_out(kernel: HexagonObject, tensors: Sequence[ShapeAndType], vtcm_capacity_bytes: int) -> Layout:
    """Lay out an image for this kernel.

    Args:
        kernel: the kernel, which says which workspaces its code asks for; there is room for all of them at once.
        tensors: the shape and dtype of every argument, inputs first.
        vtcm_capacity_bytes: how much VTCM may be in use at a time.

    Raises:
        Unsupported: more arguments or dimensions than the harness takes.
    """
    if len(tensors) > MAX_ARGUMENTS:
        raise Unsupported(
            f"{len(tensors)} arguments: the simulator's harness takes {MAX_ARGUMENTS}; use a shorter chain"
        )
    header = np.zeros(1, HEADER)[0]
    header["magic"], header["header_bytes"] = MAGIC, HEADER.itemsize
    header["threads"]["count"] = kernel.threads
    end = _place(header["stack"], HEADER.itemsize, STACK_BYTES * (1 + kernel.threads))
    header["argument_count"] = len(tensors)
    for argument, (shape, dtype) in zip(header["arguments"], tensors, strict=False):
        end = _place(argument["data"], end, _describe(argument, shape, dtype))
    heap, vtcm_arena = header["arenas"][Arena.HEAP], header["arenas"][Arena.VTCM]
    end = _plan_arena(heap, end, kernel.heap_bytes, VECTOR_BYTES, WORKSPACE_GUARD_BYTES)
    end = _plan_arena(vtcm_arena, end, kernel.vtcm_bytes, GRANULE_BYTES, GRANULE_BYTES, LINE_BYTES)
    heap["capacity_bytes"], vtcm_arena["capacity_bytes"] = heap["region"]["bytes"], vtcm_capacity_bytes
    return Layout(header, _round_up(end + GUARD_BYTES, mmap.PAGESIZE))


@contextmanager
def opened(layout: Layout) -> Iterator[Image]:
    """Open a nameless file of the layout's size, map and poison it, and write the header at its start."""
    file = os.memfd_create("hexconv-image")
    try:
        os.ftruncate(file, layout.size_bytes)
        memory = np.frombuffer(mmap.mmap(file, layout.size_bytes), np.uint8)
        poison(memory)
        view = memory[: HEADER.itemsize].view(HEADER)
        view[0] = layout.header
        view[0]["image_bytes"] = layout.size_bytes
        yield Image(file, view[0], memory)
    finally:
        os.close(file)


def _describe(argument: Any, shape: Sequence[int], dtype: str) -> int:
    """Fill in a tensor's shape and type; return its size in bytes."""
    if len(shape) > MAX_DIMENSIONS:
        raise Unsupported(f"a tensor of {len(shape)} dimensions: the simulator's harness takes {MAX_DIMENSIONS}")
    element = tvm_ffi.dtype(dtype)
    argument["dimensions"] = len(shape)
    argument["shape"][: len(shape)] = shape
    argument["type_code"], argument["type_bits"], argument["type_lanes"] = (
        element.type_code,
        element.bits,
        element.lanes,
    )
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def _plan_arena(
    arena: Any, end: int, workspaces: Sequence[int], granule_bytes: int, guard_bytes: int, line_bytes: int = 0
) -> int:
    """Make room for all workspaces of a kernel at once, each behind a guard; the first begins with a line, if any."""
    room = sum(_round_up(max(size, 1), granule_bytes) + guard_bytes for size in workspaces) + guard_bytes
    arena["granule_bytes"], arena["guard_bytes"] = granule_bytes, guard_bytes
    if line_bytes and workspaces:
        end = _round_up(end + 2 * GUARD_BYTES, line_bytes) - GUARD_BYTES - guard_bytes
        return _place(arena["region"], end, room, granule_bytes)
    return _place(arena["region"], end, room)


def _place(region: Any, end: int, size_bytes: int, step_bytes: int = GUARD_BYTES) -> int:
    """Place a region behind a guard, at whole steps; return the offset of its end. No run gets 4 GiB."""
    offset = _round_up(end + GUARD_BYTES, step_bytes)
    region["offset"], region["bytes"] = min(offset, 2**32 - 1), min(size_bytes, 2**32 - 1)
    return offset + size_bytes


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step
