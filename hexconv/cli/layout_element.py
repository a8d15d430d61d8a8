"""What `hexconv layout` does for one tensor: it prints its bytes and where elements lie, and draws the memory."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hexconv.cli.answers import print_json, write_text
from hexconv.errors import InputError
from hexconv.layout import Picture, picture, svg, text
from hexconv.layout.catalog import Found


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
