"""Read arrays from `.npz` files of unknown origin: shape and dtype are checked before anything is allocated."""

import zipfile
import zlib
from collections.abc import Collection, Mapping
from os import SEEK_END
from pathlib import Path
from stat import S_ISREG
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from hexconv.errors import InputError
from hexconv.run.runner import Array

Form = tuple[tuple[int, ...], str]
"""The shape and dtype of an array."""
ENDING = ".npy"
HEADERS: dict[tuple[int, int], Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
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
    wanted = f"an .npz file with {', '.join(forms)}, as numpy.savez writes it"
    try:
        if not S_ISREG(path.stat().st_mode):
            raise InputError(str(path), "no regular file", wanted)
        with zipfile.ZipFile(path) as file:
            _check_whole(path, file)
            there = {entry.removesuffix(ENDING): entry for entry in file.namelist()}
            if len(there) < len(file.namelist()):
                raise ValueError("an array is there twice")
            _check_names(path, there, forms, known)
            return {name: _read(f"{path}: {name}", file, there[name], form) for name, form in forms.items()}
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
            raise InputError(str(path), f"no {name}", f"the arrays {', '.join(wanted)}")
    for name in there:
        if name not in known:
            raise InputError(str(path), f"an array {name}", f"{', '.join(known)}, which the chain has")


def _read(where: str, file: zipfile.ZipFile, entry: str, form: Form) -> Array:
    """Read one array of a file."""
    shape, dtype = form
    if file.getinfo(entry).compress_type not in COMPRESSIONS:
        raise ValueError(f"{entry} is compressed in a way that numpy doesn't")
    with file.open(entry) as stream:
        stored_shape, stored_dtype = _header(stream)
    if stored_dtype.hasobject:
        raise InputError(where, "pickled Python objects", f"numbers of {dtype}: objects are never loaded")
    if stored_dtype != np.dtype(dtype):
        order = "" if stored_dtype.isnative else " in another order of bytes"
        raise InputError(where, f"{stored_dtype.name}{order}", f"{dtype}, the dtype that the chain has it in")
    if stored_shape != shape:
        raise InputError(where, f"the shape {list(stored_shape)}", f"{list(shape)}, the chain's")
    with file.open(entry) as stream:
        array = np.ascontiguousarray(npy.read_array(stream, allow_pickle=False))
        if stream.read(1):
            raise ValueError(f"bytes behind the array of {entry}")
    if lost := int(np.sum(~np.isfinite(array))):
        raise InputError(where, f"{lost} values that are no finite numbers", "finite numbers")
    return array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and dtype of an array in a file."""
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"an array in version {version} of numpy's format")
    try:
        shape, _, dtype = HEADERS[version](stream)
    except (TypeError, LookupError, AttributeError, SyntaxError, TokenError):
        raise ValueError("a header that describes no array") from None
    return shape, dtype
