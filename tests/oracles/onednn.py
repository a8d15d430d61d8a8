"""oneDNN 3.2 through its C interface (`libdnnl.so.3`): descriptors and reorders.

Names of functions, codes of queries, data types and statuses: oneapi/dnnl/dnnl.h and dnnl_types.h of
version 3.2.
"""

import ctypes
from ctypes import POINTER, byref, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache

import numpy as np

from .where import library

DTYPES = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f64": 7, "boolean": 8}
STATUS = {1: "out_of_memory", 2: "invalid_arguments", 3: "unimplemented", 5: "runtime_error"}
QUERY = {
    "strides": 14,
    "ndims": 256,
    "dims": 257,
    "offset0": 259,
    "padded_dims": 260,
    "format_kind": 262,
    "inner_nblks": 263,
    "inner_blks": 264,
    "inner_idxs": 265,
}
KINDS = {0: "undef", 1: "any", 2: "blocked"}
FROM, TO, CPU, IN_ORDER = 1, 17, 1, 1


class RefusedError(Exception):
    """A status other than success."""


class _Argument(ctypes.Structure):
    _fields_ = (("which", c_int), ("memory", c_void_p))


@cache
def dnnl() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(library("libdnnl.so.3")))
    lib.dnnl_fmt_tag2str.restype = ctypes.c_char_p
    lib.dnnl_memory_desc_get_size.restype = c_size_t
    for name in ("get_size", "destroy", "equal", "query"):
        getattr(lib, f"dnnl_memory_desc_{name}").argtypes = {
            "get_size": [c_void_p],
            "destroy": [c_void_p],
            "equal": [c_void_p, c_void_p],
            "query": [c_void_p, c_int, c_void_p],
        }[name]
    return lib


@cache
def tags() -> dict[str, int]:
    """Every tag that the library can name, with its code; 760 in version 3.2."""
    names = {}
    for code in range(2, 5000):
        name = dnnl().dnnl_fmt_tag2str(code).decode()
        if name.startswith("unknown") or name == "format_tag_last":
            break
        names[name] = code
    return names


def check(status: int) -> None:
    if status:
        raise RefusedError(STATUS.get(status, str(status)))


def _dims(values) -> ctypes.Array:
    return (c_int64 * 12)(*values)


@dataclass
class Desc:
    """A memory descriptor of the library, freed with the object."""

    handle: c_void_p

    def __del__(self) -> None:
        dnnl().dnnl_memory_desc_destroy(self.handle)

    @classmethod
    def by_tag(cls, dims, dtype: str, tag: str) -> "Desc":
        code = {"undef": 0, "any": 1}.get(tag) if tag in ("undef", "any") else tags()[tag]
        return cls._made("create_with_tag", len(dims), _dims(dims), DTYPES[dtype], code)

    @classmethod
    def by_string(cls, dims, dtype: str, tag: str) -> "Desc":
        return cls._made("create_with_string_tag", len(dims), _dims(dims), DTYPES[dtype], tag.encode())

    @classmethod
    def by_strides(cls, dims, dtype: str, strides=None) -> "Desc":
        given = None if strides is None else _dims(strides)
        return cls._made("create_with_strides", len(dims), _dims(dims), DTYPES[dtype], given)

    def submemory(self, dims, offsets) -> "Desc":
        return self._made("create_submemory", self.handle, _dims(dims), _dims(offsets))

    def reshape(self, dims) -> "Desc":
        return self._made("reshape", self.handle, len(dims), _dims(dims))

    def permute_axes(self, permutation) -> "Desc":
        return self._made("permute_axes", self.handle, (c_int * 12)(*permutation))

    @property
    def size(self) -> int:
        return dnnl().dnnl_memory_desc_get_size(self.handle)

    def equals(self, other: "Desc") -> bool:
        return bool(dnnl().dnnl_memory_desc_equal(self.handle, other.handle))

    def fields(self) -> dict:
        """What the library tells of the descriptor, as plain lists."""
        rank, blocks = self._number("ndims", c_int), 0
        kind = KINDS[self._number("format_kind", c_int)]
        told: dict = {"format_kind": kind, "dims": self._list("dims", rank), "size": self.size}
        if kind == "blocked":
            blocks = self._number("inner_nblks", c_int)
            told |= {name: self._list(name, rank) for name in ("padded_dims", "strides")}
            told |= {name: self._list(name, blocks) for name in ("inner_blks", "inner_idxs")}
            told["offset0"] = self._number("offset0", c_int64)
        return told

    def _number(self, what: str, kind) -> int:
        value = kind()
        check(dnnl().dnnl_memory_desc_query(self.handle, QUERY[what], byref(value)))
        return value.value

    def _list(self, what: str, count: int) -> list[int]:
        if not count:
            return []
        values = POINTER(c_int64)()
        check(dnnl().dnnl_memory_desc_query(self.handle, QUERY[what], byref(values)))
        return values[:count]

    @classmethod
    def _made(cls, function: str, *arguments) -> "Desc":
        handle = c_void_p()
        check(getattr(dnnl(), f"dnnl_memory_desc_{function}")(byref(handle), *arguments))
        return cls(handle)


def theirs(case: dict) -> dict:
    """What the library says of a case of `tests/layout/onednn_cases.py`."""
    try:
        return built(case).fields()
    except RefusedError as error:
        return {"refused": str(error)}


def built(case: dict) -> Desc:
    make, last = (Desc.by_tag, case["tag"]) if "tag" in case else (Desc.by_strides, case["strides"])
    desc = make(case["dims"], case["data_type"], last)
    for view, *arguments in case["views"]:
        desc = getattr(desc, view)(*arguments)
    return desc


@cache
def _engine_and_stream() -> tuple[c_void_p, c_void_p]:
    engine, stream = c_void_p(), c_void_p()
    check(dnnl().dnnl_engine_create(byref(engine), CPU, c_size_t(0)))
    check(dnnl().dnnl_stream_create(byref(stream), engine, IN_ORDER))
    return engine, stream


def reorder(source: Desc, data: np.ndarray, target: Desc, into: np.ndarray) -> np.ndarray:
    """Run the library's own reorder from `data` into `into`."""
    lib = dnnl()
    engine, stream = _engine_and_stream()
    made, primitive = c_void_p(), c_void_p()
    check(lib.dnnl_reorder_primitive_desc_create(byref(made), source.handle, engine, target.handle, engine, None))
    check(lib.dnnl_primitive_create(byref(primitive), made))
    memories = [c_void_p(), c_void_p()]
    for memory, desc, array in zip(memories, (source, target), (data, into), strict=True):
        check(lib.dnnl_memory_create(byref(memory), desc.handle, engine, c_void_p(array.ctypes.data)))
    arguments = (_Argument * 2)(_Argument(FROM, memories[0]), _Argument(TO, memories[1]))
    check(lib.dnnl_primitive_execute(primitive, stream, 2, arguments))
    check(lib.dnnl_stream_wait(stream))
    for memory in memories:
        lib.dnnl_memory_destroy(memory)
    lib.dnnl_primitive_destroy(primitive)
    lib.dnnl_primitive_desc_destroy(made)
    return into


def set_handle(desc: Desc, array: np.ndarray) -> None:
    """Make a memory object without a buffer, and give it the array's."""
    lib = dnnl()
    engine, _ = _engine_and_stream()
    memory = c_void_p()
    check(lib.dnnl_memory_create(byref(memory), desc.handle, engine, None))
    check(lib.dnnl_memory_set_data_handle(memory, c_void_p(array.ctypes.data)))
    lib.dnnl_memory_destroy(memory)
