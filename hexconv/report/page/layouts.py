"""Layouts to look at: a small tensor in each of the four systems, drawn."""

from dataclasses import dataclass

from hexconv.layout.catalog import Placement, find
from hexconv.layout.picture import picture
from hexconv.layout.svg import svg

MOST_LINES, MOST_CELLS = 14, 32


@dataclass(frozen=True)
class Asked:
    """A layout to draw."""

    system: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    what: str
    chip: str | None = None


BLOCKS = "Every input, intermediate and output here: blocks of 8 rows, 8 columns and 32 channels."
WORDS = "Every filter here: 4 input channels lie together, what one vrmpy multiplies."
VECTORS = "oneDNN: blocks of 16 channels, one vector of AVX-512."
PIXELS = "MACE: an OpenCL image, 4 channels to a pixel, channel blocks side by side."
LANES = "OKKernel: channel c on NPU c, the start of each channel aligned."

EXAMPLES = (
    Asked("packed", "NHWC8h8w32c", (1, 10, 10, 40), "float32", BLOCKS),
    Asked("packed", "OIHW8i32o4i", (40, 40, 1, 1), "uint8", WORDS),
    Asked("onednn", "nChw16c", (1, 20, 3, 5), "float32", VECTORS),
    Asked("mace", "in-out-channel", (1, 3, 5, 10), "float16", PIXELS),
    Asked("okk", "aligned", (1, 5, 3, 5), "float32", LANES, "bm1684"),
)


@dataclass(frozen=True)
class Drawing:
    """A drawn layout.

    Attributes:
        asked: what was drawn.
        title: the layout with its shape and sizes.
        svg: the picture.
        rows: place, index and cells of every line, as text.
    """

    asked: Asked
    title: str
    svg: str
    rows: tuple[tuple[str, str, str], ...]


def drawings() -> tuple[Drawing, ...]:
    """All examples, drawn."""
    return tuple(_drawing(asked) for asked in EXAMPLES)


def _drawing(asked: Asked) -> Drawing:
    """One example."""
    found = find(asked.system, asked.name, asked.shape, asked.dtype, Placement(chip=asked.chip))
    assert found.layout, "every example has places"
    shown = picture(found.layout, max_lines=MOST_LINES, max_cells=MOST_CELLS)
    rows = tuple((line.place, line.common, " ".join(cell or "·" for cell in line.cells)) for line in shown.lines)
    return Drawing(asked, shown.title, svg(shown), rows)
