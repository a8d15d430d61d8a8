"""`hexconv layout`: where an element lives, and what the tensors of a chain take under four systems."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

import hexconv.layout
from hexconv.cli.cases import print_json, write_text
from hexconv.cli.layout_words import beside_of, indices, sizes, views_of
from hexconv.cli.options import check_file
from hexconv.errors import InputError
from hexconv.layout.catalog import Found, Placement, find
from hexconv.layout.picture import Picture, picture
from hexconv.layout.svg import svg as as_svg
from hexconv.layout.text import text as as_text

layout = App(name="layout", help="Show where an element lives, in packed, oneDNN, MACE and OKKernel layouts.")

Many = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]
System = Literal["packed", "onednn", "mace", "okk"]
TABLE = Path("reports/layout_usage.csv")
PAGE = Path(hexconv.layout.__file__).with_name("README.md")
Name = Annotated[
    str, Parameter(help=f"`NHWC8h8w32c`, `nChw16c`, `in-out-channel`, `aligned`, ...: {PAGE} has them all.")
]


@layout.default
def of_element(
    system: System,
    name: Name,
    *,
    shape: str,
    dtype: str = "float32",
    at: Many = None,
    chip: str | None = None,
    npus: int | None = None,
    start_npu: int | None = None,
    offset: int | None = None,
    strides: str | None = None,
    columns: int | None = None,
    beside: Many = None,
    logical: str | None = None,
    use: str | None = None,
    cell: str | None = None,
    view: Many = None,
    allow_empty: bool = False,
    draw: bool = False,
    svg: Path | None = None,
    json: bool = False,
) -> int:
    """Show how many bytes a tensor takes in a layout, and where its elements lie.

    Args:
        system: `packed`, `onednn`, `mace` or `okk`.
        name: name the layout, as the system calls it.
        shape: state the logical sizes, `2,17,4,5`.
        dtype: state the type of the elements.
        at: look up this element, `i,j,..`; may be given many times; with `--cell`, name a gate.
        chip: okk: bm1684, bm1684x or bm1688.
        npus: okk: another number of NPUs than the chip's: 4 gives the document's pictures.
        start_npu: okk: NPU of channel 0.
        offset: okk: bytes from the start of each NPU's memory, or of system memory.
        strides: okk and onednn `strided`: `n,c,h,w`.
        columns: okk matrix: columns per channel.
        beside: okk: another tensor, `NAME SHAPE DTYPE START_NPU OFFSET`, refused if it lies in the room of
            this one, empty blocks included; all but name and shape may be left out.
        logical: packed: order of the shape's axes, where it isn't the tag's.
        use: onednn any: data, weights or grouped-weights; a stated rule chooses the format.
        cell: onednn: lstm or gru, whose gates are an axis of this tensor.
        view: onednn: `reshape 6,20`, `permute_axes 1,0` or `submemory SIZES OFFSETS`; several follow each other.
        allow_empty: onednn: a zero descriptor for what is refused.
        draw: draw the memory as text.
        svg: draw the memory into this .svg file.
        json: print JSON instead.
    """
    steps = None if strides is None else sizes("--strides", strides)
    placement = Placement(
        chip=chip,
        npus=npus,
        start_npu=start_npu,
        offset_bytes=offset,
        strides=steps,
        columns=columns,
        beside=beside_of(beside) if beside else None,
        logical=logical,
        use=use,
        cell=cell,
        views=views_of(view) if view else None,
        allow_empty=allow_empty or None,
    )
    check_file("layout: --svg", svg)
    found = find(system, name, sizes("--shape", shape), dtype, placement)
    if json and draw:
        raise InputError.because("layout: --draw and --json both print", "draw into a file: --svg FILE")
    drawing = _picture(found) if draw or svg else None
    addresses = [{"index": list(index), "address": found.address(index)} for index in indices(at or [], cell)]
    if drawing and svg:
        write_text(svg, as_svg(drawing))
    if json:
        print_json(_json(found, addresses))
    else:
        _print(found, addresses, as_text(drawing) if drawing and draw else "")
    return 0


def _json(found: Found, addresses: list[dict]) -> dict:
    """The answer as plain data; of tensors in local memory also what each NPU gives."""
    told = {"system": found.system, "name": found.name, "shape": list(found.shape), "dtype": found.dtype}
    local = {} if found.bytes_per_npu is None else {"bytes_per_npu": found.bytes_per_npu}
    return {**told, "bytes": found.bytes, **local, **found.facts, "at": addresses}


def _print(found: Found, addresses: list[dict], drawing: str) -> None:
    console = Console(soft_wrap=True)
    unused = "" if found.layout is None else f", {found.layout.waste:.1%} unused"
    each = "" if found.bytes_per_npu is None else f" ({found.bytes_per_npu} per NPU)"
    asked = f"{found.system} {found.name} {list(found.shape)} {found.dtype}"
    console.print(f"{asked}: {found.bytes} bytes{each}{unused}", highlight=False, markup=False)
    for name, fact in found.facts.items():
        console.print(f"{name.replace('_', ' ')}: {_words(fact)}", highlight=False, markup=False)
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
    if isinstance(value, dict):
        return " ".join(_words(part) for part in value.values())
    return ",".join(str(x) for x in value) or "none" if isinstance(value, list) else str(value)


def _picture(found: Found) -> Picture:
    if found.layout is None:
        raise InputError.because(f"layout: {found.name} has no places to draw", "draw a tag or strides")
    return picture(found.layout)


@layout.command
def compare(
    *cases: Path,
    chip: str = "bm1684",
    csv: Path = TABLE,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Show what the tensors of a chain take under all four systems, and write the table.

    Args:
        cases: case files, folders of them, or patterns.
        chip: the OKKernel chip: bm1684, bm1684x or bm1688.
        csv: the table to write.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    from hexconv.cli.layout_compare import compare_layouts  # TVM takes seconds that `--help` doesn't have to wait for

    if csv != TABLE:
        check_file("--csv", csv)
    return compare_layouts(cases, chip, csv, wide, json)


@layout.command
def reorder(
    system: System,
    source: str,
    target: str,
    given: Path,
    made: Path,
    *,
    shape: str,
    dtype: str = "float32",
    json: bool = False,
) -> int:
    """Move an array from one layout of a system to another, as the system's own reorders do.

    Args:
        system: `packed`, `onednn`, `mace` or `okk`.
        source: layout of the array that is given.
        target: layout of the array that is made; its padding is zero.
        given: `.npy` file of the first layout's store; of a plain layout (`nchw`) that is the tensor itself.
        made: `.npy` file to write.
        shape: state the logical sizes, `2,17,4,5`.
        dtype: state the type of the elements.
        json: print JSON instead.
    """
    from hexconv.cli.layout_reorder import reorder_file  # what `layout` alone has no need for

    check_file("layout reorder: the file to write", made)
    return reorder_file(system, (source, target), sizes("--shape", shape), dtype, given, made, json)
