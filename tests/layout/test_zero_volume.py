"""A size of 0 leaves a tensor without elements: it takes no bytes, and every question has an answer."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.layout import Layout, mace, okk, packed, picture, text
from hexconv.layout.onednn import Memory, MemoryDesc

from .laws import check_all, check_reorder

MACE = ("in-out-channel", "in-out-height", "in-out-width", "conv2d-filter", "weight-height", "weight-width")
TAGS = ("nchw", "nhwc", "nChw16c", "NChw4n8c", "OIhw4i16o4i")


@st.composite
def empty_shapes(draw) -> list[int]:
    shape = draw(st.lists(st.integers(0, 5), min_size=4, max_size=4))
    shape[draw(st.integers(0, 3))] = 0
    return shape


MAKERS = {
    "packed": lambda shape: packed("NHWC2h3w4c", shape),
    "system memory": lambda shape: okk.system(shape, "float32", offset_bytes=16),
    "strided system memory": lambda shape: okk.system(shape, "float32", strides=(400, 70, 9, 1)),
    **{name: lambda shape, name=name: mace.image(name, shape) for name in MACE},
    **{tag: lambda shape, tag=tag: MemoryDesc.by_tag(shape, "f32", tag).layout() for tag in TAGS},
}


@pytest.mark.parametrize("name", sorted(MAKERS))
@given(shape=empty_shapes())
def test_an_empty_tensor_takes_nothing_and_keeps_every_law(name, shape):
    layout: Layout = MAKERS[name](shape)
    assert (layout.bytes, layout.waste) == (0, 0.0)
    check_all(layout)
    check_reorder(layout, packed("ABCD", shape))
    assert "the tensor is empty" in text(picture(layout))


@given(empty_shapes(), st.sampled_from(TAGS))
def test_the_handle_of_a_zero_volume_is_never_touched(shape, tag):
    desc = MemoryDesc.by_tag(shape, "f32", tag)
    handle = np.full(3, 7, np.float32)
    handle.flags.writeable = False
    memory = Memory(desc, handle)
    memory.write(np.zeros(shape, np.float32))
    memory.reorder_to(Memory(MemoryDesc.by_tag(shape, "s8", "abcd")))
    assert memory.read().shape == tuple(shape)
    allocated = Memory.allocate(desc).get_data_handle()
    assert allocated is not None
    assert math.prod(allocated.shape) == 0
    np.testing.assert_array_equal(handle, 7)


def test_local_memory_has_no_empty_tensors():
    with pytest.raises(InputError, match="n on bm1684: got 0; expected 1 to 65535"):
        okk.local(okk.CHIPS["bm1684"], "aligned", (0, 1, 1, 1), "float32")
