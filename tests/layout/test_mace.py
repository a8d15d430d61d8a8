"""Images against hashes of what MACE's own kernels made, and against laws."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError, Unsupported
from hexconv.layout import mace

from .laws import check_all, check_reorder

# Image bytes of buffers 1, 2, 3, ... (float32, little-endian), made by mace/ops/opencl/cl/buffer_to_image.cl.
KERNELS_SAID = [
    ("in-out-channel", (2, 3, 5, 7), "3a4246a94df5eeb4"),
    ("in-out-channel", (1, 1, 1, 1), "ccaf6f183579497e"),
    ("in-out-height", (2, 5, 3, 2), "11eac6da805ba224"),
    ("in-out-height", (1, 9, 2, 3), "c2ce83c84d58c559"),
    ("in-out-width", (2, 3, 6, 2), "ac9faeee63b0c911"),
    ("conv2d-filter", (6, 3, 3, 2), "072ccaf29698b13a"),
    ("dw-conv2d-filter", (1, 6, 3, 2), "dfe546249e8d6bc5"),
    ("argument", (10,), "5b9275c6689289f6"),
    ("weight-height", (6, 3, 3, 2), "072ccaf29698b13a"),
    ("weight-width", (6, 3, 3, 2), "f055da78b73f8951"),
]


def numbers(shape) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype="<f4").reshape(shape)


@pytest.mark.parametrize(("kind", "shape", "digest"), KERNELS_SAID)
def test_images_are_what_mace_s_kernels_made(kind, shape, digest):
    image = mace.image(kind, shape).pack(numbers(shape))
    assert hashlib.sha256(image.tobytes()).hexdigest()[:16] == digest


def test_a_column_of_a_height_image_is_what_mace_s_kernel_made():
    image = mace.image("in-out-height", (2, 5, 2, 3)).pack(numbers((2, 5, 2, 3)))
    expected = [[4, 10, 16, 22], [28, 0, 0, 0], [34, 40, 46, 52], [58, 0, 0, 0]]
    np.testing.assert_array_equal(image[:, 1], expected)


@st.composite
def images(draw):
    kind = mace.KINDS[draw(st.sampled_from(sorted(mace.KINDS)))]
    shape = [draw(st.integers(1, 6)) for _ in kind.axes]
    if kind.axes == "MIHW":
        shape[0] = 1
    return mace.image(kind.name, [*shape[:2], 3, 3] if kind.axes == "OIAB" else shape)


@given(images(), st.integers(-2, 2))
def test_every_law_holds_for_every_kind(layout, fill):
    check_all(layout, fill)


@given(st.lists(st.integers(1, 6), min_size=4, max_size=4))
def test_images_of_one_tensor_reorder_into_each_other(shape):
    check_reorder(mace.image("channel-major", shape), mace.image("height-major", shape))
    check_reorder(mace.image("width-major", shape), mace.image("channel-major", shape))


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        ("IN_OUT_CHANNEL", (2, 3, 5, 7), (10, 6)),
        ("in-out-channel", (2, 10), (3, 2)),
        ("in-out-channel", (10,), (3, 1)),
        ("in-out-channel", (), (1, 1)),
        ("in-out-height", (2, 5, 3), (3, 4)),
        ("argument", (10, 1, 1), (3, 1)),
        ("winograd-filter-2", (5, 6, 3, 3), (2, 80)),
        ("winograd-filter-6", (5, 6, 3, 3), (2, 320)),
    ],
)
def test_image_shapes_of_every_rank(kind, shape, size):
    assert mace.image_shape(kind, shape) == size


@pytest.mark.parametrize(
    ("kind", "shape", "dtype"),
    [
        ("in-out-channel", (1, 2, 3), "float32"),
        ("in-out-channel", (10,), "float32"),
        ("in-out-width", (1, 2), "float32"),
        ("conv2d-filter", (1, 2, 3), "float32"),
        ("argument", (10, 2), "float32"),
        ("winograd-filter-2", (5, 6, 5, 5), "float32"),
        ("in-out-channel", (1, 2, 3, 4), "int8"),
        ("in-out-depth", (1, 2, 3, 4), "float32"),
    ],
)
def test_what_mace_refuses_is_refused(kind, shape, dtype):
    with pytest.raises(InputError, match="mace"):
        mace.image(kind, shape, dtype=dtype)


def test_a_depthwise_multiplier_is_refused():
    with pytest.raises(Unsupported, match="multiplier 2"):
        mace.image("depthwise-filter", (2, 6, 3, 3))


@pytest.mark.parametrize("kind", ["dw-conv2d-filter", "in-out-width"])
def test_some_images_can_t_be_read_back(kind):
    with pytest.raises(Unsupported, match="back to a buffer"):
        mace.check_readable(kind)
    mace.check_readable("in-out-channel")


@pytest.mark.parametrize(("dtype", "lane"), [("float32", 4), ("float16", 2), ("int32", 4), ("uint8", 4)])
def test_lanes_have_the_width_of_their_channel_type(dtype, lane):
    assert mace.image("argument", (5,), dtype=dtype).bytes == 2 * 4 * lane


def test_filters_are_the_same_bytes_in_two_image_shapes():
    """The document calls the two forms the same: their memory is, their coordinates aren't."""
    one, other = (mace.image(kind, (6, 3, 3, 2)) for kind in ("conv2d-filter", "weight-height"))
    values = numbers((6, 3, 3, 2))
    assert one.pack(values).tobytes() == other.pack(values).tobytes()
    assert one.physical_shape != other.physical_shape


@pytest.mark.parametrize("block", [2, 4, 6])
def test_the_winograd_transform_convolves(block):
    """A^T [U * (B^T d B)] A would need MACE's other matrices; U alone is checked by interpolation.

    G evaluates the filter's polynomial at the points of the algorithm, scaled; so each row of U must be a
    multiple of the filter's value there, and the last row its leading coefficient.
    """
    rng = np.random.default_rng(block)
    taps = rng.standard_normal((1, 1, 3, 3))
    transformed = mace.winograd_filter(taps, block)[0, 0]
    points = {2: [0, 1, -1], 4: [0, 1, -1, 2, -2], 6: [0, 1, -1, 2, -2, 0.5, -0.5]}[block]
    evaluate = np.vander([*points], 3, increasing=True)
    evaluate = np.vstack([evaluate, [0, 0, 1]])
    ratio = transformed / (evaluate @ taps[0, 0] @ evaluate.T)
    scale = ratio[:, -1:] * ratio[-1:, :] / ratio[-1, -1]
    np.testing.assert_allclose(ratio, scale, rtol=1e-9)
    assert transformed.shape == (block + 2, block + 2)


def test_cpu_buffers_are_dense():
    layout = mace.cpu_buffer("cpu-in-out", (2, 3, 4, 5))
    assert layout.address((1, 2, 3, 4)) == {"offset_elements": 119}
    assert mace.cpu_buffer("cpu-argument", (7,), dtype="float16").bytes == 14
