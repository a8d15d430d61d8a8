"""Layouts of MACE: OpenCL images of pixels, Winograd filters, and the CPU runtime's buffers.

Measured with MACE's own kernels (mace/ops/opencl/cl/buffer_to_image.cl) and `OpenCLUtil::CalImage2DShape`,
names of kinds from `BufferContentType`. README.md lists where MACE's document says something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError, Unsupported
from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.packed import dense

LANES = 4
"""How many elements a CL_RGBA pixel has."""


@dataclass(frozen=True)
class Kind:
    """One kind of image.

    Attributes:
        name: its `BufferContentType`, in lower case with dashes.
        axes: the axes of the buffer in logical order.
        lane: the axis whose neighbours share a pixel; it counts pixels in steps of four.
        x: axes that count the pixels of a row, slowest first.
        y: axes that count the rows, slowest first.
        readable: whether MACE has a kernel back to the buffer.
    """

    name: str
    axes: str
    lane: str
    x: str
    y: str
    readable: bool = True


KINDS = {
    kind.name: kind
    for kind in (
        Kind("in-out-channel", "NHWC", lane="C", x="CW", y="NH"),
        Kind("in-out-height", "NHWC", lane="H", x="CW", y="NH"),
        Kind("in-out-width", "NHWC", lane="W", x="CW", y="NH", readable=False),
        Kind("conv2d-filter", "OIHW", lane="O", x="I", y="OHW"),
        Kind("dw-conv2d-filter", "MIHW", lane="I", x="MHW", y="I", readable=False),
        Kind("argument", "W", lane="W", x="W", y=""),
        Kind("weight-height", "OIHW", lane="O", x="HWI", y="O"),
        Kind("weight-width", "OIHW", lane="I", x="HWI", y="O"),
        # A and B count the rows and columns of a transformed 3x3 tile.
        Kind("winograd-filter-2", "OIAB", lane="I", x="I", y="ABO"),
        Kind("winograd-filter-4", "OIAB", lane="I", x="I", y="ABO"),
        Kind("winograd-filter-6", "OIAB", lane="I", x="I", y="ABO"),
    )
}

ALIASES = {
    "channel-major": "in-out-channel",
    "height-major": "in-out-height",
    "width-major": "in-out-width",
    "conv-filter": "conv2d-filter",
    "depthwise-filter": "dw-conv2d-filter",
    "winograd-2": "winograd-filter-2",
    "winograd-4": "winograd-filter-4",
    "winograd-6": "winograd-filter-6",
    "winograd-filter": "winograd-filter-2",
}
"""Other names of kinds: the document's, and shorter ones; a Winograd filter without a size has MACE's default, 2."""

CPU_BUFFERS = {
    "cpu-in-out": "NCHW",
    "cpu-filter": "OIHW",
    "cpu-dw-filter": "MIHW",
    "cpu-argument": "W",
}
"""The order of the axes in each buffer of MACE's CPU runtime."""

PURPOSES = {
    "in-out-channel": "input and output of most operators; the default",
    "in-out-height": "output of Winograd transforms and of matrix multiplications",
    "in-out-width": "no operator of MACE asks for it",
    "conv2d-filter": "filters of convolutions",
    "dw-conv2d-filter": "filters of depthwise convolutions with a multiplier of 1",
    "argument": "one-dimensional arguments, such as a bias",
    "weight-height": "no operator of MACE asks for it: weights, output channels in the lanes",
    "weight-width": "weights of fully connected layers, input channels in the lanes",
    "winograd-filter-2": "3x3 filters of convolutions, transformed for output tiles of 2x2",
    "winograd-filter-4": "3x3 filters of convolutions, transformed for output tiles of 4x4",
    "winograd-filter-6": "3x3 filters of convolutions, transformed for output tiles of 6x6",
    "cpu-in-out": "input and output of every operator",
    "cpu-filter": "filters of convolutions",
    "cpu-dw-filter": "filters of depthwise convolutions",
    "cpu-argument": "one-dimensional arguments, such as a bias",
}
"""What MACE keeps in each kind of image, and in each buffer of its CPU runtime (as its operators ask for them)."""


LANE_BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint8": 4}
"""Bytes of a lane by dtype: CL_FLOAT, CL_HALF_FLOAT, CL_SIGNED_INT32, and CL_UNSIGNED_INT32 even for uint8."""


def kind(name: str) -> Kind:
    """Find a kind by MACE's name (`IN_OUT_CHANNEL`), the document's (`channel-major`) or with dashes.

    Raises:
        InputError: no such kind.
    """
    plain = name.lower().replace("_", "-")
    found = KINDS.get(ALIASES.get(plain, plain))
    if not found:
        raise InputError.no_such("mace layout", name, [*KINDS, *CPU_BUFFERS])
    return found


def purpose(name: str) -> str:
    """The purpose of a kind of image, or of a buffer of MACE's CPU runtime, in words.

    Raises:
        InputError: no such kind.
    """
    return PURPOSES[name] if name in CPU_BUFFERS else PURPOSES[kind(name).name]


def image(name: str, shape: Sequence[int], *, dtype: str = "float32") -> Layout:
    """The layout of an image; its outputs `y`, `x` and `lane` are in the order of the image's memory.

    Args:
        name: the name of the kind.
        shape: the buffer's shape, NHWC, OIHW, MIHW or W. A Winograd filter's is that of the transformed
            filter, OIAB (`hexconv.layout.mace` transforms); that of the 3x3 filter stands for it.
        dtype: the dtype of the image: float32, float16, int32 or uint8 (which takes four bytes a lane all the same).

    Raises:
        InputError: a rank or a type that the kind doesn't take.
        Unsupported: a depthwise filter with a multiplier: MACE's kernel writes nothing but zeros.

    >>> image("channel-major", (1, 2, 3, 5)).address((0, 1, 2, 4))
    {'y': 1, 'x': 5, 'lane': 0}
    """
    form = kind(name)
    sizes = dict(zip(form.axes, buffer_shape(form, shape), strict=True))
    pixels = sizes | {form.lane: -(-sizes[form.lane] // LANES)}
    return Layout(
        name=form.name,
        axes=tuple(Axis(letter, size) for letter, size in sizes.items()),
        outputs=(
            Output("y", prod(pixels[letter] for letter in form.y)),
            Output("x", prod(pixels[letter] for letter in form.x)),
            Output("lane", LANES),
        ),
        digits=(
            Digit(form.lane, "lane", modulus=LANES),
            *_digits(form, "y", form.y, pixels),
            *_digits(form, "x", form.x, pixels),
        ),
        itemsize_bytes=lane_bytes(dtype),
        line_outputs=2,
    )


def image_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """The width and the height of an image in pixels; a channel image takes vectors and scalars too.

    >>> image_shape("in-out-channel", (10,)), image_shape("in-out-channel", ())
    ((3, 1), (1, 1))
    """
    if kind(name).name == "in-out-channel" and len(shape) < 2:
        shape = (1, 1, 1, *(shape or (1,)))
    height, width, _ = image(name, shape).physical_shape
    return width, height


def cpu_buffer(name: str, shape: Sequence[int], *, dtype: str = "float32") -> Layout:
    """Layout of a buffer of the CPU runtime: NCHW, OIHW, MIHW or W; one output, `offset_elements`."""
    widths = {"float32": 4, "float16": 2, "int32": 4, "uint8": 1}
    if dtype not in widths:
        raise InputError("mace buffer: dtype", dtype, ", ".join(widths))
    return dense(CPU_BUFFERS[name], shape, itemsize_bytes=widths[dtype])


def check_readable(name: str) -> None:
    """Refuse images that MACE can write but not read back.

    Raises:
        Unsupported: the image holds depthwise filters, or is width-major.
    """
    if not kind(name).readable:
        raise Unsupported(f"mace has no kernel from a {kind(name).name} image back to a buffer; only buffer to image")


def lane_bytes(dtype: str) -> int:
    """Bytes of one lane of an image."""
    if dtype not in LANE_BYTES:
        raise InputError("mace image: dtype", dtype, ", ".join(LANE_BYTES))
    return LANE_BYTES[dtype]


def buffer_shape(form: Kind, shape: Sequence[int]) -> tuple[int, ...]:
    """Check a shape and bring it to the kind's own rank (`FormatBufferShape`).

    Raises:
        InputError: a rank that MACE refuses, or a filter that isn't 3x3 where Winograd needs one.
        Unsupported: a depthwise multiplier.
    """
    sizes = tuple(shape)
    if form.name == "in-out-channel" and len(sizes) == 2:
        sizes = (sizes[0], 1, 1, sizes[1])
    if form.name in ("in-out-height", "in-out-width") and len(sizes) == 3:
        sizes = (*sizes, 1)
    if form.name == "argument" and sizes[1:] == (1,) * (len(sizes) - 1):
        sizes = sizes[:1]
    if len(sizes) != len(form.axes):
        raise InputError(f"mace {form.name}: shape", f"{list(shape)}", f"{_ranks(form)}: {','.join(form.axes)}")
    if form.axes == "MIHW" and sizes[0] != 1:
        raise Unsupported(
            f"mace {form.name}: multiplier {sizes[0]}: its kernel writes zeros for all but a multiplier of 1"
        )
    return _tiles(form, sizes) if form.axes == "OIAB" else sizes


def buffer_index(name: str, index: Sequence[int]) -> tuple[int, ...]:
    """Bring an index of a buffer of lower rank to the kind's own rank."""
    form, given = kind(name), tuple(index)
    if form.name == "in-out-channel" and len(given) == 2:
        return given[0], 0, 0, given[1]
    if form.name in ("in-out-height", "in-out-width") and len(given) == 3:
        return *given, 0
    return given[:1] if form.name == "argument" and not any(given[1:]) else given


def _tiles(form: Kind, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a transformed filter, given that shape or the shape of the 3x3 filter."""
    tile = int(form.name[-1]) + 2
    if sizes[2:] not in ((3, 3), (tile, tile)):
        allowed = f"O,I,3,3 or, transformed, O,I,{tile},{tile}"
        raise InputError(f"mace {form.name}: shape", f"{list(sizes)}", allowed)
    return (*sizes[:2], tile, tile)


def _ranks(form: Kind) -> str:
    """The ranks that a kind takes, in words."""
    shorter = {"in-out-channel": "2 or ", "in-out-height": "3 or ", "in-out-width": "3 or "}
    return f"{shorter.get(form.name, '')}{len(form.axes)} sizes"


def _digits(form: Kind, output: str, order: str, pixels: dict[str, int]) -> list[Digit]:
    """The digits that count the pixels along one side of the image."""
    return [
        Digit(
            letter,
            output,
            divisor=LANES if letter == form.lane else 1,
            stride=prod(pixels[inner] for inner in order[k + 1 :]),
        )
        for k, letter in enumerate(order)
    ]


_G = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    6: [
        [1, 0, 0],
        [-2 / 9, -2 / 9, -2 / 9],
        [-2 / 9, 2 / 9, -2 / 9],
        [1 / 90, 1 / 45, 2 / 45],
        [1 / 90, -1 / 45, 2 / 45],
        [1 / 45, 1 / 90, 1 / 180],
        [1 / 45, -1 / 90, 1 / 180],
        [0, 0, 1],
    ],
}
"""The matrix G for each block size, from mace/ops/opencl/cl/buffer_to_image.cl."""


def winograd_filter(weights: NDArray[np.floating], block: int) -> NDArray[np.floating]:
    """Transform 3x3 filters for output tiles of `block` x `block`.

    Args:
        weights: (O, I, 3, 3).
        block: 2, 4 or 6.

    Returns:
        (O, I, block + 2, block + 2), rows along h; the dtype of the weights.

    Raises:
        InputError: the block size is another, or the filters aren't 3x3.
    """
    if block not in _G:
        raise InputError("mace winograd: block", str(block), "2, 4 or 6")
    if weights.ndim != 4 or weights.shape[2:] != (3, 3):
        raise InputError("mace winograd: filter shape", str(list(weights.shape)), "O,I,3,3")
    g = np.array(_G[block])
    return np.einsum("ah,oihw,bw->oiab", g, weights, g).astype(weights.dtype)


__all__ = [
    "CPU_BUFFERS",
    "KINDS",
    "LANES",
    "buffer_index",
    "check_readable",
    "cpu_buffer",
    "image",
    "image_shape",
    "kind",
    "purpose",
    "winograd_filter",
]
