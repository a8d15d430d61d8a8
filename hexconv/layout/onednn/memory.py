"""Moving numpy arrays through a descriptor's memory, as the library's reorders do.

A memory here is a flat array of elements that starts where its parent's memory starts, so that a submemory
and its parent share one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.layout.onednn.descriptor import MemoryDesc
from hexconv.layout.onednn.errors import DescriptorError


def write(desc: MemoryDesc, array: NDArray[Any], memory: NDArray[Any]) -> None:
    """Write a logical array into a memory; zero the padding of the blocks, touch nothing else.

    Raises:
        DescriptorError: the shape isn't the descriptor's, or the memory ends too early.
    """
    _check(desc, array.shape, memory)
    zero_padding(desc, memory)
    memory[_offsets(desc)] = array


def zero_padding(desc: MemoryDesc, memory: NDArray[Any]) -> None:
    """Write zeros into the padding of the blocks, and nowhere else.

    Raises:
        DescriptorError: the memory ends too early.
    """
    _check(desc, desc.dims, memory)
    padding = np.ones(desc.padded_dims, np.bool_)
    padding[tuple(slice(size) for size in desc.dims)] = False
    if padding.any():
        memory[_offsets(replace(desc, dims=desc.padded_dims))[padding]] = 0


def read(desc: MemoryDesc, memory: NDArray[Any]) -> NDArray[Any]:
    """The logical array that a memory holds."""
    _check(desc, desc.dims, memory)
    return memory[_offsets(desc)]


def reorder(source: MemoryDesc, memory: NDArray[Any], target: MemoryDesc, into: NDArray[Any]) -> None:
    """Move the elements of one memory to where another descriptor wants them."""
    write(target, read(source, memory), into)


def _offsets(desc: MemoryDesc) -> NDArray[np.int64]:
    """The offset of every element from the start of the memory, in elements."""
    return desc.layout().positions() + desc.offset0


def _check(desc: MemoryDesc, shape: tuple[int, ...], memory: NDArray[Any]) -> None:
    if shape != desc.dims:
        raise DescriptorError("reorder", f"the array has shape {list(shape)}, the descriptor {list(desc.dims)}")
    needed = desc.offset0 + desc.layout().elements
    if memory.ndim != 1 or memory.size < needed:
        reason = f"a memory of shape {list(memory.shape)} for {needed} elements"
        raise DescriptorError("reorder", reason)
