"""Read arrays of `.npy` and `.npz` files of unknown origin: all is checked before anything is allocated.

A header is read here, not by numpy: numpy makes a dtype of whatever words stand there, and some of them (`M8[s/0]`) end
the process by a division by zero.
"""

import ast
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from math import prod
from os import SEEK_END
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from hexconv.errors import InputError, short_line
from hexconv.run.measurement import Array
from hexconv.spec.case import check_regular

Form = tuple[tuple[int, ...], str]
"""The shape and dtype of an array."""
ENDING = ".npy"
LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
"""How many bytes say how long a header is, by the version of numpy's format."""
LONGEST_HEADER_BYTES = 10_000
LARGEST_AXIS = 1 << 40
"""Numpy counts elements in 64 bits, even where another axis has none."""
KEYS = {"descr", "fortran_order", "shape"}
DTYPES = re.compile(r"[<>|=]?[biufcVO]\d{0,2}", re.ASCII)
"""The words for dtypes of numbers and of bytes, and for objects, which are refused with a reason of their own."""
END, END_BYTES = b"PK\5\6", 22
"""How the last record of an archive begins, and its bytes without the comment."""
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How `numpy.savez` and `numpy.savez_compressed` write their arrays."""
UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def read_arrays(path: Path, forms: Mapping[str, Form], known: Collection[str]) -> dict[str, Array]:
    """Read arrays of a file, by name.

    Args:
        path: the file.
        forms: the shape and dtype of each array to read, by name.
        known: all names that the file may have.

    Raises:
        InputError: the file can't be read, lacks an array, has one of another name, shape or dtype, or has values
            that are no finite numbers.
    """
    wanted = f"an .npz file with {short_line(', '.join(forms))}, as numpy.savez writes it"
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as file:
            _check_whole(path, file)
            there = {entry.removesuffix(ENDING): entry for entry in file.namelist()}
            if len(there) < len(file.namelist()):
                raise ValueError("an array is there twice")
            _check_names(path, there, forms, known)
            return {name: _entry(f"{path}: {name}", file, there[name], form) for name, form in forms.items()}
    except UNREADABLE as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        raise InputError(str(path), f"an unreadable file ({reason})", wanted) from None


def _check_whole(path: Path, file: zipfile.ZipFile) -> None:
    """Check that nothing lies before the archive or behind it, which `zipfile` would pass over."""
    with path.open("rb") as stream:
        stream.seek(-len(file.comment) - END_BYTES, SEEK_END)
        is_last = stream.read(len(END)) == END
    if not is_last or min((entry.header_offset for entry in file.infolist()), default=0):
        raise ValueError("bytes before or behind its archive")


def _check_names(path: Path, there: Collection[str], wanted: Collection[str], known: Collection[str]) -> None:
    """Check that the file has every wanted array, and none of an unknown name."""
    for name in wanted:
        if name not in there:
            raise InputError(str(path), f"no {name}", f"the arrays {short_line(', '.join(wanted))}")
    for name in there:
        if name not in known:
            raise InputError(str(path), f"an array {name}", f"{short_line(', '.join(known))}, which the chain has")


def read_array(path: Path, form: Form) -> Array:
    """Read the array of an `.npy` file; one axis of size 1 may be missing in front.

    Raises:
        InputError: the file can't be read, or its array has another shape or dtype, or values that are no finite
            numbers.
    """
    shape, dtype = form
    try:
        check_regular(path)
        with path.open("rb") as stream:
            stored, _ = _header(stream)
        is_short = shape[:1] == (1,) and stored == shape[1:]
        return _read(str(path), lambda: path.open("rb"), (stored if is_short else shape, dtype)).reshape(shape)
    except UNREADABLE as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        wanted = f"an .npy file with {dtype} of {list(shape)}, as numpy.save writes it"
        raise InputError(str(path), f"an unreadable file ({reason})", wanted) from None


def _entry(where: str, file: zipfile.ZipFile, entry: str, form: Form) -> Array:
    """Read one array of an archive."""
    if file.getinfo(entry).compress_type not in COMPRESSIONS:
        raise ValueError(f"{entry} is compressed in a way that numpy doesn't")
    return _read(where, lambda: file.open(entry), form)


def _read(where: str, opened: Callable[[], IO[bytes]], form: Form) -> Array:
    """Read one array of a file, which is opened twice: its header is checked before anything is allocated."""
    shape, dtype = form
    with opened() as stream:
        stored_shape, stored_dtype = _header(stream)
    if stored_dtype.hasobject:
        raise InputError(where, "pickled Python objects", f"numbers of {dtype}: objects are never loaded")
    if stored_dtype != np.dtype(dtype):
        order = "" if stored_dtype.isnative else " in another order of bytes"
        raise InputError(where, f"{stored_dtype.name}{order}", f"{dtype}, the dtype that is read")
    if stored_shape != shape:
        raise InputError(where, f"the shape {list(stored_shape)}", f"{list(shape)}, which is read")
    with opened() as stream:
        array = np.ascontiguousarray(npy.read_array(stream, allow_pickle=False))
        if stream.read(1):
            raise ValueError(f"bytes behind the array of {where}")
    if lost := int(np.sum(~np.isfinite(array))):
        raise InputError(where, f"{lost} values that are no finite numbers", "finite numbers")
    return array


def read_stored(path: Path) -> Array:
    """Read the array of an `.npy` file as it is stored, of any shape and numbers.

    Raises:
        InputError: the path is no regular file.
        OSError: the file can't be read.
        ValueError: it has no array of numbers.
    """
    check_regular(path)
    with path.open("rb") as stream:
        shape, dtype = _header(stream)
        if dtype.hasobject:
            raise ValueError("pickled Python objects")
        if prod(shape) * dtype.itemsize > path.stat().st_size:
            raise ValueError("fewer bytes than its header says")
        stream.seek(0)
        return npy.read_array(stream, allow_pickle=False)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and dtype of an array in a file.

    Raises:
        ValueError: the header is too long, or describes no array of numbers.
    """
    version = npy.read_magic(stream)
    if version not in LENGTH_BYTES:
        raise ValueError(f"an array in version {version} of numpy's format")
    size_bytes = int.from_bytes(stream.read(LENGTH_BYTES[version]), "little")
    if size_bytes > LONGEST_HEADER_BYTES:
        raise ValueError(f"a header of {size_bytes} bytes")
    table = _literal(stream.read(size_bytes).decode("latin1"))
    if not isinstance(table, dict) or table.keys() != KEYS or type(table["fortran_order"]) is not bool:
        raise ValueError("a header that describes no array")
    shape, dtype = table["shape"], table["descr"]
    if not isinstance(shape, tuple) or not all(type(axis) is int and 0 <= axis <= LARGEST_AXIS for axis in shape):
        raise ValueError("a header with no shape")
    if not isinstance(dtype, str) or not DTYPES.fullmatch(dtype):
        raise ValueError("a header that describes no array of numbers")
    try:
        return shape, np.dtype(dtype)
    except TypeError:  # a width that numpy's kind of numbers doesn't have
        raise ValueError("a header that describes no array of numbers") from None


def _literal(text: str) -> object:
    """Return the value of a literal of Python; None where the text is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the parser warns of is refused
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
