"""MACE's OpenCL images: which axis lies in the lanes of a pixel, which axes count pixels across and down.

Measured with MACE's own kernels (mace/ops/opencl/cl/buffer_to_image.cl) and `OpenCLUtil::CalImage2DShape`,
names of kinds from `BufferContentType`. README.md lists where MACE's document says something else.
"""

from dataclasses import dataclass

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
