import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.layout import PackedTag, packed

from .laws import check_all, check_reorder


@st.composite
def packed_layouts(draw, rank=None):
    """Any tag: axes in any order, blocks of any letter, repeated, some in brackets; any small shape."""
    letters = draw(st.permutations("NHWCOI"[: rank or draw(st.integers(1, 5))]))
    blocks = draw(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(letters)), max_size=4))
    names = [f"{factor}{letter.lower()}" for factor, letter in blocks]
    bracket = draw(st.integers(0, len(names)))
    tail = "".join(names[:bracket]) + (f"[{''.join(names[bracket:])}]" if names[bracket:] else "")
    shape = draw(st.lists(st.integers(1, 6), min_size=len(letters), max_size=len(letters)))
    return packed("".join(letters) + tail, shape, logical="".join(sorted(letters)))


@given(packed_layouts(), st.integers(-3, 3))
def test_every_law_holds_for_any_tag(layout, fill):
    check_all(layout, fill)


@given(st.data(), st.integers(1, 4))
def test_reorder_there_and_back_is_nothing(data, rank):
    one = data.draw(packed_layouts(rank=rank))
    letters = "".join(axis.name for axis in one.axes)
    other = packed(letters[::-1] + f"3{letters[0].lower()}", one.shape, logical=letters)
    check_reorder(one, other)


@given(packed_layouts())
def test_a_tag_prints_as_it_was_read(layout):
    parsed = PackedTag.parse(layout.name)
    assert PackedTag.parse(str(parsed)) == parsed


def test_the_chain_s_tensors_have_the_documented_shapes():
    assert packed("NHWC8h8w32c", (1, 64, 64, 128)).physical_shape == (1, 8, 8, 4, 8, 8, 32)
    assert packed("OIHW8i32o4i", (128, 128, 1, 1)).physical_shape == (4, 4, 1, 1, 8, 32, 4)


def test_a_transpose_of_numpy_packs_the_same():
    array = np.random.default_rng(0).random((1, 16, 24, 64), dtype=np.float32)
    by_hand = array.reshape(1, 2, 8, 3, 8, 2, 32).transpose(0, 1, 3, 5, 2, 4, 6)
    np.testing.assert_array_equal(packed("NHWC8h8w32c", array.shape).pack(array), by_hand)


def test_a_transpose_of_numpy_packs_a_filter_the_same():
    array = np.random.default_rng(0).random((64, 96, 3, 3), dtype=np.float32)
    by_hand = array.reshape(2, 32, 3, 8, 4, 3, 3).transpose(0, 2, 5, 6, 3, 1, 4)
    np.testing.assert_array_equal(packed("OIHW8i32o4i", array.shape).pack(array), by_hand)


@pytest.mark.parametrize(
    ("source", "tag", "shape"),
    [
        ("NHWC", "NHWC8h8w32c", (1, 56, 56, 64)),
        ("NHWC", "NHWC8h8w32c", (2, 9, 17, 33)),
        ("NCHW", "NCHW16c", (2, 17, 4, 5)),
        ("NCHW", "NHWC4c", (1, 6, 3, 5)),
        ("OIHW", "OIHW16o8i", (33, 20, 3, 3)),
    ],
)
def test_tvm_maps_shapes_and_indices_the_same(source, tag, shape):
    s_tir = pytest.importorskip("tvm.s_tir")
    theirs, ours = s_tir.sbijective_layout(source, tag), packed(tag, shape, logical=source)
    assert tuple(int(x) for x in theirs.forward_shape(shape)) == ours.physical_shape
    for flat in np.random.default_rng(0).integers(0, np.prod(shape), 50):
        index = [int(x) for x in np.unravel_index(flat, shape)]
        assert [int(x) for x in theirs.forward_index(index)] == list(ours.address(index).values())


def test_tvm_s_index_map_agrees_on_a_repeated_letter():
    tirx = pytest.importorskip("tvm.tirx")
    ours = packed("OIHW8i32o4i", (64, 64, 3, 3))
    theirs = tirx.IndexMap.from_func(lambda o, i, h, w: list(ours.physical_index(o=o, i=i, h=h, w=w)))
    assert [int(x) for x in theirs.map_shape(list(ours.shape))] == list(ours.physical_shape)
    # TVM's own inverse of the expressions is the expressions of our inverse.
    inverse = theirs.inverse(list(ours.shape))
    back = tirx.IndexMap.from_func(lambda a, b, c, d, e, f, g: list(ours.logical_index([a, b, c, d, e, f, g])))
    assert inverse.is_equivalent_to(back)


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "nhwc",
        "NHWC8",
        "NHWC8k",
        "NHWCC",
        "NHWC0c",
        "NHWC8h8w32c ",
        "NHWC[]",
        "NHWC[4]",
        "N-HWC",
        "NHWC8C",
    ],
)
def test_a_bad_tag_is_refused(tag):
    with pytest.raises(InputError, match="packed layout"):
        packed(tag, (1, 2, 3, 4))


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 2, 3, -1), (1, 2, 3, 4.0), (2**40, 2**40, 2**40, 1)])
def test_a_bad_shape_is_refused(shape):
    with pytest.raises(InputError):
        packed("NHWC8h8w32c", shape)


@pytest.mark.parametrize("index", [(0, 0, 0), (0, 0, 0, 128), (-1, 0, 0, 0), (0, 2**70, 0, 0)])
def test_an_index_outside_is_refused(index):
    with pytest.raises(InputError, match="index"):
        packed("NHWC8h8w32c", (1, 64, 64, 128)).address(index)


def test_the_address_of_an_element_of_a_giant_needs_no_memory():
    layout = packed("NHWC8h8w32c", (1, 2**20, 2**20, 2**15))
    assert layout.bytes == 2**57
    assert layout.address((0, 2**20 - 1, 0, 32)) == {
        "N": 0, "H": 2**17 - 1, "W": 0, "C": 1, "8h": 7, "8w": 0, "32c": 0
    }  # fmt: skip
