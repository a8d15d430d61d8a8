"""Pictures show every element once, at its address."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import Unsupported
from hexconv.layout import mace, okk, packed, picture, svg, text
from hexconv.layout.onednn import MemoryDesc

from .test_packed import packed_layouts


@given(packed_layouts(), st.integers(1, 50))
def test_every_element_is_shown_once_or_hidden(layout, max_lines):
    drawn = picture(layout, max_lines=max_lines)
    cells = [cell for line in drawn.lines for cell in line.cells if cell is not None]
    shown = [(line.common, cell) for line in drawn.lines for cell in line.cells if cell is not None]
    assert len(set(shown)) == len(shown)
    if not drawn.hidden_lines and not drawn.hidden_cells:
        assert len(cells) == layout.logical_elements
    assert len(drawn.lines) <= max_lines


def test_an_image_shows_pixels():
    drawn = text(picture(mace.image("in-out-channel", (1, 2, 2, 5))))
    assert drawn.splitlines() == [
        "in-out-channel: n=1,h=2,w=2,c=5; store y=2 x=4 lane=4; 37.5% of 128 bytes unused",
        "cells: w.c; · is padding",
        "",
        "y=0 | 0.0 0.1 0.2 0.3 | 1.0 1.1 1.2 1.3 | 0.4   ·   ·   · | 1.4   ·   ·   · | n=0 h=0",
        "y=1 | 0.0 0.1 0.2 0.3 | 1.0 1.1 1.2 1.3 | 0.4   ·   ·   · | 1.4   ·   ·   · | n=0 h=1",
    ]


def test_npus_are_lines_and_runs_of_empty_ones_are_one():
    chip = okk.CHIPS["bm1684"]
    layout = okk.local(chip, "compact", (1, 2, 1, 4), "float32", start_npu=63, offset_bytes=16)
    drawn = text(picture(layout)).splitlines()[3:]
    assert drawn == [
        "npu=0 byte=16  | · · · · |",
        "npu=0 byte=32  | 0 1 2 3 | n=0 c=1 h=0",
        "npu=1 byte=16  | 124 lines of padding",
        "npu=63 byte=16 | 0 1 2 3 | n=0 c=0 h=0",
        "npu=63 byte=32 | · · · · |",
    ]


def test_a_store_of_one_offset_is_cut_into_its_blocks():
    layout = MemoryDesc.by_tag((1, 3, 1, 2), "f32", "aBcd4b").layout()
    assert text(picture(layout)).splitlines()[3:] == [
        "offset_elements=0 | 0 1 2 · | a=0 c=0 d=0",
        "offset_elements=4 | 0 1 2 · | a=0 c=0 d=1",
    ]


def test_a_giant_is_drawn_as_quickly_as_a_dwarf():
    drawn = picture(packed("NHWC8h8w32c", (1, 2**20, 2**20, 2**15)), max_lines=5)
    assert len(drawn.lines) == 5
    assert drawn.hidden_lines == 2**17 * 2**17 * 2**10 * 64 - 5


def test_long_lines_say_what_they_hide():
    drawn = picture(packed("AB", (2, 100)))
    assert drawn.hidden_cells == 68
    assert "… 68 more" in text(drawn)


def test_repeated_elements_can_t_be_drawn():
    layout = okk.system((2, 1, 1, 4), "float32", strides=(0, 4, 4, 1))
    with pytest.raises(Unsupported, match="share addresses"):
        picture(layout)


def test_svg_has_a_square_per_element_and_its_index():
    root = ElementTree.fromstring(svg(picture(packed("AB2a", (3, 2)))))
    name = "{http://www.w3.org/2000/svg}"
    squares = [box for box in root.iter(f"{name}rect") if box.get("stroke")]
    words = [word.text for word in root.iter(f"{name}text")]
    assert len(squares) == 2 * 2 * 2
    assert words.count("0") + words.count("1") + words.count("2") == 6
