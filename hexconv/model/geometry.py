"""Read the geometry of an ONNX conv as a case states it: kernel, stride, dilation, and padding on each side."""

from collections.abc import Sequence
from typing import Any

from hexconv.model.constants import Shape
from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused
from hexconv.model.unknown import open_sizes, unknown
from hexconv.spec import Padding

Sides = tuple[int, int, int, int]
"""Padding at the top, left, bottom and right, which is also the order of ONNX's `pads`."""

NO_SIDES = (0, 0, 0, 0)
SPATIAL_AXES = {3: "1-D", 5: "3-D"}


def image_shape(graph: Graph, tensor: str) -> tuple[int, int, int, int]:
    """The logical NHWC shape of the tensor that a conv reads (ONNX has NCHW).

    Raises:
        Refused: the tensor doesn't have four axes, or the size of an axis is open.
    """
    shape = graph.type_of(tensor).shape
    if shape is None:
        raise Refused(unknown(graph, tensor))
    if len(shape) != 4:
        kind = SPATIAL_AXES.get(len(shape), "other")
        raise Refused(f"it is a {kind} conv, over {_shown(shape)}; a chain has 2-D convs")
    n, c, h, w = (size for size in shape)
    if not (isinstance(n, int) and isinstance(c, int) and isinstance(h, int) and isinstance(w, int)):
        raise Refused(open_sizes(graph, tensor))
    return n, h, w, c


def filter_shape(graph: Graph, tensor: str) -> tuple[int, int, int, int]:
    """The OIHW shape of a constant filter.

    Raises:
        Refused: the filter is computed from the model's inputs, or its shape is not known.
    """
    if not graph.is_constant(tensor):
        raise Refused(f"its filter {tensor} depends on the model's input; filters are constants here")
    shape = _constant_shape(graph, tensor)
    if len(shape) != 4:
        raise Refused(f"it is a {SPATIAL_AXES.get(len(shape), 'other')} conv, with a filter of {_shown(shape)}")
    o, i, h, w = (int(size) for size in shape)
    return o, i, h, w


def check_bias(graph: Graph, tensor: str, channels: int) -> None:
    """Check that a bias, if there is one, has a number for every output channel.

    Raises:
        Refused: the bias is computed from the model's inputs, or has another shape.
    """
    if tensor and not graph.is_constant(tensor):
        raise Refused(f"its bias {tensor} depends on the model's input; biases are constants here")
    if tensor and (shape := _constant_shape(graph, tensor)) != (channels,):
        raise Refused(
            f"its bias has the shape {_shown(shape)}; it needs one value for each of {channels} output channels"
        )


def _constant_shape(graph: Graph, tensor: str) -> Shape:
    """The shape of a constant: as shape inference knows it, or else that of its value."""
    shape = graph.type_of(tensor).shape
    if shape is None or any(isinstance(size, str) for size in shape):
        return graph.value(tensor).shape
    return shape


def geometry(node: Node, image: Sequence[int], taps: Sequence[int]) -> dict[str, Any]:
    """The fields of `Conv2d`: out_channels, kernel, stride, dilation, padding, groups.

    Args:
        node: the conv, a Conv, QLinearConv or ConvInteger.
        image: the NHWC shape of the tensor that it reads.
        taps: the OIHW shape of its filter.

    Raises:
        Refused: the attributes of the node don't fit its filter and its input.
    """
    out_channels, in_channels, *kernel = taps
    attributes = node.attributes
    groups = attributes.get("group", 1)
    if in_channels * groups != image[3]:
        raise Refused(f"it has {groups} groups of {in_channels} channels over an input of {image[3]} channels")
    stated = attributes.get("kernel_shape", kernel)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    if list(stated) != kernel or len(strides) != 2 or len(dilations) != 2:
        raise Refused(
            f"its attributes don't fit its filter {kernel}: "
            f"kernel {list(stated)}, strides {list(strides)}, dilations {list(dilations)}"
        )
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    return {
        "out_channels": out_channels,
        "kernel": tuple(kernel),
        "stride": tuple(strides),
        "dilation": tuple(dilations),
        "groups": groups,
        "padding": Padding(**dict(zip(("top", "left", "bottom", "right"), sides(node, image, reach), strict=True))),
    }


def sides(node: Node, image: Sequence[int], reach: Sequence[int]) -> Sides:
    """The padding of a conv or a pool, from `pads` or from `auto_pad`.

    Args:
        node: the conv or the pool.
        image: the NHWC shape of the tensor that it reads.
        reach: the rows and columns that its window spans.

    Raises:
        Refused: ONNX has no such `auto_pad`, or `pads` are negative and so would crop.
    """
    auto_pad = node.attributes.get("auto_pad", b"NOTSET").decode(errors="replace")
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Refused(f"its auto_pad is {auto_pad}, which ONNX doesn't have")
    if auto_pad == "VALID":
        return NO_SIDES
    if auto_pad == "NOTSET":
        stated = tuple(node.attributes.get("pads", NO_SIDES))
        if len(stated) != 4 or min(stated) < 0:
            raise Refused(f"its padding is {list(stated)}; it takes four numbers of at least 0")
        return stated
    strides = node.attributes.get("strides", [1, 1])
    axes = [_same(size, step, r) for size, step, r in zip(image[1:3], strides, reach, strict=True)]
    # The odd one of an uneven number goes to the end, or with SAME_LOWER to the beginning.
    small, large = [total // 2 for total in axes], [total - total // 2 for total in axes]
    first, last = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    return first[0], first[1], last[0], last[1]


def _same(size: int, stride: int, reach: int) -> int:
    """The padding along one axis that gives ceil(size / stride) outputs.

    >>> _same(224, 2, 3), _same(5, 1, 4)
    (1, 3)
    """
    return max((-(-size // stride) - 1) * stride + reach - size, 0)


def _shown(shape: Sequence[int | str]) -> str:
    """A shape in words: `[1, N, 8]`."""
    return "[" + ", ".join(map(str, shape)) + "]"
