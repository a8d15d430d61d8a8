"""Draw a layout: lines of cells, in each the element that lives there, as text or SVG.

`text` and `svg` draw it. Owners are looked up only for the cells that are shown, so that a picture of a
large tensor costs no more than that of a small one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import Unsupported
from hexconv.layout.mapping import Layout

LINE_CELLS = 32
"""The most elements of a line where the store has no rows of its own."""

SCANNED_LINES = 4096
"""How many lines are searched for lines that hold elements."""


@dataclass(frozen=True)
class Line:
    """One line of a store.

    Attributes:
        place: its coordinates in words, `y=3` or `npu=0 byte=128`.
        common: the part of the index that all its cells share, `n=0 h=1`; empty for a line of padding.
        cells: the rest of the index, `4.1`, or None for padding.
        groups: cells that belong together: lanes of a pixel.
        repeated: how many lines of padding this one stands for.
    """

    place: str
    common: str
    cells: tuple[str | None, ...]
    groups: int = 1
    repeated: int = 1


@dataclass(frozen=True)
class Picture:
    """Lines of a store.

    Attributes:
        title: the layout, its shape and its sizes.
        cell: which axes a cell shows, `w.c`.
        lines: the lines, in the order of the store.
        hidden_lines: lines that aren't shown.
        hidden_cells: cells of each line that aren't shown.
    """

    title: str
    cell: str
    lines: tuple[Line, ...]
    hidden_lines: int
    hidden_cells: int


def picture(layout: Layout, *, max_lines: int = 40, max_cells: int = LINE_CELLS) -> Picture:
    """Make the picture of a store, from its start.

    Args:
        layout: the layout, whose elements must not share addresses.
        max_lines: the most lines to show; a run of lines that hold only padding counts as one.
        max_cells: the most elements of a line to show.

    Raises:
        Unsupported: elements share addresses; there is no one owner to show.
    """
    if layout.collision_is_certain:
        raise Unsupported(f"{layout.name}: elements share addresses: no one element can be drawn into a cell")
    whole = _line_cells(layout)
    count = -(-_tail_extent(layout) // whole) * prod(_prefix_extents(layout))
    shown = _shown(layout, min(whole, max_cells), max_lines)
    varying = _varying(layout, shown)
    lines = tuple(_line(layout, varying, *each) for each in shown)
    return Picture(
        title=_title(layout),
        cell=".".join(layout.axes[k].name.lower() for k in varying) or _unnamed(layout),
        lines=lines,
        hidden_lines=count - sum(line.repeated for line in lines),
        hidden_cells=max(0, whole - max_cells),
    )


def _unnamed(layout: Layout) -> str:
    """The words for what cells show where no axis varies among them."""
    return "the one element" if layout.logical_elements else "none, the tensor is empty"


Shown = tuple[tuple[int, ...], int, NDArray[np.int64], NDArray[np.bool_], int]
"""A line: prefix coordinates, first element, owners, whether there are any, how many lines it stands for."""


def _shown(layout: Layout, width: int, max_lines: int) -> list[Shown]:
    """The lines to draw; neighbouring lines without any element are joined into one."""
    shown: list[Shown] = []
    for prefix, start, cells in islice(_places(layout, width), SCANNED_LINES):
        found, held = layout.owner(cells)
        if shown and not held.any() and not shown[-1][3].any():
            shown[-1] = (*shown[-1][:4], shown[-1][4] + 1)
        elif len(shown) == max_lines:
            break
        else:
            shown.append((prefix, start, found, held, 1))
    return shown


def _places(layout: Layout, width: int) -> Iterator[tuple[tuple[int, ...], int, list[NDArray[np.int64]]]]:
    """For each line, its prefix, where in the tail it starts, and the coordinates of its cells."""
    tails, whole, extent = layout.outputs[-layout.line_outputs :], _line_cells(layout), _tail_extent(layout)
    for flat in range(prod(_prefix_extents(layout))):
        prefix = tuple(int(x) for x in np.unravel_index(flat, _prefix_extents(layout)))
        for start in range(0, extent, whole):
            cells = np.arange(start, min(start + min(whole, width), extent))
            parts = np.unravel_index(cells, [output.extent for output in tails])
            steps = [np.full(cells.shape, x, np.int64) for x in prefix] + [np.asarray(p) for p in parts]
            yield prefix, start, [o.base + o.unit * s for o, s in zip(layout.outputs, steps, strict=True)]


def _line(
    layout: Layout,
    varying: Sequence[int],
    prefix: tuple[int, ...],
    start: int,
    found: NDArray[np.int64],
    held: NDArray[np.bool_],
    repeated: int,
) -> Line:
    common = [k for k in range(len(layout.axes)) if k not in varying]
    first = found[held][0] if held.any() else None
    outputs = layout.outputs
    place = [f"{o.name}={o.base + o.unit * x}" for o, x in zip(outputs, prefix, strict=False)]
    if layout.line_outputs == 1 and (_line_cells(layout) < _tail_extent(layout) or outputs[-1].base):
        place.append(f"{outputs[-1].name}={outputs[-1].base + outputs[-1].unit * start}")
    return Line(
        place=" ".join(place),
        common="" if first is None else " ".join(f"{layout.axes[k].name.lower()}={first[k]}" for k in common),
        cells=tuple(
            ".".join(str(index[k]) for k in varying) if there else None
            for index, there in zip(found, held, strict=True)
        ),
        groups=prod(o.extent for o in outputs[-layout.line_outputs + 1 :]) if layout.line_outputs > 1 else 1,
        repeated=repeated,
    )


def _varying(layout: Layout, shown: Sequence[Shown]) -> list[int]:
    """The axes whose index differs among the cells of some line."""
    return [
        k
        for k in range(len(layout.axes))
        if any(len(np.unique(found[held][:, k])) > 1 for _, _, found, held, _ in shown)
    ]


def _prefix_extents(layout: Layout) -> tuple[int, ...]:
    return layout.physical_shape[: -layout.line_outputs]


def _tail_extent(layout: Layout) -> int:
    return prod(layout.physical_shape[-layout.line_outputs :])


def _line_cells(layout: Layout) -> int:
    """How many elements a line has: a row of an image, the last physical axis, or the longest stride that fits."""
    extent = max(1, _tail_extent(layout))
    *prefix, last = layout.outputs
    strides = [d.stride for d in layout.falling(last.name)]
    has_a_shape = len(prefix) > 1 or (prefix and len(strides) < 2)
    if layout.line_outputs > 1 or has_a_shape:
        return extent
    even = [s for s in (*strides, LINE_CELLS) if 4 <= s <= LINE_CELLS and _divides(s, strides)]
    return min(extent, max(even, default=LINE_CELLS // 2))


def _divides(step: int, strides: Sequence[int]) -> bool:
    """Whether lines of `step` elements start where every longer stride does."""
    longer = [s for s in strides if s > step]
    return all(s % step == 0 for s in longer) and (step in strides or bool(longer))


def _title(layout: Layout) -> str:
    shape = ",".join(f"{axis.name.lower()}={axis.size}" for axis in layout.axes)
    store = " ".join(f"{output.name}={output.extent * output.unit}" for output in layout.outputs)
    return f"{layout.name}: {shape}; store {store}; {layout.waste:.1%} of {layout.bytes} bytes unused"


CELL_HEIGHT, CHARACTER, MARGIN, GAP = 20, 6.7, 12, 5
COLOURS = ("#cfe3f7", "#fde2c2", "#d5efd0", "#f6d4d8", "#e3d8f1", "#e9dcc9", "#f9f0b8", "#cdeeed")
PADDING = "#eeeeee"


def svg(picture: Picture) -> str:
    """The picture as an SVG document."""
    left = MARGIN + CHARACTER * max((len(line.place) for line in picture.lines), default=0) + 12
    cell = CHARACTER * (1 + max((len(c or "") for line in picture.lines for c in line.cells), default=1)) + 2
    widest = max((_offset(line, len(line.cells), cell) for line in picture.lines), default=0)
    right = CHARACTER * max((len(line.common) for line in picture.lines), default=0)
    width = max(left + widest + 8 + right, CHARACTER * len(picture.title)) + 2 * MARGIN
    height = CELL_HEIGHT * (len(picture.lines) + 4)
    root = ElementTree.Element(
        "svg",
        {
            **{"xmlns": "http://www.w3.org/2000/svg", "width": f"{width:.0f}", "height": f"{height}"},
            **{"font-family": "monospace", "font-size": "11", "viewBox": f"0 0 {width:.0f} {height}"},
            "fill": "#1b2330",
        },
    )
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    _write(root, MARGIN, CELL_HEIGHT, picture.title)
    _write(root, MARGIN, 2 * CELL_HEIGHT, f"cells: {picture.cell}; grey is padding{_hidden(picture)}")
    for row, line in enumerate(picture.lines):
        _svg_line(root, line, left, cell, (row + 3) * CELL_HEIGHT)
    return ElementTree.tostring(root, encoding="unicode")


def _svg_line(root: ElementTree.Element, line: Line, left: float, width: float, y: float) -> None:
    _write(root, MARGIN, y, line.place)
    if line.repeated > 1:
        return _write(root, left, y, f"{line.repeated} lines of padding")
    for k, cell in enumerate(line.cells):
        _cell(root, cell, left + _offset(line, k, width), y, width)
    return _write(root, left + _offset(line, len(line.cells), width) + 8, y, line.common)


def _offset(line: Line, cell: int, width: float) -> float:
    """The x at which a cell starts; there is a gap between pixels."""
    return cell * width + (cell // line.groups * GAP if line.groups > 1 else 0)


def _cell(root: ElementTree.Element, cell: str | None, x: float, y: float, width: float) -> None:
    fill = PADDING if cell is None else COLOURS[int(cell.split(".")[-1] or 0) % len(COLOURS)]
    box = {"x": f"{x:.1f}", "y": f"{y - 14:.1f}", "width": f"{width:.1f}", "height": f"{CELL_HEIGHT - 1}"}
    ElementTree.SubElement(root, "rect", {**box, "fill": fill, "stroke": "#888888", "stroke-width": "0.5"})
    if cell:
        _write(root, x + width / 2, y, cell, anchor="middle")


def _write(root: ElementTree.Element, x: float, y: float, words: str, anchor: str = "start") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ElementTree.SubElement(root, "text", place).text = words


def _hidden(picture: Picture) -> str:
    parts = [(picture.hidden_cells, "more cells in each line"), (picture.hidden_lines, "more lines")]
    return "".join(f"; {count} {what}" for count, what in parts if count)


PADDING_CELL = "·"


def text(picture: Picture) -> str:
    """Draw the picture in lines of text: place, cells with `·` for padding, and the common part of the index."""
    width = max((len(cell or PADDING_CELL) for line in picture.lines for cell in line.cells), default=1)
    left = max((len(line.place) for line in picture.lines), default=0)
    drawn = [_text_line(line, left, width, picture.hidden_cells) for line in picture.lines]
    return "\n".join([picture.title, f"cells: {picture.cell}; {PADDING_CELL} is padding", "", *drawn, *_more(picture)])


def _text_line(line: Line, left: int, width: int, hidden: int) -> str:
    if line.repeated > 1:
        return f"{line.place:<{left}} | {line.repeated} lines of padding"
    cells = [f"{cell or PADDING_CELL:>{width}}" for cell in line.cells]
    groups = [" ".join(cells[k : k + line.groups]) for k in range(0, len(cells), line.groups)]
    row = " | ".join(groups) if line.groups > 1 else " ".join(groups)
    rest = f" … {hidden} more" if hidden else ""
    return f"{line.place:<{left}} | {row}{rest} | {line.common}".rstrip()


def _more(picture: Picture) -> list[str]:
    return [f"… {picture.hidden_lines} more lines"] if picture.hidden_lines else []
