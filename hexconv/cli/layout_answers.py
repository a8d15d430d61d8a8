"""What `hexconv layout` does for one tensor: elements and their places, arrays reordered."""

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hexconv.cli.answers import print_json, write_text
from hexconv.errors import InputError
from hexconv.layout import Layout, Picture, mace, picture, svg, text
from hexconv.layout.catalog import Found, OtherTensor, Placement, View, find, letters_of, options_of
from hexconv.layout.onednn import converted, gate_index
from hexconv.written import write_file


def show_element(found: Found, asked: Iterable[tuple[int, ...]], draw: bool, file: Path | None, json: bool) -> int:
    """Print a tensor and where the elements lie that were asked for, as text or JSON; returns 0.

    Args:
        found: the tensor in its layout.
        asked: the logical index of each element.
        draw: also draw the memory as text.
        file: draw the memory into this .svg file.
        json: print JSON instead.
    """
    if json and draw:
        raise InputError.because("layout: --draw and --json both print", "draw into a file: --svg FILE")
    drawing = _picture(found) if draw or file else None
    addresses = [{"index": list(index), "address": found.address(index)} for index in asked]
    if drawing and file:
        write_text(file, svg(drawing))
    if json:
        print_json(_json(found, addresses))
    else:
        _print(found, addresses, text(drawing) if drawing and draw else "")
    return 0


def _json(found: Found, addresses: list[dict]) -> dict:
    """Return the answer as plain data; for tensors in local memory also the bytes that each NPU gives."""
    told = {"system": found.system, "name": found.name, "shape": list(found.shape), "dtype": found.dtype}
    local = {} if found.bytes_per_npu is None else {"bytes_per_npu": found.bytes_per_npu}
    axes = {} if found.layout is None else {"axes": [axis.name.lower() for axis in found.layout.axes]}
    return {**told, "bytes": found.bytes, **local, **axes, **found.facts, "at": addresses}


def _print(found: Found, addresses: list[dict], drawing: str) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    unused = "" if found.layout is None else f", {found.layout.waste:.1%} unused"
    each = "" if found.bytes_per_npu is None else f" ({found.bytes_per_npu} per NPU)"
    asked = f"{found.system} {found.name} {list(found.shape)} {found.dtype}"
    console.print(f"{asked}: {found.bytes} bytes{each}{unused}")
    if found.layout:
        console.print("axes: " + ",".join(f"{axis.name.lower()}={axis.size}" for axis in found.layout.axes))
    for name, fact in found.facts.items():
        console.print(f"{name.replace('_', ' ')}: {_words(fact)}")
    for remark in found.remarks:
        console.print(f"note: {remark}")
    if addresses:
        console.print(_table(addresses))
    if drawing:
        console.print(drawing)


def _table(addresses: list[dict]) -> Table:
    table = Table("index", *addresses[0]["address"])
    for row in addresses:
        table.add_row(_words(row["index"]), *(_words(value) for value in row["address"].values()))
    return table


def _words(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_words(part)}" for name, part in value.items())
    return ",".join(str(x) for x in value) or "none" if isinstance(value, list) else str(value)


def _picture(found: Found) -> Picture:
    if found.layout is None:
        raise InputError.because(f"layout: {found.name} has no places to draw", "draw a tag or strides")
    return picture(found.layout)


ADVICE = "name an .npy file, as numpy.save writes it"


@dataclass(frozen=True)
class Asked:
    """A move from one layout of a system to another.

    Attributes:
        system: the system of both layouts.
        names: the names of the two layouts; a plain order of axes (`NHWC`) stands for the tensor itself.
        shape: the sizes of the tensor, in the order of the first layout's axes.
        dtypes: the dtype of the elements; or one for each layout.
        options: options of `Placement`, each with one value, or with one for each of two layouts that take it.
        views: onednn: views of the first layout; the second one holds what they show.
    """

    system: str
    names: tuple[str, str]
    shape: tuple[int, ...]
    dtypes: tuple[str, ...]
    options: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    views: tuple[View, ...] | None = None


def reorder_file(asked: Asked, given: Path, made: Path, json: bool) -> int:
    """Read an array in the first layout and write it in the second, with zeros as padding; returns 0."""
    if len(asked.dtypes) > (2 if asked.system == "onednn" else 1):
        what = f"layout reorder: --dtype {' '.join(asked.dtypes)}; {asked.system} converts no types"
        raise InputError.because(what, "give one, or for onednn two")
    from_placement, to_placement = _placements(asked)
    source = _found(asked, 0, asked.shape, replace(from_placement, views=asked.views))
    before = _layout(source)
    axes = _axes(asked, source, before)
    target = _found(asked, 1, tuple(before.shape[axis] for axis in axes), to_placement)
    after = _layout(target)
    if asked.system == "mace" and _is_image(source.name):
        mace.check_readable(source.name)
    whole = _layout(_found(asked, 0, asked.shape, from_placement)) if asked.views else before
    store = _loaded(given, whole).reshape(-1)
    start = before.outputs[0].base if asked.views else 0
    values = before.unpack(store[start : start + before.elements]).transpose(axes)
    content = io.BytesIO()
    np.save(content, after.pack(_typed(asked, values, after)), allow_pickle=False)
    write_file(made, content.getvalue())
    told = {"system": asked.system, "from": source.name, "to": target.name, "bytes": [source.bytes, target.bytes]}
    if json:
        print_json(told)
    else:
        print(f"{made}: {target.name} {list(after.physical_shape)}, {after.bytes} bytes, {after.waste:.1%} unused")
    return 0


def _found(asked: Asked, end: int, shape: tuple[int, ...], placement: Placement) -> Found:
    """Find the first or the second layout; a plain order of axes is an array of numpy in every system."""
    name, dtype = asked.names[end], asked.dtypes[min(end, len(asked.dtypes) - 1)]
    return find("packed" if _is_plain(name) else asked.system, name, shape, dtype, placement)


def _is_plain(name: str) -> bool:
    return bool(re.fullmatch("[A-Z]+", name))


def _is_image(name: str) -> bool:
    """Whether a layout of MACE is an image."""
    return not _is_plain(name) and name not in mace.CPU_BUFFERS


def _layout(found: Found) -> Layout:
    if found.layout is None:
        raise InputError.because(f"layout reorder: {found.name} gives no element a place", "name a tag or strides")
    return found.layout


def _placements(asked: Asked) -> tuple[Placement, Placement]:
    """Give every option to the layouts that take it: its first value to the first of them, its last to the second."""
    taken = [_options(asked, end) for end in (0, 1)]
    found: list[dict[str, Any]] = [{}, {}]
    for option, values in asked.options:
        ends = [end for end in (0, 1) if option in taken[end]]
        if len(values) > len(ends):
            takers = " and ".join(asked.names[end] for end in ends) or f"neither {' nor '.join(asked.names)}"
            flag = f"--{option.removesuffix('_bytes').replace('_', '-')}"
            what = "1 value" if len(values) == 1 else f"{len(values)} values"
            raise InputError(f"layout reorder: {flag}", what, f"{len(ends) or 'none'}: {takers} takes it")
        for end, value in zip(ends, (values[0], values[-1]), strict=False):
            found[end][option] = value
    return Placement(**found[0]), Placement(**found[1])


def _options(asked: Asked, end: int) -> tuple[str, ...]:
    return () if _is_plain(asked.names[end]) else options_of(asked.system, asked.names[end])


def _axes(asked: Asked, source: Found, before: Layout) -> list[int]:
    """The first layout's axes in the order of the second one's.

    Tags of oneDNN that name their axes otherwise go by position, as the library's reorders do.
    """
    name, own = asked.names[1], [axis.name.upper() for axis in before.axes]
    wanted = list(name if _is_plain(name) else letters_of(asked.system, name, len(own)))
    if sorted(wanted) == sorted(own):
        return [own.index(letter) for letter in wanted]
    if asked.system == "onednn" and len(wanted) == len(own) and not _is_plain(name):
        return list(range(len(own)))
    allowed = f"a layout of the axes {','.join(own)}, which are those of {source.name}"
    raise InputError(f"layout reorder: axes of {name}", ",".join(wanted), allowed)


def _loaded(path: Path, layout: Layout) -> NDArray[Any]:
    """Read the array of a file; it must have as many elements as the layout stores, of the same width."""
    from hexconv.run.array_files import read_stored

    try:
        store = read_stored(path)
    except OSError as error:
        raise InputError.because(f"{path}: {error.strerror or 'not readable'}", ADVICE) from None
    except (ValueError, EOFError):
        raise InputError.because(f"{path} has no array of numpy", ADVICE) from None
    if (store.size, store.itemsize) != (layout.elements, layout.itemsize_bytes):
        given = f"{store.dtype} {list(store.shape)}"
        wanted = f"{list(layout.physical_shape)}, or as many elements in a row, of {layout.itemsize_bytes} bytes each"
        raise InputError(f"{path}: array for {layout.name}", given, wanted)
    return store


def _typed(asked: Asked, values: NDArray[Any], after: Layout) -> NDArray[Any]:
    """Convert elements to the second layout's type: as oneDNN's reorders do, and MACE's bytes to lanes and back."""
    if len(asked.dtypes) > 1:
        return converted(values, *asked.dtypes)
    if values.itemsize == after.itemsize_bytes:
        return values
    return values.astype(np.dtype(f"u{after.itemsize_bytes}"))


def sizes(option: str, words: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them; brackets around them and spaces between them don't matter."""
    inside = words.strip().strip("[]()").strip()
    try:
        return tuple(int(part) for part in inside.split(",")) if inside else ()
    except ValueError:
        allowed = "whole numbers parted by commas: 2,17,4,5"
        raise InputError(f"layout: {option}", repr(words), allowed) from None


def indices(words: list[str], cell: str | None) -> list[tuple[int, ...]]:
    """Read the indices of `--at`; one option may hold several, with spaces or semicolons between them."""
    split = [word for entry in words for word in entry.replace(";", " ").split()]
    return [sizes("--at", _without_gates(word, cell) if cell else word) for word in split]


def views_of(words: list[str]) -> tuple[View, ...]:
    """Read the views of `--view`: each word that is no list of numbers starts a view."""
    views: list[View] = []
    for word in " ".join(words).split():
        if word[0].isalpha():
            views.append(View(word.replace("-", "_"), ()))
        elif views:
            views[-1] = View(views[-1].name, (*views[-1].numbers, sizes("--view", word)))
        else:
            raise InputError("layout: --view", repr(word), "a view first: reshape, permute_axes or submemory")
    return tuple(views)


def beside_of(words: list[str]) -> OtherTensor:
    """Read the tensor of `--beside`: name and shape, then its type, start NPU and offset."""
    name, shape, *rest = [*" ".join(words).split(), "", ""][: max(2, len(" ".join(words).split()))]
    if not shape or len(rest) > 3:
        allowed = "NAME SHAPE, then DTYPE, START_NPU and OFFSET where they aren't float32, 0 and 0"
        raise InputError("layout: --beside", repr(" ".join(words)), allowed)
    dtype, start_npu, offset = (*rest, *("float32", "0", "0")[len(rest) :])
    start = sizes("--beside", f"{start_npu},{offset}")
    return OtherTensor(name.lower(), sizes("--beside", shape), dtype, *start)


def _without_gates(word: str, cell: str) -> str:
    """Replace the name of a gate in an index by its number."""
    parts = word.split(",")
    return ",".join(str(gate_index(cell, part)) if part.isalpha() else part for part in parts)
