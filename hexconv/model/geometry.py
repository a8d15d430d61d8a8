"""Geometry of an ONNX conv: kernel, stride, dilation, padding on each side, and a Pad before it that folds in.

A 1-D conv over [N, C, W] is one over an image of height 1, with a filter of one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hexconv.model.constants import Array, Shape
from hexconv.model.graph import Graph, Node, open_sizes, passes, unknown
from hexconv.model.refused import Refused
from hexconv.spec import Padding

Attributes = Mapping[str, Any]
Size = TypeVar("Size")
Sides = tuple[int, int, int, int]
"""Padding at the top, left, bottom and right, which is also the order of ONNX's `pads`."""

NO_SIDES = (0, 0, 0, 0)
RANKS = (3, 4)
"""The axes of images and filters that a chain can have: of 1-D and 2-D convs."""
SPATIAL_AXES = {3: "1-D", 4: "2-D", 5: "3-D"}


def image_shape(graph: Graph, tensor: str) -> tuple[int, int, int, int]:
    """The logical NHWC shape of the tensor that a conv reads (ONNX has NCHW, or NCW).

    Raises:
        Refused: the tensor has other axes, or the size of an axis is open.
    """
    shape = graph.type_of(tensor).shape
    if shape is None:
        raise Refused(unknown(graph, tensor))
    if len(shape) not in RANKS:
        kind = SPATIAL_AXES.get(len(shape), "other")
        raise Refused(f"it is a {kind} conv, over {_shown(shape)}; a chain has 1-D and 2-D convs")
    n, c, h, w = (*shape[:2], *_two(shape[2:], 1))
    if not (isinstance(n, int) and isinstance(c, int) and isinstance(h, int) and isinstance(w, int)):
        raise Refused(open_sizes(graph, tensor))
    return n, h, w, c


def filter_shape(graph: Graph, tensor: str, image: str) -> tuple[int, int, int, int]:
    """The OIHW shape of a constant filter.

    Args:
        graph: the graph of the model.
        tensor: the name of the filter.
        image: the name of the tensor that its conv reads.

    Raises:
        Refused: the filter is computed from the model's inputs, its shape is not known, or it has other axes than the
            image.
    """
    if not graph.is_constant(tensor):
        raise Refused(f"its filter {tensor} depends on the model's input; filters are constants here")
    shape, axes = _constant_shape(graph, tensor), len(graph.type_of(image).shape or ())
    if len(shape) != axes or axes not in RANKS:
        raise Refused(
            f"it is a {SPATIAL_AXES.get(len(shape), 'other')} conv, with a filter of {_shown(shape)}, over {axes} axes"
        )
    o, i, h, w = (int(size) for size in (*shape[:2], *_two(shape[2:], 1)))
    return o, i, h, w


def oihw(filter: Array) -> Array:
    """A filter as a chain has it: one of OIW gets a height of 1.

    >>> import numpy as np
    >>> oihw(np.zeros((8, 3, 5))).shape
    (8, 3, 1, 5)
    """
    return filter.reshape(*filter.shape[:2], *_two(filter.shape[2:], 1))


def _two(sizes: Sequence[Size], missing: Size) -> Sequence[Size]:
    """What an attribute or a shape says of rows and columns, where it may say it of columns alone."""
    return sizes if len(sizes) > 1 else (missing, *sizes)


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


def geometry(graph: Graph, node: Node, image: Sequence[int], taps: Sequence[int]) -> dict[str, Any]:
    """The fields of `Conv2d`: out_channels, kernel, stride, dilation, padding, groups.

    Args:
        graph: the graph of the model.
        node: the conv, a Conv, QLinearConv or ConvInteger.
        image: the NHWC shape of the tensor that it reads.
        taps: the OIHW shape of its filter.

    Raises:
        Refused: the attributes of the node don't fit its filter and its input.
    """
    out_channels, in_channels, *kernel = taps
    attributes = window(node.attributes, len(graph.type_of(node.inputs[0]).shape or ()) - 2)
    groups = attributes.get("group", 1)
    if in_channels * groups != image[3]:
        raise Refused(f"it has {groups} groups of {in_channels} channels over an input of {image[3]} channels")
    stated = attributes.get("kernel_shape", kernel)
    strides, dilations = attributes["strides"], attributes["dilations"]
    if list(stated) != kernel or len(strides) != 2 or len(dilations) != 2:
        raise Refused(
            f"its attributes don't fit its filter {kernel}: "
            f"kernel {list(stated)}, strides {list(strides)}, dilations {list(dilations)}"
        )
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    padding = dict(zip(("top", "left", "bottom", "right"), sides(attributes, image, reach), strict=True))
    return {
        "out_channels": out_channels,
        "kernel": tuple(kernel),
        "stride": tuple(strides),
        "dilation": tuple(dilations),
        "groups": groups,
        "padding": Padding(**padding),
    }


def window(attributes: Attributes, axes: int) -> Attributes:
    """The attributes of a conv, those on its window for rows and columns; with one axis, its window has one row.

    Args:
        attributes: the attributes of the node.
        axes: the number of axes that it slides along.

    >>> window({"strides": [3], "pads": [1, 2], "group": 4}, 1)
    {'strides': [1, 3], 'dilations': [1, 1], 'pads': [0, 1, 0, 2], 'group': 4}
    """
    stated = {"strides": [1] * axes, "dilations": [1] * axes} | dict(attributes)
    if axes != 1:
        return stated
    ones = {name: [1, *stated[name]] for name in ("strides", "dilations", "kernel_shape") if name in stated}
    pads = stated.get("pads", [0, 0])
    whole = len(pads) == 2 and all(len(numbers) == 2 for numbers in ones.values())
    return {**stated, **ones, "pads": [0, pads[0], 0, pads[1]]} if whole else stated


def sides(attributes: Attributes, image: Sequence[int], reach: Sequence[int]) -> Sides:
    """The padding of a conv or a pool, from `pads` or from `auto_pad`.

    Args:
        attributes: the attributes of the conv or the pool.
        image: the NHWC shape of the tensor that it reads.
        reach: the rows and columns that its window spans.

    Raises:
        Refused: ONNX has no such `auto_pad`, or `pads` are negative and so would crop.
    """
    auto_pad = attributes.get("auto_pad", b"NOTSET").decode(errors="replace")
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Refused(f"its auto_pad is {auto_pad}, which ONNX doesn't have")
    if auto_pad == "VALID":
        return NO_SIDES
    if auto_pad == "NOTSET":
        stated = tuple(attributes.get("pads", NO_SIDES))
        if len(stated) != 4 or min(stated) < 0:
            raise Refused(f"its padding is {list(stated)}; it takes four numbers of at least 0")
        return stated
    strides = attributes.get("strides", [1, 1])
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
    """A shape in words.

    >>> _shown((1, "N", 8))
    '[1, N, 8]'
    """
    return "[" + ", ".join(map(str, shape)) + "]"


@dataclass(frozen=True)
class Entry:
    """The nodes before a conv that fold into it.

    Attributes:
        source: the tensor that the first of the nodes reads.
        nodes: the nodes from the source to the conv, the conv included.
        sides: the padding that Pads add to the conv's own.
        unfolded: why a Pad before the source does not fold; empty where there is none.
    """

    source: str
    nodes: tuple[Node, ...]
    sides: Sides = NO_SIDES
    unfolded: str = ""

    def around(self, padding: Padding) -> Padding:
        """Add what Pads add to a conv's own padding."""
        top, left, bottom, right = self.sides
        return replace(
            padding,
            top=padding.top + top,
            left=padding.left + left,
            bottom=padding.bottom + bottom,
            right=padding.right + right,
        )


def entry_of(graph: Graph, nodes: Sequence[Node], zero: int = 0) -> Entry:
    """The entry of a conv, with the Pads before it.

    Args:
        graph: the graph of the model.
        nodes: the nodes that fold into the conv in any case, the conv last: the first one may be its DequantizeLinear.
        zero: the number that stands for 0 in what the first of them reads, and that the conv pads with.

    Raises:
        Refused: a constant of a Pad can't be read.
    """
    found = Entry(nodes[0].inputs[0], tuple(nodes))
    at, before, sides = found.source, list(nodes), found.sides
    while node := graph.maker(at):
        if node.op == "Pad":
            more = _added(graph, node, zero)
            if isinstance(more, str):
                return replace(found, unfolded=f"Pad {node.name} before it does not fold into its padding: {more}")
            top, left, bottom, right = (one + two for one, two in zip(sides, more, strict=True))
            at, before, sides = node.inputs[0], [node, *before], (top, left, bottom, right)
            found = Entry(at, tuple(before), sides)
        elif passes(graph, node):
            at, before = node.inputs[0], [node, *before]
        else:
            break
    return found


def _added(graph: Graph, pad: Node, zero: int) -> Sides | str:
    """How many rows and columns a Pad adds on each side; or why a conv's padding can't add the same."""
    mode = pad.attributes.get("mode", b"constant").decode(errors="replace")
    if mode != "constant":
        return f"its mode is {mode}, and a conv pads with 0"
    if depends := [name for name in pad.inputs[1:] if name and not graph.is_constant(name)]:
        return f"{depends[0]} depends on the model's input; export it with constants"
    value = pad.input(2)
    filled = float(graph.value(value).reshape(-1)[0]) if value else float(pad.attributes.get("value", 0))
    if filled != zero:
        return f"it fills with {filled:g}, and the conv pads with {zero}; export it with that value"
    before, after = _amounts(graph, pad)
    if min((*before, *after), default=-1) < 0 or any((*before[:2], *after[:2])):
        return f"it adds {[*before, *after]}, and a conv has padding of at least 0 along rows and columns alone"
    return before[2], before[3], after[2], after[3]


def _amounts(graph: Graph, pad: Node) -> tuple[list[int], list[int]]:
    """What a Pad adds before and behind N, C, H and W of an image; nothing where it has other axes."""
    stated = pad.attributes.get("pads") or pad.attributes.get("paddings") or []
    stated = graph.value(pad.input(1)).reshape(-1).tolist() if pad.input(1) else stated
    rank = len(graph.type_of(pad.inputs[0]).shape or ())
    axes = graph.value(pad.input(3)).reshape(-1).tolist() if pad.input(3) else range(rank)
    if rank not in RANKS or len(stated) != 2 * len(axes) or any(not -rank <= axis < rank for axis in axes):
        return [], []
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = int(stated[place]), int(stated[place + len(axes)])
    rows = [0] * (max(RANKS) - rank)
    return [*before[:2], *rows, *before[2:]], [*after[:2], *rows, *after[2:]]
