"""What `hexconv layout reorder` does: it reads an array in one layout from a file, and writes it in another layout."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.cli.cases import print_json
from hexconv.errors import InputError
from hexconv.layout import Layout, mace
from hexconv.layout.catalog import Found, Placement, find
from hexconv.written import write_file

ADVICE = "name an .npy file, as numpy.save writes it"


def reorder_file(
    system: str, names: tuple[str, str], shape: tuple[int, ...], dtype: str, given: Path, made: Path, json: bool
) -> int:
    """Read an array in the first layout and write it in the second, with zeros as padding; returns 0."""
    source = find(system, names[0], shape, dtype, Placement())
    before = _layout(source)
    order = "".join(axis.name for axis in before.axes)
    target = find(system, names[1], shape, dtype, Placement(logical=order if system == "packed" else None))
    after = _layout(target)
    _check_axes(source.name, order, target.name, "".join(axis.name for axis in after.axes))
    if system == "mace" and source.name not in mace.CPU_BUFFERS:
        mace.check_readable(source.name)
    store = _loaded(given, before)
    content = io.BytesIO()
    np.save(content, before.reorder(store.reshape(-1), after), allow_pickle=False)
    write_file(made, content.getvalue())
    told = {"system": system, "from": source.name, "to": target.name, "bytes": [source.bytes, target.bytes]}
    if json:
        print_json(told)
    else:
        print(f"{made}: {target.name} {list(after.physical_shape)}, {after.bytes} bytes, {after.waste:.1%} unused")
    return 0


def _layout(found: Found) -> Layout:
    if found.layout is None:
        raise InputError.because(f"layout reorder: {found.name} gives no element a place", "name a tag or strides")
    return found.layout


def _check_axes(source: str, before: str, target: str, after: str) -> None:
    """Refuse two layouts with different axes: the same sizes would mean different tensors."""
    if before != after:
        allowed = f"a layout of the axes {','.join(before)}, which are those of {source}"
        raise InputError(f"layout reorder: axes of {target}", ",".join(after), allowed)


def _loaded(path: Path, layout: Layout) -> NDArray[Any]:
    """Read the array of a file; it must have as many elements as the layout stores, of the same width."""
    try:
        store = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError.because(f"{path}: {error.strerror or 'not readable'}", ADVICE) from None
    except (ValueError, EOFError):
        raise InputError.because(f"{path} has no array of numpy", ADVICE) from None
    if not isinstance(store, np.ndarray):
        raise InputError.because(f"{path} has several arrays", ADVICE)
    if (store.size, store.itemsize) != (layout.elements, layout.itemsize_bytes):
        given = f"{store.dtype} {list(store.shape)}"
        wanted = f"{list(layout.physical_shape)}, or as many elements in a row, of {layout.itemsize_bytes} bytes each"
        raise InputError(f"{path}: array for {layout.name}", given, wanted)
    return store
