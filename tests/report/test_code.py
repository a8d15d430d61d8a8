"""A listing as HTML: nothing lost, loops fold, parts are named."""

from pathlib import Path

import pytest

from hexconv.report.listing import header_of
from hexconv.report.page.case_view import listing_html
from tests.report.document import Document, Element

LISTINGS = sorted((Path(__file__).parents[2] / "schedules").glob("*.tir"))


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_every_line_of_a_listing_is_there_once_and_in_order(path: Path) -> None:
    tir = path.read_text()
    header = [line for line in tir.splitlines() if line.startswith("#")]
    lines = [line.strip() for line in tir.splitlines()[len(header) :] if line.strip()]
    root = Document(str(listing_html(tir))).root
    shown = [e.words() if e.tag == "code" else f"# {e.words()}" for e in _in_order(root) if e.tag in ("code", "b")]
    assert "\n".join(shown).split("\n") == lines
    assert header_of(tir).splitlines()[0] == header[0].removeprefix("# ")


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_every_loop_folds_and_lies_in_the_loop_around_it(path: Path) -> None:
    tir = path.read_text()
    root = Document(str(listing_html(tir))).root
    depths = [(line.strip(), (len(line) - len(line.lstrip())) // 4) for line in tir.splitlines() if line.strip()]
    loops = [(text, depth) for text, depth in depths if text.startswith("for ")]
    found = [e for e in root.all("details") if e.children[0].all("code")[0].words().startswith("for ")]
    assert sorted((e.children[0].all("code")[0].words(), _depth(e)) for e in found) == sorted(loops)


def test_parts_are_folded_and_what_holds_them_is_open() -> None:
    tir = "for a in range(2):\n    # conv2d #1\n    for b in range(3):\n        x[b] = '<b>'\n    y = 1\n"
    outer, inner = Document(str(listing_html(tir))).root.all("details")
    assert "open" in outer.attributes
    assert "open" not in inner.attributes
    assert [label.words() for label in inner.children[0].all("b")] == ["conv2d #1"]
    assert inner.words().endswith("x[b] = '<b>'")


def test_lines_between_loops_stand_together_and_say_no_more_than_their_text() -> None:
    """A network's page has ten thousand lines: an element for each, or five letters for a quote, are most of it."""
    html = listing_html('x = "a"\ny = "<&>"\nfor a in range(2):\n    z = a\nx = 1\n')
    loop = '<i class="k">for</i> a <i class="k">in</i> range(2):'
    folds = f"<details><summary><code>{loop}</code></summary><code>z = a</code></details>"
    assert html == f'<code>x = "a"\ny = "&lt;&amp;&gt;"</code>{folds}<code>x = 1</code>'


def test_an_empty_listing_is_nothing() -> None:
    assert listing_html("") == ""
    assert header_of("") == ""


def _in_order(element: Element) -> list[Element]:
    return [found for child in element.children for found in (child, *_in_order(child))]


def _depth(element: Element) -> int:
    above, depth = element.parent, 0
    while above:
        depth += above.tag == "details"
        above = above.parent
    return depth
