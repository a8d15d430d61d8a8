"""`hexconv layout`: where an element lives, and what the tensors of a chain take under four systems."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from hexconv.analyze.layouts import LayoutUsage, as_csv, usage
from hexconv.cli.cases import load_cases, print_json
from hexconv.cli.show import show
from hexconv.errors import InputError
from hexconv.layout.catalog import Found, Placement, find
from hexconv.layout.picture import Picture, picture
from hexconv.layout.svg import svg as as_svg
from hexconv.layout.text import text as as_text

layout = App(name="layout", help="Where an element lives: packed, oneDNN, MACE and OKKernel layouts.")

Many = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]
System = Literal["packed", "onednn", "mace", "okk"]


@layout.default
def of_element(
    system: System,
    name: str,
    *,
    shape: str,
    dtype: str = "float32",
    at: Many = None,
    chip: str | None = None,
    start_npu: int | None = None,
    offset: int | None = None,
    strides: str | None = None,
    columns: int | None = None,
    logical: str | None = None,
    draw: bool = False,
    svg: Path | None = None,
    json: bool = False,
) -> int:
    """Show how many bytes a tensor takes in a layout, and where its elements lie.

    Args:
        system: `packed`, `onednn`, `mace` or `okk`.
        name: `NHWC8h8w32c`, `nChw16c`, `in-out-channel`, `aligned`, ...: hexconv/layout/README.md has them all.
        shape: logical sizes, `2,17,4,5`.
        dtype: of the elements.
        at: indices to look up, each `i,j,..`; may be given many times.
        chip: okk: bm1684, bm1684x or bm1688.
        start_npu: okk: NPU of channel 0.
        offset: okk: bytes from the start of each NPU's memory, or of system memory.
        strides: okk and onednn `strided`: `n,c,h,w`.
        columns: okk matrix: columns per channel.
        logical: packed: order of the shape's axes, where it isn't the tag's.
        draw: draw the store as text.
        svg: draw it into a file.
        json: print JSON instead.
    """
    steps = None if strides is None else _sizes("--strides", strides)
    placement = Placement(chip, start_npu, offset, steps, columns, logical)
    found = find(system, name, _sizes("--shape", shape), dtype, placement)
    if json and draw:
        raise InputError("layout: --draw", "with --json", "--svg FILE, which goes with --json")
    drawing = _picture(found) if draw or svg else None
    addresses = [{"index": list(index), "address": found.address(index)} for index in _indices(at or [])]
    if drawing and svg:
        _save(svg, as_svg(drawing))
    if json:
        print_json(_json(found, addresses))
    else:
        _print(found, addresses, as_text(drawing) if drawing and draw else "")
    return 0


def _json(found: Found, addresses: list[dict]) -> dict:
    """The answer as plain data; of tensors in local memory also what each NPU gives."""
    told = {"system": found.system, "name": found.name, "shape": list(found.shape), "dtype": found.dtype}
    local = {} if found.bytes_per_npu is None else {"bytes_per_npu": found.bytes_per_npu}
    return {**told, "bytes": found.bytes, **local, "at": addresses}


def _print(found: Found, addresses: list[dict], drawing: str) -> None:
    console = Console(soft_wrap=True)
    unused = "" if found.layout is None else f", {found.layout.waste:.1%} unused"
    each = "" if found.bytes_per_npu is None else f" ({found.bytes_per_npu} per NPU)"
    asked = f"{found.system} {found.name} {list(found.shape)} {found.dtype}"
    console.print(f"{asked}: {found.bytes} bytes{each}{unused}", highlight=False, markup=False)
    if found.note:
        console.print(f"note: {found.note}", highlight=False, markup=False)
    if addresses:
        console.print(_table(addresses))
    if drawing:
        console.print(drawing, highlight=False, markup=False)


def _table(addresses: list[dict]) -> Table:
    table = Table("index", *addresses[0]["address"])
    for row in addresses:
        table.add_row(_words(row["index"]), *(_words(value) for value in row["address"].values()))
    return table


def _words(value: object) -> str:
    return ",".join(str(x) for x in value) if isinstance(value, list) else str(value)


def _picture(found: Found) -> Picture:
    if found.layout is None:
        raise InputError(f"layout: drawing of {found.name}", "nothing to draw", "a layout with places")
    return picture(found.layout)


def _indices(words: list[str]) -> list[tuple[int, ...]]:
    """Indices of `--at`; one option may hold several, parted by spaces or semicolons."""
    return [_sizes("--at", word) for entry in words for word in entry.replace(";", " ").split()]


def _sizes(option: str, words: str) -> tuple[int, ...]:
    """Whole numbers parted by commas; brackets around them and spaces between them don't matter."""
    inside = words.strip().strip("[]()").strip()
    try:
        return tuple(int(part) for part in inside.split(",")) if inside else ()
    except ValueError:
        allowed = "whole numbers parted by commas: 2,17,4,5"
        raise InputError(f"layout: {option}", repr(words), allowed) from None


def _save(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        given = error.strerror or "no file"
        raise InputError(f"layout: {path}", given, "a file that can be written") from None


@layout.command
def compare(
    *cases: Path,
    chip: str = "bm1684",
    csv: Path = Path("reports/layout_usage.csv"),
    json: bool = False,
) -> int:
    """Show what the tensors of a chain take under all four systems, and write the table.

    Args:
        cases: case files.
        chip: the OKKernel chip: bm1684, bm1684x or bm1688.
        csv: the table to write.
        json: print JSON instead of a table.
    """
    rows = [row for case in load_cases(cases, "hexagon") for row in usage(case, chip)]
    _save(csv, as_csv(rows))
    if json:
        print_json(rows)
    else:
        show(_usage_table(rows))
    return 0


def _usage_table(rows: list[LayoutUsage]) -> Table:
    table = Table("case", "tensor", "elements", "system", "layout", "bytes", "unused", "why not")
    for row in rows:
        figures = ("", "") if row.bytes is None else (f"{row.bytes:,}", f"{row.waste_percent:.1f} %")
        shape = "x".join(str(size) for size in row.shape)
        table.add_row(row.case, row.tensor, shape, row.system, row.layout, *figures, row.refusal)
    return table
