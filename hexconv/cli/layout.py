"""`hexconv layout`: shows where an element lies, and what the tensors of a chain take under four layout systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.table import Table

from hexconv.cli.options import check_file
from hexconv.cli.progress import starting

if TYPE_CHECKING:
    from hexconv.analyze.layout_bytes import LayoutUsage

layout = App(name="layout", help="Show where an element lives, in packed, oneDNN, MACE and OKKernel layouts.")

Many = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]
Numbers = Annotated[list[int] | None, Parameter(consume_multiple=True, negative=())]
System = Literal["packed", "onednn", "mace", "okk"]
TABLE = Path("reports/layout_usage.csv")
PAGE = "hexconv/layout/README.md"
Name = Annotated[
    str,
    Parameter(help=f"`NHWC8h8w32c`, `nChw16c`, `in-out-channel`, `aligned`, ...: {PAGE} in the package has them all."),
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
    address: int | None = None,
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
        address: okk: local address A = Q * S + R of the tensor, for NPU Q and offset R; S bytes are an NPU's memory.
        start_npu: okk: NPU of channel 0.
        offset: okk: bytes from the start of each NPU's memory, or of system memory.
        strides: okk and onednn `strided`: `n,c,h,w`.
        columns: okk matrix: columns per channel.
        beside: okk: another tensor, `NAME SHAPE DTYPE START_NPU OFFSET`, refused if it lies in the room of
            this one, empty blocks included; all but name and shape may be left out.
        logical: packed and okk 2ic: order of the shape's axes, where it isn't the layout's own.
        use: onednn any: data, weights or grouped-weights; a stated rule chooses the format.
        cell: onednn: lstm or gru, whose gates are an axis of this tensor.
        view: onednn: `reshape 6,20`, `permute_axes 1,0` or `submemory SIZES OFFSETS`; several follow each other.
        allow_empty: onednn: a zero descriptor for what is refused.
        draw: draw the memory as text.
        svg: draw the memory into this .svg file.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait for numpy.
    from hexconv.cli.layout_answers import beside_of, indices, show_element, sizes, views_of
    from hexconv.layout.catalog import Placement, find

    steps = None if strides is None else sizes("--strides", strides)
    placement = Placement(
        chip=chip,
        npus=npus,
        address=address,
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
    return show_element(found, indices(at or [], cell), draw, svg, json)


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
        cases: name case files (TOML), folders of them, or patterns.
        chip: take this OKKernel chip: bm1684, bm1684x or bm1688.
        csv: write the table into this file.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    with starting():
        from hexconv.analyze.layout_bytes import as_csv, usage
        from hexconv.cli.answers import print_json, show, write_text
        from hexconv.cli.cases import Batch

    if csv != TABLE:
        check_file("--csv", csv)
    batch = Batch.of(cases, "hexagon")
    rows = [row for _, rows in batch.each("laying out", lambda case: usage(case, chip)) for row in rows]
    if rows:
        write_text(csv, as_csv(rows))
    if json and rows:
        print_json(rows)
    elif rows:
        show(_usage_table(rows), wide, ("why not", "elements"))
    return batch.code(True)


def _usage_table(rows: list[LayoutUsage]) -> Table:
    table = Table("case", "tensor", "elements", "system", "layout", "bytes", "unused", "why not")
    for row in rows:
        figures = ("", "") if row.bytes is None else (f"{row.bytes:,}", f"{row.waste_percent:.1f} %")
        shape = "x".join(str(size) for size in row.shape)
        table.add_row(row.case, row.tensor, shape, row.system, row.layout, *figures, row.refusal)
    return table


@layout.command
def reorder(
    system: System,
    source: str,
    target: str,
    given: Path,
    made: Path,
    *,
    shape: str,
    dtype: Many = None,
    chip: str | None = None,
    npus: int | None = None,
    address: Numbers = None,
    start_npu: Numbers = None,
    offset: Numbers = None,
    strides: Many = None,
    columns: Numbers = None,
    view: Many = None,
    json: bool = False,
) -> int:
    """Move an array from one layout of a system to another, as the system's own reorders do.

    The axes of both are matched by their letters. An option that both layouts take may have two values.

    Args:
        system: `packed`, `onednn`, `mace` or `okk`.
        source: layout of the array that is given; in every system an order of axes (`NHWC`) is the tensor itself.
        target: layout of the array that is made; its padding is zero.
        given: `.npy` file of the first layout's store; of a plain layout (`nchw`) that is the tensor itself.
        made: `.npy` file to write.
        shape: state the sizes of the tensor in the order of the first layout, `2,17,4,5`.
        dtype: state the type of the elements, float32 by default; onednn: also that of the array that is made.
        chip: okk: bm1684, bm1684x or bm1688.
        npus: okk: another number of NPUs than the chip's.
        address: okk: local address A = Q * S + R, for NPU Q and offset R; S bytes are an NPU's memory.
        start_npu: okk: NPU of channel 0.
        offset: okk: bytes from the start of each NPU's memory, or of system memory.
        strides: okk and onednn `strided`: `n,c,h,w`.
        columns: okk matrix: columns per channel.
        view: onednn: views of the array that is given, as of `hexconv layout`; what they show is moved.
        json: print JSON instead.
    """
    from hexconv.cli.layout_answers import Asked, reorder_file, sizes, views_of

    check_file("layout reorder: the file to write", made)
    steps = [sizes("--strides", words) for words in strides or ()]
    options: dict[str, Sequence[Any]] = {
        **{"chip": [chip] if chip else [], "npus": [npus] if npus else [], "address": address or []},
        **{"start_npu": start_npu or [], "offset_bytes": offset or [], "strides": steps, "columns": columns or []},
    }
    asked = Asked(
        system=system,
        names=(source, target),
        shape=sizes("--shape", shape),
        dtypes=tuple(dtype or ("float32",)),
        options=tuple((name, tuple(values)) for name, values in options.items() if values),
        views=views_of(view) if view else None,
    )
    return reorder_file(asked, given, made, json)
