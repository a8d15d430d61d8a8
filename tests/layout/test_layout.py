"""The one abstraction itself, on layouts that no system has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError, Unsupported
from hexconv.layout import Axis, Digit, Layout, Output, packed
from hexconv.layout.packed import dense

from .laws import check_all, check_inverse, check_round_trip


@st.composite
def any_strides(draw):
    """Plain strides of any size: nested, interleaved, or with elements on top of each other."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    strides = draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes)))
    base, unit = draw(st.integers(0, 5)), draw(st.sampled_from((1, 4)))
    reach = 1 + sum(step * (size - 1) for step, size in zip(strides, sizes, strict=True))
    letters = "ABC"[: len(sizes)]
    return Layout(
        "strided",
        tuple(Axis(letter, size) for letter, size in zip(letters, sizes, strict=True)),
        (Output("at", reach + draw(st.integers(0, 3)), base, unit),),
        tuple(Digit(letter, "at", stride=step) for letter, step in zip(letters, strides, strict=True)),
    )


@given(any_strides())
def test_a_collision_is_found_exactly_where_there_is_one(layout):
    flat = layout.positions().ravel()
    pair = layout.collision()
    assert (pair is None) == (len(np.unique(flat)) == len(flat))
    if pair is None:
        check_inverse(layout)
        check_round_trip(layout, fill=-1)
        return
    assert layout.address(pair[0]) == layout.address(pair[1])
    assert pair[0] != pair[1]
    if not layout.nested:
        with pytest.raises(Unsupported, match="share an address"):
            layout.owner([[0]])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_dense_buffers_keep_every_law_even_when_empty(shape):
    layout = dense("NCHW"[: len(shape)], shape)
    check_all(layout)
    np.testing.assert_array_equal(layout.positions(), np.arange(np.prod(shape)).reshape(shape))


def test_a_shift_moves_the_digits_on():
    """Rows of two, the first one half empty."""
    layout = Layout(
        "shifted",
        (Axis("A", 4, shift=1),),
        (Output("row", 3), Output("column", 2)),
        (Digit("A", "row", 2), Digit("A", "column", 1, 2)),
    )
    np.testing.assert_array_equal(layout.pack([1, 2, 3, 4]), [[0, 1], [2, 3], [4, 0]])
    check_all(layout, fill=-1)


def test_many_indices_are_looked_up_at_once():
    layout = packed("NHWC8h8w32c", (2, 20, 20, 40))
    index = [np.random.default_rng(0).integers(0, size, 1000) for size in layout.shape]
    many = layout.address(index)
    one = layout.address([int(x[7]) for x in index])
    assert {name: int(values[7]) for name, values in many.items()} == one
    np.testing.assert_array_equal(layout.position(index), layout.positions()[tuple(index)])


def test_an_axis_in_a_broadcast_index_may_be_one_number():
    layout = packed("NHWC8h8w32c", (1, 20, 20, 40))
    row = layout.address([0, np.arange(20), 3, 39])
    np.testing.assert_array_equal(row["H"], np.arange(20) // 8)
    assert row["8w"] == 3


def test_packing_keeps_the_dtype_and_takes_lists():
    layout = packed("A2a", (3,))
    assert layout.pack(np.array([1, 2, 3], np.int8), fill=9).tolist() == [[1, 2], [3, 9]]
    assert layout.pack(np.array([1, 2, 3], np.int8)).dtype == np.int8
    assert layout.unpack([[1, 2], [3, 9]]).tolist() == [1, 2, 3]


def test_what_was_packed_is_a_copy():
    layout = packed("AB", (2, 2))
    store = layout.pack(np.zeros((2, 2)))
    assert not np.shares_memory(store, layout.unpack(store))


@pytest.mark.parametrize("shape", [(3,), (1, 4), (4, 1)])
def test_arrays_of_another_shape_are_refused(shape):
    layout = packed("A2a", (4,))
    with pytest.raises(InputError, match="logical array"):
        layout.pack(np.zeros(shape))
    with pytest.raises(InputError, match="store"):
        layout.unpack(np.zeros(shape))


def test_reordering_needs_one_logical_shape():
    with pytest.raises(InputError, match="shape of A"):
        packed("A", (4,)).reorder(np.zeros(4), packed("A", (5,)))


def test_a_store_of_terabytes_is_refused_before_it_is_made():
    layout = packed("NHWC8h8w32c", (1, 2**15, 2**15, 2**10))
    with pytest.raises(Unsupported, match="bytes, arrays are made up to"):
        layout.positions()
    thin = packed("AB1048576b", (2**16, 1))
    with pytest.raises(Unsupported, match="bytes, arrays are made up to"):
        thin.pack(np.zeros((2**16, 1), np.int8))


def test_expressions_need_every_letter_and_no_other():
    layout = packed("NHWC8h8w32c", (1, 8, 8, 32))
    with pytest.raises(InputError, match="index letters"):
        layout.physical_index(n=0, h=0, w=0)
    with pytest.raises(InputError, match="physical indices"):
        layout.logical_index([0, 0])


def test_no_expression_for_interleaved_strides():
    layout = Layout(
        "interleaved",
        (Axis("A", 2), Axis("B", 3)),
        (Output("at", 8),),
        (Digit("A", "at", stride=3), Digit("B", "at", stride=2)),
    )
    with pytest.raises(Unsupported, match="interleave"):
        layout.logical_index([0])


def test_coordinates_outside_of_the_store_have_no_owner():
    layout = dense("A", (4,))
    _, held = layout.owner([[-1, 0, 3, 4]])
    assert held.tolist() == [False, True, True, False]
    with pytest.raises(InputError, match="coordinates"):
        layout.owner([0, 0])


def test_waste_is_what_isn_t_used():
    layout = packed("NHWC8h8w32c", (1, 8, 8, 8), itemsize_bytes=2)
    assert (layout.bytes, layout.waste_bytes, layout.waste) == (4096, 3072, 0.75)
