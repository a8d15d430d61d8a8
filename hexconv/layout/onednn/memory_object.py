"""oneDNN's memory objects: a descriptor and a flat numpy array, and moving arrays through them.

There is one engine, numpy's, and no stream: every call is done when it returns.

A memory here is a flat array of elements that starts where its parent's memory starts, so that a submemory
and its parent share one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.layout.digits import check_array
from hexconv.layout.onednn.descriptor import MemoryDesc
from hexconv.layout.onednn.onednn_types import COMMON_NAMES, DescriptorError


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


NUMPY = {
    **{"f16": "float16", "f32": "float32", "f64": "float64", "s32": "int32", "s8": "int8", "u8": "uint8"},
    "bf16": "uint16",
}
"""The numpy type of a handle for each data type; numpy has no bfloat16, so its handles hold the bits."""


class Memory:
    """`dnnl::memory`: made by `Memory(desc, handle)`, or by `allocate`; without a handle it has no buffer yet."""

    def __init__(self, desc: MemoryDesc, handle: NDArray[Any] | None = None) -> None:
        """Take a buffer as `set_data_handle` takes it; None is the library's DNNL_MEMORY_NONE.

        Raises:
            DescriptorError: a handle that doesn't fit.
        """
        self._desc = desc
        self._handle: NDArray[Any] | None = None
        if handle is not None:
            self.set_data_handle(handle)

    @classmethod
    def allocate(cls, desc: MemoryDesc) -> Memory:
        """A memory with a buffer of its own, filled with zeros (DNNL_MEMORY_ALLOCATE).

        Raises:
            DescriptorError: `any` has no size yet.
            Unsupported: the memory takes more bytes than an array may have.
        """
        if desc.format_kind == "any":
            raise DescriptorError("create a memory object", "the format is 'any': choose a tag or strides")
        check_array("onednn: a memory", desc.get_size(), 1)
        if desc.is_zero:
            return cls(desc)
        return cls(desc, np.zeros(desc.get_size() // desc.itemsize_bytes, NUMPY[desc.data_type]))

    def get_desc(self) -> MemoryDesc:
        """The descriptor."""
        return self._desc

    def get_data_handle(self) -> NDArray[Any] | None:
        """The buffer itself, not a copy; None where there is none."""
        return self._handle

    def set_data_handle(self, handle: NDArray[Any] | None) -> None:
        """Take a buffer, and write zeros into the padding of its blocks; what lies elsewhere stays.

        This is what the document says; version 3.2 leaves the padding as it is.

        Args:
            handle: flat, writable, of the type of `NUMPY`, at least `get_size()` bytes long; a submemory's
                starts where its parent's starts. That of a zero volume is never touched. None takes the
                buffer away.

        Raises:
            DescriptorError: a handle that doesn't fit.
        """
        if handle is not None and not self._is_empty():
            self._check_type(handle)
            zero_padding(self._desc, handle)
        self._handle = handle

    def write(self, array: NDArray[Any]) -> None:
        """Store a logical array; the padding of the blocks becomes zero."""
        if not self._is_empty():
            write(self._desc, array, self._buffer())

    def read(self) -> NDArray[Any]:
        """The logical array that the buffer holds."""
        if self._is_empty():
            return np.empty(self._desc.dims, NUMPY.get(self._desc.data_type, "uint8"))
        return read(self._desc, self._buffer())

    def reorder_to(self, target: Memory) -> None:
        """Move the elements to where another memory wants them, converted to its type.

        What becomes an integer is rounded to the nearest one, halves to even, and held within the type. Pairs
        of types that the library has no reorder for (f64 with any, f16 with s32) follow the same rule.

        Raises:
            DescriptorError: other dimensions, a bfloat16 on one side alone, or no buffer.
        """
        target.write(converted(self.read(), self._desc.data_type, target._desc.data_type))

    def _is_empty(self) -> bool:
        return self._desc.is_zero or 0 in self._desc.dims

    def _buffer(self) -> NDArray[Any]:
        if self._handle is None:
            raise DescriptorError("use a memory object", "it has no buffer: set_data_handle gives it one")
        return self._handle

    def _check_type(self, handle: NDArray[Any]) -> None:
        wanted = np.dtype(NUMPY[self._desc.data_type])
        if handle.dtype != wanted or not handle.flags.writeable:
            kind = f"{handle.dtype}" if handle.flags.writeable else f"read-only {handle.dtype}"
            reason = f"a {kind} array; {self._desc.data_type} wants a writable one of {wanted}"
            raise DescriptorError("set the data handle", reason)


def converted(array: NDArray[Any], source: str, target: str) -> NDArray[Any]:
    """Convert elements from one data type to another, as the library's reorders do.

    Raises:
        DescriptorError: a bfloat16 on one side alone.
    """
    kinds = {COMMON_NAMES.get(name, name) for name in (source, target)}
    if len(kinds) > 1 and "bf16" in kinds:
        raise DescriptorError("reorder", f"{' and '.join(sorted(kinds))}: bits of bf16 go to bf16 alone")
    wanted = np.dtype(NUMPY.get(COMMON_NAMES.get(target, target), "uint8"))
    if array.dtype == wanted or wanted.kind == "f":
        return array.astype(wanted)
    held = np.clip(np.rint(array.astype(np.float64)), np.iinfo(wanted).min, _highest(array.dtype, wanted))
    return held.astype(wanted)


def _highest(source: np.dtype[Any], wanted: np.dtype[Any]) -> float:
    """The largest value that both types hold: between float32 and int32 it is 2147483520."""
    most = np.iinfo(wanted).max
    if source != np.float32:
        return most
    nearest = np.float32(most)
    return float(nearest if float(nearest) <= most else np.nextafter(nearest, np.float32(0)))
