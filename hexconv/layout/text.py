"""Draw a picture of a layout as text."""

from hexconv.layout.picture import Line, Picture

PADDING = "·"


def text(picture: Picture) -> str:
    """Draw the picture in lines of text: place, cells with `·` for padding, and the common part of the index."""
    width = max((len(cell or PADDING) for line in picture.lines for cell in line.cells), default=1)
    left = max((len(line.place) for line in picture.lines), default=0)
    drawn = [_line(line, left, width, picture.hidden_cells) for line in picture.lines]
    return "\n".join([picture.title, f"cells: {picture.cell}; {PADDING} is padding", "", *drawn, *_more(picture)])


def _line(line: Line, left: int, width: int, hidden: int) -> str:
    if line.repeated > 1:
        return f"{line.place:<{left}} | {line.repeated} lines of padding"
    cells = [f"{cell or PADDING:>{width}}" for cell in line.cells]
    groups = [" ".join(cells[k : k + line.groups]) for k in range(0, len(cells), line.groups)]
    row = " | ".join(groups) if line.groups > 1 else " ".join(groups)
    rest = f" … {hidden} more" if hidden else ""
    return f"{line.place:<{left}} | {row}{rest} | {line.common}".rstrip()


def _more(picture: Picture) -> list[str]:
    return [f"… {picture.hidden_lines} more lines"] if picture.hidden_lines else []
