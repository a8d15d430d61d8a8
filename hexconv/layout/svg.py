"""Draw a picture of a layout as SVG: one square per element, coloured by the last axis that it shows."""

from xml.etree import ElementTree

from hexconv.layout.picture import Line, Picture

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
        },
    )
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    _write(root, MARGIN, CELL_HEIGHT, picture.title)
    _write(root, MARGIN, 2 * CELL_HEIGHT, f"cells: {picture.cell}; grey is padding{_hidden(picture)}")
    for row, line in enumerate(picture.lines):
        _line(root, line, left, cell, (row + 3) * CELL_HEIGHT)
    return ElementTree.tostring(root, encoding="unicode")


def _line(root: ElementTree.Element, line: Line, left: float, width: float, y: float) -> None:
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
