"""Pages of the reference that are made from the code, with pictures of layouts; `make site` uses them."""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

from hexconv.layout.catalog import Placement, find
from hexconv.layout.picture import picture, svg
from hexconv.report.described import attributes
from hexconv.report.words import in_bytes
from hexconv.search import machine
from hexconv.spec import Chain, Conv2d, Plan, Requantize
from hexconv.spec.addition import Add
from hexconv.spec.capacities import CAPACITIES_BYTES
from hexconv.spec.case import parse_table, read_text
from hexconv.spec.knobs import Arch

TABLES = (
    ("[chain]", Chain),
    ("[[chain.conv]]", Conv2d),
    ("requantize = { .. }", Requantize),
    ("add = { .. }", Add),
    ("[plan]", Plan),
)


def pages() -> dict[str, str]:
    """Return the Markdown of each page, by its path in the site."""
    made: dict[str, Callable[[], str]] = {
        "fields": _fields,
        "architectures": _architectures,
    }
    return {f"reference/{name}.md": make() for name, make in made.items()}


def _fields() -> str:
    """Return a page with every field of a case file, from the dataclasses that check it."""
    parts = [
        "# Fields of a case",
        "Made from the classes that check a case file. [Cases](cases.md) shows a whole file.",
    ]
    for title, kind in TABLES:
        said = attributes(kind)
        rows = [f"| `{one.name.rstrip('_')}` | {_default(one)} | {said[one.name]} |" for one in fields(kind)]
        head = ["| field | if left out | what it says |", "|---|---|---|"]
        parts += [f"## `{title}`", "\n".join((*head, *rows))]
    return "\n\n".join(parts) + "\n"


def _default(one: Field[Any]) -> str:
    """Return the value that a field has if a case file leaves it out."""
    if one.default is MISSING:
        return "has to be given"
    if one.default is None or one.name == "padding":
        return "" if one.default is None else "`0`"
    words = {True: "true", False: "false"}
    shown = words[one.default] if isinstance(one.default, bool) else repr(one.default).replace("'", '"')
    return f"`{shown.replace('(', '[').replace(')', ']')}`"


def _architectures() -> str:
    """Return a page with what is known of each architecture, and where that comes from."""
    capacities = CAPACITIES_BYTES
    rows = ["| `arch` | VTCM | rates of the packet model |", "|---|---|---|"]
    for arch in get_args(Arch):
        path = Path(machine.__file__).parent / "machines" / f"{arch}.toml"
        source = parse_table(read_text(path), str(path))["source"]
        size = in_bytes(capacities[arch]) if arch in capacities else "not known: state `vtcm_bytes`"
        rows.append(f"| {arch} | {size} | {source} |")
    told = (
        "VTCM is what TVM's target tag says. `vtcm_bytes` in a plan states another size: there are v73 with 4 MiB. "
        "QEMU 7.2 runs v60 to v67; code for newer architectures is compiled, and its kernels are run as v67."
    )
    return "\n\n".join(("# Architectures", told, "\n".join(rows))) + "\n"


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
