"""oneDNN on this machine, by its C interface: convs of float32, one after the other.

Each conv runs as the library likes it best: filters in the layout that it asks for (re-laid before anything is timed),
activations dense NHWC or in the layout that it asks for.

Names of functions, codes of arguments, queries and kinds: oneapi/dnnl/dnnl.h and dnnl_types.h of version 3.2.
"""

import ctypes
import sys
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from hexconv.errors import RunFailed, ToolMissing, Unsupported
from hexconv.run.runner import Array
from hexconv.spec import Chain, Conv2d

LIBRARY = "libdnnl.so.3"
INSTALL = 'pip install "hexconv[bench]"'
FLOAT32, CPU, IN_ORDER, FORWARD_INFERENCE, AUTOMATIC = 3, 1, 1, 96, 3
SOURCE, TARGET, FILTER = 1, 17, 33
QUERIES = {SOURCE: 129, FILTER: 131, TARGET: 133}
ANY = 1
MOST_AXES = 12
ALIGNMENT_BYTES = 64
STATUS = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 5: "runtime error"}


class _Version(ctypes.Structure):
    _fields_ = (("major", c_int), ("minor", c_int), ("patch", c_int))


class _Argument(ctypes.Structure):
    _fields_ = (("which", c_int), ("memory", c_void_p))


@dataclass(frozen=True)
class _Memory:
    """A tensor of oneDNN, with the bytes that it lies in."""

    dims: tuple[int, ...]
    desc: c_void_p
    handle: c_void_p
    data: Array


@dataclass(frozen=True)
class _Primitive:
    """A conv that is ready to run."""

    handle: c_void_p
    arguments: "ctypes.Array[_Argument]"
    memories: tuple[_Memory, ...]


@dataclass(frozen=True)
class Convs:
    """A chain that is ready to run in oneDNN, its inputs in place.

    Attributes:
        version: the version of the library.
    """

    chain: Chain
    version: str
    convs: tuple[_Primitive, ...]

    def run(self) -> None:
        """Run all convs and wait."""
        _, stream = _engine_and_stream()
        for conv in self.convs:
            _check(_library().dnnl_primitive_execute(conv.handle, stream, len(conv.arguments), conv.arguments))
        _check(_library().dnnl_stream_wait(stream))

    def output(self) -> Array:
        """Return the output of the last run, logical NHWC."""
        target = self.convs[-1].memories[-1]
        n, h, w, k = self.chain.shapes[-1]
        dense = np.empty((n, h, w, k), np.float32)
        _reorder(target, _memory((n, k, h, w), _channels_last((n, k, h, w)), dense))
        return dense


def convs(chain: Chain, image: Array, filters: Sequence[Array], dense: bool) -> Convs:
    """Prepare a chain to run in oneDNN.

    Args:
        chain: a chain of float32, without bias and activations.
        image: the input, logical NHWC.
        filters: the filter of each conv, OIHW.
        dense: whether activations are dense NHWC; else they lie as the library asks for.

    Raises:
        Unsupported: the chain has another dtype, a bias or an activation.
        ToolMissing: oneDNN isn't installed.
        RunFailed: oneDNN refuses the chain.
    """
    if chain.dtype != "float32" or any(conv.bias or conv.activation != "none" for conv in chain.conv):
        raise Unsupported("the bench runs oneDNN on float32 convs without bias and activation; leave them out")
    n, h, w, c = chain.input
    source = _memory((n, c, h, w), _channels_last((n, c, h, w)), np.ascontiguousarray(image))
    made = list[_Primitive]()
    for conv, filter, shape in zip(chain.conv, filters, chain.shapes[1:], strict=True):
        made.append(_conv(conv, source, filter, shape, dense))
        source = made[-1].memories[-1]
    return Convs(chain, _version(), tuple(made))


def _conv(conv: Conv2d, source: _Memory, filter: Array, shape: tuple[int, int, int, int], dense: bool) -> _Primitive:
    """Prepare one conv, with its filter and its source re-laid as oneDNN asks for."""
    n, h, w, k = shape
    lines = _channels_last if dense else _any
    descs = [lines(source.dims), _any(filter.shape), lines((n, k, h, w))]
    pad, engine, made = conv.padding, _engine_and_stream()[0], c_void_p()
    _check(
        _library().dnnl_convolution_forward_primitive_desc_create(
            byref(made),
            engine,
            FORWARD_INFERENCE,
            AUTOMATIC,
            descs[0],
            descs[1],
            None,
            descs[2],
            _dims(conv.stride),
            _dims([dilation - 1 for dilation in conv.dilation]),
            _dims((pad.top, pad.left)),
            _dims((pad.bottom, pad.right)),
            None,
        )
    )
    wanted = [c_void_p(_library().dnnl_primitive_desc_query_md(made, QUERIES[which], 0)) for which in QUERIES]
    memories = (
        _relaid(source, wanted[0]),
        _relaid(_memory(filter.shape, _by_strides(filter.shape, None), np.ascontiguousarray(filter)), wanted[1]),
        _empty((n, k, h, w), wanted[2]),
    )
    primitive = c_void_p()
    _check(_library().dnnl_primitive_create(byref(primitive), made))
    pairs = zip(QUERIES, memories, strict=True)
    arguments = (_Argument * 3)(*(_Argument(which, memory.handle) for which, memory in pairs))
    return _Primitive(primitive, arguments, memories)


def _relaid(memory: _Memory, wanted: c_void_p) -> _Memory:
    """Copy a tensor to the wanted layout; the tensor itself if it has that layout already."""
    if _library().dnnl_memory_desc_equal(memory.desc, wanted):
        return memory
    target = _empty(memory.dims, wanted)
    _reorder(memory, target)
    return target


def _reorder(source: _Memory, target: _Memory) -> None:
    """Copy a tensor from one layout to another by oneDNN itself."""
    engine, stream = _engine_and_stream()
    made, primitive = c_void_p(), c_void_p()
    create = _library().dnnl_reorder_primitive_desc_create
    _check(create(byref(made), source.desc, engine, target.desc, engine, None))
    _check(_library().dnnl_primitive_create(byref(primitive), made))
    arguments = (_Argument * 2)(_Argument(SOURCE, source.handle), _Argument(TARGET, target.handle))
    _check(_library().dnnl_primitive_execute(primitive, stream, 2, arguments))
    _check(_library().dnnl_stream_wait(stream))


def _empty(dims: tuple[int, ...], desc: c_void_p) -> _Memory:
    """Memory for a tensor, aligned as oneDNN wants it."""
    size = _library().dnnl_memory_desc_get_size(desc)
    memory = np.zeros(size + ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return _memory(dims, desc, memory[start : start + size])


def _memory(dims: tuple[int, ...], desc: c_void_p, data: Array) -> _Memory:
    handle = c_void_p()
    create = _library().dnnl_memory_create
    _check(create(byref(handle), desc, _engine_and_stream()[0], c_void_p(data.ctypes.data)))
    return _Memory(dims, desc, handle, data)


def _channels_last(dims: tuple[int, ...]) -> c_void_p:
    """Return a descriptor of a tensor with dims (N, C, H, W) that lies in memory as NHWC."""
    _, c, h, w = dims
    return _by_strides(dims, (h * w * c, 1, w * c, c))


def _by_strides(dims: tuple[int, ...], strides: tuple[int, ...] | None) -> c_void_p:
    """Return a descriptor of a tensor with these strides; without strides it is dense and row-major."""
    desc, given = c_void_p(), None if strides is None else _dims(strides)
    create = _library().dnnl_memory_desc_create_with_strides
    _check(create(byref(desc), len(dims), _dims(dims), FLOAT32, given))
    return desc


def _any(dims: tuple[int, ...]) -> c_void_p:
    """Return a descriptor that leaves the layout to oneDNN."""
    desc = c_void_p()
    _check(_library().dnnl_memory_desc_create_with_tag(byref(desc), len(dims), _dims(dims), FLOAT32, ANY))
    return desc


def _dims(values: Sequence[int]) -> "ctypes.Array[c_int64]":
    return (c_int64 * MOST_AXES)(*values)


def _version() -> str:
    version = _library().dnnl_version().contents
    return f"{version.major}.{version.minor}.{version.patch}"


def _check(status: int) -> None:
    if status:
        raise RunFailed(f"oneDNN: {STATUS.get(status, f'status {status}')}; try another shape")


@cache
def _engine_and_stream() -> tuple[c_void_p, c_void_p]:
    engine, stream = c_void_p(), c_void_p()
    _check(_library().dnnl_engine_create(byref(engine), CPU, c_size_t(0)))
    _check(_library().dnnl_stream_create(byref(stream), engine, IN_ORDER))
    return engine, stream


@cache
def _library() -> ctypes.CDLL:
    path = Path(sys.prefix) / "lib" / LIBRARY
    if not path.exists():
        raise ToolMissing(f"{LIBRARY} isn't in {path.parent}; {INSTALL}")
    library = ctypes.CDLL(str(path))
    library.dnnl_memory_desc_get_size.restype = c_size_t
    library.dnnl_primitive_desc_query_md.restype = c_void_p
    library.dnnl_version.restype = POINTER(_Version)
    return library
