"""What surrounds a tensor in local memory: other numbers of NPUs, units, widths of matrices, rooms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.layout import okk, picture, text

from .laws import check_all

FOUR = okk.chip("bm1684", 4)


def test_a_chip_keeps_its_npus_unless_others_are_asked_for():
    assert okk.chip("BM1688") == okk.CHIPS["bm1688"]
    assert replace(okk.CHIPS["bm1684"], npus=4) == FOUR


@given(st.integers(1, 9), st.lists(st.integers(1, 5), min_size=4, max_size=4), st.data())
def test_every_law_holds_for_any_number_of_npus(npus, shape, data):
    chip = okk.chip("bm1684", npus)
    start = data.draw(st.integers(0, npus - 1))
    layout = okk.local(chip, data.draw(st.sampled_from(okk.NAMED)), shape, "float32", start_npu=start)
    check_all(layout)
    rows = okk.channels_per_npu(chip, start, shape[1])
    assert okk.empty_blocks(chip, start, shape[1]) == rows * npus - shape[1]


@given(st.sampled_from(okk.NAMED), st.lists(st.integers(1, 6), min_size=4, max_size=4), st.integers(0, 3))
def test_strides_are_steps_between_elements(name, shape, start):
    """Two elements that differ by one along an axis (along c by the number of NPUs) lie one stride apart."""
    sizes = (shape[0], shape[1] + 4, *shape[2:])
    layout = okk.local(FOUR, name, sizes, "float32", start_npu=start)
    for axis, (stride, step) in enumerate(zip(okk.strides_of(layout), (1, 4, 1, 1), strict=True)):
        if sizes[axis] > step:
            there = layout.address([step * (d == axis) for d in range(4)])
            here = layout.address([0, 0, 0, 0])
            assert there == {"npu": here["npu"], "byte": here["byte"] + 4 * stride}


def test_the_document_s_picture_of_a_matrix():
    drawn = text(picture(okk.matrix(FOUR, 2, 40, 10, "float32"), max_cells=11)).splitlines()[3:5]
    assert drawn[0].startswith("npu=0 byte=0   |  0  1  2  3  4  5  6  7  8  9  ·")
    assert drawn[1].startswith("npu=0 byte=128 |  0  1  2  3  4  5  6  7  8  9  ·")


modes = st.sampled_from(sorted(okk.MODES))


@given(modes, st.lists(st.integers(1, 7), min_size=4, max_size=4), st.integers(0, 3))
def test_a_mode_is_a_plain_layout_of_its_units(name, shape, start):
    """4N and 2N are the aligned layout of 32-bit units; 2IC is the compact one of units of two words along w."""
    dtype = okk.MODES[name].dtypes[0]
    array = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)
    units = okk.join_units(name, array)
    assert units.shape == okk.unit_view(name, shape, dtype).shape
    store = okk.joined(FOUR, name, shape, dtype, start_npu=start).pack(array)
    words = units.view(np.uint32)
    arrangement = "compact" if name == "2ic" else "aligned"
    plain = okk.local(FOUR, arrangement, words.shape, "uint32", start_npu=start)
    np.testing.assert_array_equal(store.view(np.uint32), plain.pack(words))
    np.testing.assert_array_equal(okk.split_units(units, shape[0], dtype), array)


@given(st.integers(1, 300), st.sampled_from(("float32", "int8")), st.integers(1, 6), st.data())
def test_no_width_is_better_than_the_one_advised(columns, dtype, npus, data):
    chip = okk.chip("bm1688", npus)
    start = data.draw(st.integers(0, npus - 1))
    best = okk.best_width(chip, columns, dtype, start)
    every = []
    for width in range(1, columns + 1):
        layout = okk.matrix(chip, 1, columns, width, dtype, start_npu=start)
        channels = -(-columns // width)
        rows = okk.channels_per_npu(chip, start, channels)
        every.append((layout.bytes // npus, rows, -min(npus, channels), width))
    row_bytes, rows, _, width = min(every)
    assert best == (row_bytes, rows, width)


def test_widths_that_the_chip_has_no_channels_for_are_refused():
    most = FOUR.max_channels * 65535
    assert okk.best_width(FOUR, most, "int8").columns_per_channel == 65535
    with pytest.raises(InputError, match=f"1 to {most}"):
        okk.best_width(FOUR, most + 1, "int8")


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(1, 3), min_size=4, max_size=4))
    place = {"start_npu": draw(st.integers(0, 3)), "offset_bytes": 4 * draw(st.integers(0, 40))}
    return okk.local(FOUR, "compact", shape, draw(st.sampled_from(("float32", "int8"))), **place)


@given(tensors(), tensors())
def test_tensors_are_apart_exactly_where_their_rooms_are(one, other):
    rooms = [range(t.outputs[1].base, t.outputs[1].base + t.bytes // 4) for t in (one, other)]
    if not set(rooms[0]) & set(rooms[1]):
        okk.check_apart(one, other)
        return
    with pytest.raises(InputError) as refused:
        okk.check_apart(one, other)
    shared = len(set(used(one)) & set(used(other)))
    assert (f"got {shared} bytes of elements" if shared else "got empty blocks") in str(refused.value)


def used(layout) -> list[tuple[int, int]]:
    """NPU and byte of everything that elements take."""
    indices = np.ndindex(layout.shape)
    places = [layout.address(index) for index in indices]
    return [(p["npu"], p["byte"] + k) for p in places for k in range(layout.itemsize_bytes)]
