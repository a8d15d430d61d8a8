"""Draws the pictures of the site's page on layouts: a small tensor in each system, and the OKKernel document's own."""

from dataclasses import dataclass, field
from functools import partial
from xml.etree import ElementTree

from hexconv.layout.catalog import Placement, find
from hexconv.layout.picture import picture
from hexconv.layout.svg import svg

MOST_LINES, MOST_CELLS = 14, 32
ElementTree.register_namespace("", "http://www.w3.org/2000/svg")


@dataclass(frozen=True)
class Asked:
    """A layout to draw, and what the page says of it."""

    system: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    what: str
    placement: Placement = field(default_factory=Placement)


BLOCKS = "Every input, intermediate and output here: blocks of 8 rows, 8 columns and 32 channels."
WORDS = "Every filter here: 4 input channels lie together, what one vrmpy multiplies."
VECTORS = "oneDNN: blocks of 16 channels, one vector of AVX-512."
PIXELS = "MACE: an OpenCL image, 4 channels to a pixel, channel blocks side by side."
SKEWED = "The document's strides: W 2, H 16, C 56 and N 120 elements. Channel 4 is in NPU 0 again, 56 elements on."
ALIGNED = "A channel of 20 elements takes 32, which are 128 bytes. Each channel is in an NPU of its own."
WRAPPED = "The same tensor from NPU 2 on: channel 2 is in NPU 0, so that every NPU reserves two channels for a batch."
COMPACT = "The same without alignment: a channel takes its 20 elements."
COLUMNS = "A row of 40 in 4 channels of 10 columns, one in each NPU."
FOUR = "Four images side by side in a word. There are 6, so two places of the second word are empty."

four_npus = partial(Placement, chip="bm1684", npus=4)
"""Makes a place in a chip with four NPUs, as in the OKKernel document's example (X = 4)."""


EXAMPLES = (
    Asked("packed", "NHWC8h8w32c", (1, 10, 10, 40), "float32", BLOCKS),
    Asked("packed", "OIHW8i32o4i", (40, 40, 1, 1), "uint8", WORDS),
    Asked("onednn", "nChw16c", (1, 20, 3, 5), "float32", VECTORS),
    Asked("mace", "in-out-channel", (1, 3, 5, 10), "float16", PIXELS),
    Asked("okk", "strided", (2, 5, 3, 4), "float32", SKEWED, four_npus(strides=(120, 56, 16, 2))),
    Asked("okk", "aligned", (2, 3, 4, 5), "float32", ALIGNED, four_npus()),
    Asked("okk", "aligned, from NPU 2", (2, 3, 4, 5), "float32", WRAPPED, four_npus(start_npu=2)),
    Asked("okk", "compact, from NPU 2", (2, 3, 4, 5), "float32", COMPACT, four_npus(start_npu=2)),
    Asked("okk", "matrix", (2, 40), "float32", COLUMNS, four_npus(columns=10)),
    Asked("okk", "4n", (6, 5, 4, 5), "int8", FOUR, four_npus()),
)
"""Those of OKKernel are the document's own, drawn for its four NPUs."""


def drawings() -> str:
    """Return the Markdown of all examples, as a part of a page."""
    parts = [
        "## Pictures",
        "Every cell holds what of its index differs within a line; colours follow the last of these axes.",
    ]
    for asked in EXAMPLES:
        found = find(asked.system, asked.name.partition(",")[0], asked.shape, asked.dtype, asked.placement)
        assert found.layout, "every example has places"
        shown = picture(found.layout, max_lines=MOST_LINES, max_cells=MOST_CELLS)
        drawn = ElementTree.fromstring(svg(shown))
        drawn.attrib |= {"role": "img", "aria-label": f"{asked.what} {shown.title}", "style": "max-width: none"}
        text = ElementTree.tostring(drawn, encoding="unicode")
        frame = '<div class="drawing">'
        parts += [f"### {asked.system}: {asked.name}", asked.what, f"{frame}{text}</div>"]
    return "\n\n".join(parts) + "\n"
