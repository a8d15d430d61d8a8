"""Descriptors against what the library said (golden data), and against laws of their own."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.layout.onednn import DescriptorError, FormatTag, MemoryDesc
from hexconv.layout.onednn.memory_object import read, reorder, write
from hexconv.layout.onednn.tags import canonical

from .laws import check_all, check_reorder
from .onednn_cases import build, fields, ours, reorder_digest

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str):
    return json.loads((GOLDEN / f"{name}.json").read_text())


def test_all_760_tags_are_what_the_library_said():
    answers = golden("onednn_tags")
    assert len(answers) == 760
    for answer in answers:
        desc = build(answer["case"])
        assert fields(desc) == answer["says"], answer["case"]
        assert reorder_digest(desc) == answer["memory"], answer["case"]


def test_descriptors_and_views_are_what_the_library_said():
    for answer in golden("onednn_views"):
        assert ours(answer["case"]) == answer["says"], answer["case"]


def test_all_714_domain_names_stand_for_their_tags():
    aliases = golden("onednn_aliases")
    assert len(aliases) == 714
    assert {name: canonical(name) for name in aliases} == aliases


@st.composite
def descriptors(draw, rank=None):
    """Any order, any blocks."""
    rank = rank or draw(st.integers(1, 5))
    order = draw(st.permutations("abcdefgh"[:rank]))
    blocks = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(order)), max_size=3))
    blocked = {letter for _, letter in blocks}
    outer = "".join(letter.upper() if letter in blocked else letter for letter in order)
    tag = outer + "".join(f"{size}{letter}" for size, letter in blocks)
    dims = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    return MemoryDesc.by_tag(dims, "f32", tag)


@given(descriptors(), st.integers(-2, 2))
def test_every_law_holds_for_any_tag(desc, fill):
    check_all(desc.layout(), fill)


@given(descriptors(rank=3), st.permutations("abc"))
def test_reorder_there_and_back_is_nothing(desc, order):
    check_reorder(desc.layout(), MemoryDesc.by_tag(desc.dims, "f32", "".join(order)).layout())


@given(descriptors(), st.data())
def test_permuted_axes_name_the_same_memory(desc, data):
    permutation = data.draw(st.permutations(range(desc.ndims)))
    permuted = desc.permute_axes(permutation)
    back = [permutation.index(d) for d in range(desc.ndims)]
    assert permuted.permute_axes([permutation.index(d) for d in range(desc.ndims)]) == desc
    moved = np.transpose(desc.layout().positions(), back)
    np.testing.assert_array_equal(permuted.layout().positions(), moved)


@given(descriptors(), st.data())
def test_a_submemory_names_the_same_elements(desc, data):
    """Along each dimension any start on a block, to the end."""
    starts = [data.draw(st.sampled_from(range(0, size, desc.block(d)))) for d, size in enumerate(desc.dims)]
    rest = [size - start for size, start in zip(desc.dims, starts, strict=True)]
    sub = desc.submemory(rest, starts)
    part = desc.layout().positions()[tuple(slice(start, None) for start in starts)]
    np.testing.assert_array_equal(sub.layout().positions() + sub.offset0, part)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_plain_reshapes_are_numpy_s_views(dims, data):
    """Where no dimension is 1, what can be reshaped, and to which strides, is what numpy can view."""
    dims = [size + 1 for size in dims]
    order = data.draw(st.permutations(range(len(dims))))
    array = np.zeros([dims[d] for d in order], np.float32).transpose(np.argsort(order))
    desc = MemoryDesc.by_strides(dims, "f32", [step // 4 for step in array.strides])
    new = data.draw(st.sampled_from(foldings(tuple(dims))))
    try:
        expected = [step // 4 for step in array.reshape(new, copy=False).strides]
    except ValueError:
        with pytest.raises(DescriptorError, match="reshape a memory descriptor"):
            desc.reshape(new)
    else:
        assert list(desc.reshape(new).strides) == expected


def foldings(dims: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every joining of neighbours, and the fully joined split in two."""
    if len(dims) == 1:
        halves = [(k, dims[0] // k) for k in range(2, dims[0]) if dims[0] % k == 0]
        return [dims, *halves]
    tails = foldings(dims[1:])
    return [(dims[0], *t) for t in tails] + [(dims[0] * t[0], *t[1:]) for t in tails]


def test_the_document_s_permutation_example():
    one = MemoryDesc.by_tag((2, 3), "f32", "ab").permute_axes((1, 0))
    assert one == MemoryDesc.by_tag((3, 2), "f32", "ba")


def test_strides_of_single_elements_don_t_make_descriptors_differ():
    nchw, nhwc = (MemoryDesc.by_tag((2, 3, 1, 1), "f32", tag) for tag in ("nchw", "nhwc"))
    assert nchw == nhwc
    assert hash(nchw) == hash(nhwc)
    assert MemoryDesc.by_tag((1, 8, 1, 1), "f32", "aBcd8b") != MemoryDesc.by_tag((1, 8, 1, 1), "f32", "abcd")
    assert nchw != MemoryDesc.by_tag((2, 3, 1, 1), "s32", "nchw")
    assert nchw != "nchw"


def test_the_size_is_the_largest_extent_not_the_last_element():
    desc = MemoryDesc.by_strides((2, 3, 4, 5), "f32", (100, 30, 6, 1))
    assert desc.get_size() == 800
    assert desc.layout().positions().max() == 182


def test_zero_descriptors_and_volumes_need_no_memory():
    assert MemoryDesc.zero().is_zero
    assert MemoryDesc.by_tag((), "f32", "ab").is_zero
    assert MemoryDesc.by_tag((2, 3), "f32", "undef") == MemoryDesc.zero()
    empty = MemoryDesc.by_tag((2, 0, 4, 5), "f32", "aBcd16b")
    assert (empty.get_size(), empty.strides) == (0, (320, 320, 80, 16))
    assert empty.layout().pack(np.zeros((2, 0, 4, 5))).size == 0


def test_any_has_no_places_yet():
    desc = MemoryDesc.by_tag((2, 3), "f32", "any")
    assert desc.get_size() == 0
    assert desc.reshape((6,)).dims == (6,)
    with pytest.raises(DescriptorError, match="'any'"):
        desc.layout()


def test_writing_a_submemory_touches_only_it_and_its_padding():
    parent = MemoryDesc.by_tag((1, 20), "f32", "aB16b")
    memory = np.full(32, -1.0, np.float32)
    write(parent.submemory((1, 4), (0, 16)), np.ones((1, 4), np.float32), memory)
    np.testing.assert_array_equal(memory, [-1.0] * 16 + [1.0] * 4 + [0.0] * 12)


@given(descriptors(rank=3))
def test_memories_reorder(desc):
    other = MemoryDesc.by_tag(desc.dims, "f32", "cAb2a")
    values = np.arange(np.prod(desc.dims), dtype=np.float32).reshape(desc.dims)
    one, two = (np.full(d.get_size() // 4, -1, np.float32) for d in (desc, other))
    write(desc, values, one)
    reorder(desc, one, other, two)
    np.testing.assert_array_equal(read(other, two), values)
    np.testing.assert_array_equal(two, other.layout().pack(values).ravel())


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "abd",
        "aab",
        "aBcd",
        "abcd16b",
        "aBcd0b",
        "aBcd16",
        "nchx",
        "16b",
        "aBcd16B",
        "aBcd16e",
        "NCHW",
        "nC0w16c",
        "nchW16d",
    ],
)
def test_a_bad_tag_is_refused(tag):
    with pytest.raises(DescriptorError, match="format tag"):
        FormatTag.parse(tag)


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda d: d.submemory((2, 8, 4, 5), (0, 8, 0, 0)), "unimplemented"),
        (lambda d: d.submemory((2, 20, 4, 5), (0, 0, 0, 0)), "unimplemented"),
        (lambda d: d.submemory((2, 16, 4, 6), (0, 0, 0, 0)), "invalid_arguments"),
        (lambda d: d.reshape((2, 4, 16, 4, 5)), "invalid_arguments"),
        (lambda d: d.reshape((2, 63, 20)), "invalid_arguments"),
        (lambda d: d.permute_axes((0, 0, 1, 2)), "invalid_arguments"),
        (lambda _: MemoryDesc.by_tag((2, -1), "f32", "ab"), "invalid_arguments"),
        (lambda _: MemoryDesc.by_tag((2,) * 13, "f32", "ab"), "invalid_arguments"),
        (lambda _: MemoryDesc.by_tag((2, 3), "f32", "abc"), "invalid_arguments"),
        (lambda _: MemoryDesc.by_tag((2, 3), "s4", "ab"), "invalid_arguments"),
        (lambda _: MemoryDesc.by_tag((2**40, 2**40), "f32", "ab"), "invalid_arguments"),
        (lambda _: MemoryDesc.by_strides((2, 3), "f32", (3, 2)), "invalid_arguments"),
        (lambda _: MemoryDesc.by_strides((2, 3), "f32", (-3, 1)), "invalid_arguments"),
        (lambda _: MemoryDesc.by_strides((2, 3), "f32", (1,)), "invalid_arguments"),
    ],
)
def test_refusals_carry_the_library_s_status(make, status):
    desc = MemoryDesc.by_tag((2, 64, 4, 5), "f32", "aBcd16b")
    with pytest.raises(DescriptorError) as refused:
        make(desc)
    assert refused.value.status == status
    assert "\n" not in str(refused.value)


def test_every_dimension_s_single_element_of_a_cut_block_stays_where_it_is():
    """The library would leave the block to another dimension: see README, oneDNN, reshape."""
    row = MemoryDesc.by_tag((3, 5), "f32", "BA16a16b").submemory((1, 5), (0, 0)).submemory((1, 4), (0, 0))
    with pytest.raises(DescriptorError, match="one element of a block"):
        row.reshape((1, 1, 4))
