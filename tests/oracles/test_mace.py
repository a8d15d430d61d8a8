"""Our images against OpenCL's: kernels that fill real `image2d_t` objects pixel by pixel."""

from random import Random

import numpy as np
import pytest

from hexconv.layout import mace

from . import opencl


def shape(rng: Random, kind: str) -> tuple[int, ...]:
    sizes = [rng.randint(1, 9) for _ in mace.KINDS[kind].axes]
    if kind == "dw-conv2d-filter":
        sizes[0] = 1
    return (*sizes[:2], 3, 3) if kind.startswith("winograd") else tuple(sizes)


def test_every_kind_has_a_kernel():
    opencl.device()
    assert set(opencl.KINDS) == set(mace.KINDS)


@pytest.mark.parametrize("half", [False, True], ids=["float", "half"])
@pytest.mark.parametrize("kind", opencl.KINDS)
def test_every_pixel_is_the_device_s(kind, half):
    rng = Random(kind)
    for _ in range(40):
        layout = mace.image(kind, shape(rng, kind), dtype="float16" if half else "float32")
        values = np.arange(1, layout.logical_elements + 1, dtype=np.float32).reshape(layout.shape)
        width, height = mace.image_shape(kind, layout.shape)
        pixels = opencl.to_image(kind, values, width, height, half=half)
        mine = layout.pack(values.astype(pixels.dtype))
        np.testing.assert_array_equal(mine, pixels, err_msg=str(layout.shape))
        assert layout.bytes == pixels.nbytes


@pytest.mark.parametrize("kind", opencl.KINDS)
def test_a_pixel_is_found_where_the_device_put_it(kind):
    rng = Random(kind)
    layout = mace.image(kind, shape(rng, kind))
    values = np.arange(1, layout.logical_elements + 1, dtype=np.float32).reshape(layout.shape)
    pixels = opencl.to_image(kind, values, *mace.image_shape(kind, layout.shape))
    found, held = layout.owner(list(np.indices(pixels.shape)))
    np.testing.assert_array_equal(held, pixels != 0)
    np.testing.assert_array_equal(values[tuple(found[held].T)], pixels[held])
