"""Memory objects, the rule for `any`, and gates, by their laws."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import Unsupported
from hexconv.layout.onednn import GATES, DescriptorError, Memory, MemoryDesc, gate_index, gate_of, tag_for

from .test_onednn import descriptors


def filled(desc: MemoryDesc, value: float) -> np.ndarray:
    return np.full(desc.offset0 + desc.layout().elements, value, np.float32)


def held(desc: MemoryDesc) -> np.ndarray:
    """Which elements of the buffer are elements of the tensor."""
    places = np.zeros(desc.offset0 + desc.layout().elements, np.bool_)
    places[desc.layout().positions() + desc.offset0] = True
    return places


@given(descriptors())
def test_setting_a_handle_zeroes_exactly_the_padding(desc):
    """A descriptor by tag has nothing but elements and padding."""
    handle = filled(desc, 7)
    memory = Memory(desc, handle)
    np.testing.assert_array_equal(handle != 0, held(desc))
    assert memory.get_data_handle() is handle
    assert memory.get_desc() is desc


@given(descriptors(), st.data())
def test_a_submemory_s_handle_keeps_what_its_parent_holds_elsewhere(desc, data):
    starts = [data.draw(st.sampled_from(range(0, size, desc.block(d)))) for d, size in enumerate(desc.dims)]
    sub = desc.submemory([size - start for size, start in zip(desc.dims, starts, strict=True)], starts)
    handle = filled(desc, 7)
    Memory(sub, handle)
    assert (handle[held(desc)] == 7).all()
    Memory(desc, handle)
    np.testing.assert_array_equal(handle != 0, held(desc))


@given(descriptors(rank=3), st.sampled_from(("abc", "cAb2a", "BaC4c3b", "CbA2c3a2c")))
def test_a_reorder_is_a_read_and_a_write(one, tag):
    other = MemoryDesc.by_tag(one.dims, "f32", tag)
    values = np.arange(1, prod(one.dims) + 1, dtype=np.float32).reshape(one.dims)
    source, target = Memory.allocate(one), Memory(other, filled(other, -1))
    source.write(values)
    source.reorder_to(target)
    np.testing.assert_array_equal(source.get_data_handle(), one.layout().pack(values).ravel())
    np.testing.assert_array_equal(target.get_data_handle(), other.layout().pack(values).ravel())
    np.testing.assert_array_equal(target.read(), values)


def test_conversions_round_to_even_and_saturate():
    source = Memory.allocate(MemoryDesc.by_tag((6,), "f32", "a"))
    source.write(np.array([0.5, 1.5, -2.5, 300, -300, 3.4], np.float32))
    for data_type, expected in {"s8": [0, 2, -2, 127, -128, 3], "u8": [0, 2, 0, 255, 0, 3]}.items():
        target = Memory.allocate(MemoryDesc.by_tag((6,), data_type, "A4a"))
        source.reorder_to(target)
        assert target.read().tolist() == expected
        handle = target.get_data_handle()
        assert handle is not None
        assert handle[6:].tolist() == [0, 0]


def test_float32_saturates_at_the_largest_int32_that_it_has():
    source = Memory(MemoryDesc.by_tag((2,), "f32", "a"), np.array([3e9, -3e9], np.float32))
    target = Memory.allocate(MemoryDesc.by_tag((2,), "s32", "a"))
    source.reorder_to(target)
    assert target.read().tolist() == [2147483520, -2147483648]


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda d: Memory(d, np.zeros(31, np.float32)), "for 32 elements"),
        (lambda d: Memory(d, np.zeros((4, 8), np.float32)), "for 32 elements"),
        (lambda d: Memory(d, np.zeros(32, np.int32)), "f32 wants a writable one of float32"),
        (lambda d: Memory(d, np.broadcast_to(np.float32(0), 32)), "read-only"),
        (lambda d: Memory(d).read(), "no buffer"),
        (lambda d: Memory.allocate(d).write(np.zeros((2, 16), np.float32)), r"\[2, 16\]"),
        (lambda d: Memory.allocate(d).reorder_to(Memory.allocate(MemoryDesc.by_tag((2, 9), "bf16", "ab"))), "bf16"),
        (lambda d: Memory.allocate(MemoryDesc.by_tag(d.dims, "f32", "any")), "choose a tag"),
    ],
)
def test_what_a_memory_refuses(act, said):
    with pytest.raises(DescriptorError, match=said):
        act(MemoryDesc.by_tag((2, 9), "f32", "aB16b"))


def test_a_giant_is_refused_before_it_is_allocated():
    with pytest.raises(Unsupported, match="arrays are made up to"):
        Memory.allocate(MemoryDesc.by_tag((2**20, 2**20), "f32", "ab"))


def test_zero_descriptors_have_no_buffer():
    memory = Memory.allocate(MemoryDesc.zero())
    assert memory.get_data_handle() is None
    assert memory.read().shape == ()


@pytest.mark.parametrize(
    "refused",
    [
        lambda _, **k: MemoryDesc.by_tag((2, 3), "f32", "abc", **k),
        lambda _, **k: MemoryDesc.by_strides((2, 3), "f32", (3, 2), **k),
        lambda d, **k: d.submemory((2, 8, 4, 5), (0, 8, 0, 0), **k),
        lambda d, **k: d.reshape((2, 63, 20), **k),
        lambda d, **k: d.permute_axes((0, 0, 1, 2), **k),
    ],
)
def test_a_refusal_is_a_zero_descriptor_where_that_is_allowed(refused):
    desc = MemoryDesc.by_tag((2, 64, 4, 5), "f32", "aBcd16b")
    with pytest.raises(DescriptorError):
        refused(desc)
    assert refused(desc, allow_empty=True) == MemoryDesc.zero()


def test_allowing_a_zero_descriptor_changes_nothing_that_works():
    desc = MemoryDesc.by_tag((2, 64, 4, 5), "f32", "aBcd16b", allow_empty=True)
    assert desc.reshape((2, 64, 20), allow_empty=True) == desc.reshape((2, 64, 20))
    assert desc.permute_axes((0, 3, 1, 2), allow_empty=True) == desc.permute_axes((0, 3, 1, 2))


@given(
    st.lists(st.sampled_from((1, 3, 4, 8, 12, 16, 24, 48)), min_size=3, max_size=5),
    st.sampled_from(("data", "weights", "grouped-weights")),
)
def test_what_any_becomes_is_dense_and_blocks_what_it_can(dims, use):
    asked = MemoryDesc.by_tag(dims, "f32", "any")
    chosen = asked.resolved(use)
    assert (chosen.dims, chosen.data_type) == (asked.dims, asked.data_type)
    assert chosen.get_size() == 4 * prod(dims)
    assert chosen.resolved("data") is chosen
    channels = {"data": [1], "weights": [0, 1], "grouped-weights": [1, 2]}[use]
    for d in range(len(dims)):
        block = chosen.block(d)
        assert dims[d] % block == 0
        assert (block > 1) == (d in channels and dims[d] % 4 == 0)
        assert block in (1, 16) or dims[d] % (2 * block) != 0


@pytest.mark.parametrize(
    ("dims", "use", "tag"),
    [
        ((1, 3, 4, 4), "data", "acdb"),
        ((1, 3, 4), "data", "acb"),
        ((1, 32, 4, 4), "data", "aBcd16b"),
        ((32, 32, 3, 3), "weights", "ABcd16b16a"),
        ((5, 3, 3, 3), "weights", "abcd"),
        ((2, 8, 4, 3, 3), "grouped-weights", "aBCde4c8b"),
    ],
)
def test_the_rule_s_tags(dims, use, tag):
    assert tag_for(MemoryDesc.by_tag(dims, "f32", "any"), use) == tag


def test_the_rule_needs_channels():
    with pytest.raises(DescriptorError, match="3 dimensions or more"):
        tag_for(MemoryDesc.by_tag((4, 4), "f32", "any"), "grouped-weights")


@pytest.mark.parametrize("cell", sorted(GATES))
@pytest.mark.parametrize(("tag", "axis"), [("ldigo", 3), ("ldgoi", 3), ("ldgo", 2)])
def test_a_gate_s_part_is_where_its_number_says(cell, tag, axis):
    dims = [2, 2, 3, 4, 5][: len(tag)]
    dims[axis] = len(GATES[cell])
    desc = MemoryDesc.by_tag(dims, "f32", tag)
    memory = Memory.allocate(desc)
    memory.write(np.indices(dims)[axis].astype(np.float32))
    for gate in GATES[cell]:
        part = Memory(gate_of(desc, cell, gate), memory.get_data_handle())
        assert (part.read() == gate_index(cell, gate)).all()


def test_gates_are_in_the_document_s_order():
    assert GATES["lstm"] == ("input", "forget", "candidate", "output")
    assert GATES["gru"] == ("update", "reset", "output")
