"""Random small models, of every opset from 7 to the newest, in which whatever a node reads may be a constant.

A constant is stored, made by a Constant node, or computed from another one: by Identity, Cast, Reshape, QuantizeLinear
or DequantizeLinear. Images may be constants too. Now and then an operand that is mostly constant is an input of the
model instead. All models are valid; `Drawn.feed` has values for their inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs

from tests.model.operands import EIGHT_BITS, FLOAT_TYPES, Array, Operands

OLDEST, NEWEST = 7, defs.onnx_opset_version()
MOST_STEPS = 7
MOST_CHANNELS = 4
INPUT_SCALE, FILTER_SCALE = 0.02, 0.03

Pair = tuple[int, int]


@dataclass(frozen=True)
class Drawn:
    """A model, and values for its inputs."""

    model: onnx.ModelProto
    feed: dict[str, Array]


@dataclass(frozen=True)
class Tensor:
    """A tensor that later nodes may read: NCHW; quantised ones with their zero point."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    zero: int = 0


def draw_model(seed: int, index: int) -> Drawn:
    """The model of this index; every one can be drawn alone."""
    return _Draw(np.random.default_rng([seed, index])).drawn()


class _Draw(Operands):
    def __init__(self, random: np.random.Generator) -> None:
        opset = int(random.integers(OLDEST, NEWEST, endpoint=True))
        self.random = random
        shape = (self.of(1, 1, 1, 2), self.upto(MOST_CHANNELS), *self.size())
        dtype = self.of(*["float32"] * 5, *(["uint8", "int8"] * 2 if opset >= 10 else ["float32"]), "float16")
        dtype = "float64" if self.chance(0.01) else dtype
        super().__init__("drawn", shape, {**FLOAT_TYPES, **EIGHT_BITS}[dtype], opset=opset)
        self.random = random
        self.float = dtype if dtype in FLOAT_TYPES else "float32"
        zero = self.zero_of(dtype) if dtype in EIGHT_BITS else 0
        self.pool = [Tensor("image", shape, dtype, zero)]
        self.feed = {"image": self.values(shape, dtype)}

    def drawn(self) -> Drawn:
        for _ in range(self.upto(MOST_STEPS)):
            source = self.source()
            steps = self.float_steps() if source.dtype in FLOAT_TYPES else self.integer_steps()
            self.pool.append(self.of(*steps)(source))
        read = {name for node in self.nodes for name in node.input}
        leaves = [tensor.name for tensor in self.pool if tensor.name not in read or self.chance(0.05)]
        made = {name for node in self.nodes for name in node.output}
        return Drawn(self.model(*[name for name in leaves if name in made] or [self.pool[-1].name]), self.feed)

    def size(self) -> Pair:
        return (1, 1) if self.chance(0.15) else (self.upto(6), self.upto(6))

    def source(self) -> Tensor:
        """What the next node reads: mostly the last tensor, also an older one, or a constant."""
        if self.chance(0.2):
            shape = (self.of(1, 1, 1, 2), self.upto(MOST_CHANNELS), *self.of(self.size(), (1, 1)))
            dtype = self.of(self.float, "uint8", "int8") if self.opset >= 10 else self.float
            name = self.operand(self.values(shape, dtype))
            return Tensor(name, shape, dtype, self.zero_of(dtype) if dtype in EIGHT_BITS else 0)
        return self.pool[-1] if self.chance(0.75) else self.of(*self.pool)

    def float_steps(self) -> list[Callable[[Tensor], Tensor]]:
        often = [*[self.float_conv] * 4, *[self.combine] * 4, self.batch_normalize]
        quantise = [self.quantise] if self.opset >= 10 else []
        return [*often, *quantise, self.clip, self.activate, self.pad, self.hand_on]

    def integer_steps(self) -> list[Callable[[Tensor], Tensor]]:
        often = [*[self.qlinear_conv] * 2, *[self.qdq_conv] * 4, *[self.of_each_element] * 3]
        return [*often, self.dequantise, self.conv_integer]

    # Float nodes.

    def float_conv(self, source: Tensor) -> Tensor:
        shape, geometry, result = self.geometry(source)
        filter = self.operand(self.values(shape, source.dtype))
        bias = [self.operand(self.values(shape[:1], source.dtype))] if self.chance(0.5) else []
        return Tensor(self.node("Conv", [source.name, filter, *bias], **geometry), result, source.dtype)

    def batch_normalize(self, source: Tensor) -> Tensor:
        channels = source.shape[1]
        stated = [self.operand(self.values((channels,), source.dtype)) for _ in range(3)]
        variance = self.operand(self.random.uniform(0.5, 2, channels), source.dtype)
        rest: dict[str, Any] = {"epsilon": 0.01} if self.chance(0.5) else {}
        return self.like(source, self.node("BatchNormalization", [source.name, *stated, variance], **rest))

    def combine(self, source: Tensor) -> Tensor:
        """Add or Mul with a constant or another tensor, in either order."""
        n, c, h, w = source.shape
        shapes = ((1, c, 1, 1), (c, 1, 1), (1,), (), (1, 1, 1, 1), (n, c, h, w), (w,))
        others = [tensor for tensor in self.pool[-3:] if tensor.dtype == source.dtype and _broadcasts(source, tensor)]
        others = [tensor for tensor in others if tensor is not source or self.chance(0.1)]
        if others and self.chance(0.6):
            other = self.of(*others)
            name, result = other.name, np.broadcast_shapes(source.shape, other.shape)
        else:
            name, result = self.operand(self.values(self.of(*shapes), source.dtype)), source.shape
        pair = [source.name, name] if self.chance(0.5) else [name, source.name]
        return Tensor(self.node(self.of("Add", "Add", "Mul"), pair), result, source.dtype)

    def activate(self, source: Tensor) -> Tensor:
        return self.like(source, self.node(self.of("Relu", "Relu", "Relu", "LeakyRelu"), [source.name]))

    def clip(self, source: Tensor) -> Tensor:
        """Clip with both bounds, one or none; attributes before opset 11, inputs since."""
        low, high = self.of((0, 6), (0, 6), (0, None), (None, 6), (None, None), (-1, 1), (0, 0.5))
        if self.opset < 11:
            stated = {"min": low, "max": high}
            rest: dict[str, Any] = {name: float(bound) for name, bound in stated.items() if bound is not None}
            return self.like(source, self.node("Clip", [source.name], **rest))
        bounds = ["" if bound is None else self.operand(bound, source.dtype) for bound in (low, high)]
        while bounds and not bounds[-1] and self.chance(0.7):
            bounds.pop()
        return self.like(source, self.node("Clip", [source.name, *bounds]))

    def pad(self, source: Tensor) -> Tensor:
        n, c, h, w = source.shape
        top, left, bottom, right = (int(self.random.integers(3)) for _ in range(4))
        pads = [0, 0, top, left, 0, 0, bottom, right]
        value = self.of(0, 0, 0, 0.5)
        result = Tensor("", (n, c, h + top + bottom, w + left + right), source.dtype)
        mode: dict[str, Any] = {} if self.chance(0.8) else {"mode": "edge"}
        if self.opset < 11:
            name = self.node("Pad", [source.name], pads=pads, value=float(value), **mode)
        else:
            filled = [self.operand(value, source.dtype)] if value or self.chance(0.3) else []
            name = self.node("Pad", [source.name, self.operand(pads, "int64"), *filled], **mode)
        return Tensor(name, result.shape, source.dtype)

    def hand_on(self, source: Tensor) -> Tensor:
        return self.like(source, self.node(self.of("Identity", "Dropout"), [source.name]))

    # Quantised nodes.

    def quantise(self, source: Tensor) -> Tensor:
        """QuantizeLinear of a float tensor."""
        if source.dtype != "float32":
            return self.hand_on(source)
        dtype = self.of("int8", "uint8")
        zero = self.zero_of(dtype)
        ends = [self.scale(self.of(INPUT_SCALE, 0.5)), self.operand(zero, dtype)]
        return Tensor(self.node("QuantizeLinear", [source.name, *ends]), source.shape, dtype, zero)

    def dequantise(self, source: Tensor, scale: float = INPUT_SCALE) -> Tensor:
        zero = [] if source.zero == 0 and self.chance(0.3) else [self.operand(source.zero, source.dtype)]
        name = self.node("DequantizeLinear", [source.name, self.scale(scale), *zero])
        return Tensor(name, source.shape, "float32")

    def qlinear_conv(self, source: Tensor) -> Tensor:
        shape, geometry, result = self.geometry(source)
        filter_dtype, dtype = self.of("int8", "uint8"), source.dtype if self.chance(0.9) else "uint8"
        zero, filter_zero = self.zero_of(dtype), self.zero_of(filter_dtype)
        filter = [self.operand(self.values(shape, filter_dtype)), self.scale(FILTER_SCALE, shape[0])]
        inputs = [source.name, self.scale(INPUT_SCALE), self.operand(source.zero, source.dtype), *filter]
        inputs += [self.operand(filter_zero, filter_dtype), self.scale(_spread(shape)), self.operand(zero, dtype)]
        bias = [self.operand(self.random.integers(-4000, 4000, shape[0]), "int32")] if self.chance(0.5) else []
        return Tensor(self.node("QLinearConv", [*inputs, *bias], **geometry), result, dtype, zero)

    def qdq_conv(self, source: Tensor) -> Tensor:
        """Conv between DequantizeLinear and, mostly, QuantizeLinear."""
        shape, geometry, result = self.geometry(source)
        image, filter_dtype = self.dequantise(source), self.of("int8", "int8", "uint8")
        zero = [self.operand(self.zero_of(filter_dtype), filter_dtype)] if self.chance(0.7) else []
        stored = self.operand(self.values(shape, filter_dtype))
        rest: dict[str, Any] = {"axis": 0} if self.opset >= 13 else {}
        scale = self.scale(FILTER_SCALE, 0 if zero else shape[0])
        inputs = [image.name, self.node("DequantizeLinear", [stored, scale, *zero], **rest)]
        sums = Tensor(self.node("Conv", [*inputs, *self.quantised_bias(shape[0])], **geometry), result, "float32")
        sums = self.of(self.activate, self.clip, lambda same: same, lambda same: same)(sums)
        if self.chance(0.15):
            return sums
        dtype = source.dtype if self.chance(0.9) else "uint8"
        by = self.zero_of(dtype)
        ends = [self.scale(_spread(shape)), self.operand(by, dtype)]
        return Tensor(self.node("QuantizeLinear", [sums.name, *ends]), result, dtype, by)

    def quantised_bias(self, channels: int) -> list[str]:
        """None, int32 in units of the sums or in others, or floats."""
        kind = self.of("none", "int32", "int32", "other units", "float")
        if kind == "none":
            return []
        if kind == "float":
            return [self.operand(self.random.uniform(-2, 2, channels), "float32")]
        unit = np.float32(INPUT_SCALE) * np.float32(FILTER_SCALE) * (1 if kind == "int32" else 3)
        whole = self.operand(self.random.integers(-4000, 4000, channels), "int32")
        zero = [self.operand(0, "int32")] if self.chance(0.3) else []
        return [self.node("DequantizeLinear", [whole, self.scale(float(unit)), *zero])]

    def of_each_element(self, source: Tensor) -> Tensor:
        """Elementwise operators from a quantised tensor to another one, perhaps with a quantiser or a branch inside."""
        inside = self.dequantise(source)
        for _ in range(self.upto(3)):
            inside = self.of(self.activate, self.smooth, self.clip, self.with_number, self.through_codes)(inside)
        if self.chance(0.4):
            again = inside if self.chance(0.3) else self.dequantise(source)
            inside = self.like(inside, self.node(self.of("Mul", "Add"), [again.name, inside.name]))
        dtype = source.dtype if self.chance(0.9) else "uint8"
        zero = self.zero_of(dtype)
        ends = [self.scale(self.of(INPUT_SCALE, INPUT_SCALE / 2, 0.1)), self.operand(zero, dtype)]
        return Tensor(self.node("QuantizeLinear", [inside.name, *ends]), source.shape, dtype, zero)

    def smooth(self, source: Tensor) -> Tensor:
        ops = ["Sigmoid", "Tanh", "Elu", "HardSigmoid", "Abs", *(["HardSwish"] if self.opset >= 14 else [])]
        return self.like(source, self.node(self.of(*ops), [source.name]))

    def with_number(self, source: Tensor) -> Tensor:
        """Add, Mul or PRelu with a number, now and then with one a channel, which is no function of a code."""
        shape = (source.shape[1], 1, 1) if self.chance(0.1) else (1,)
        number = self.operand(self.values(shape, source.dtype))
        return self.like(source, self.node(self.of("Add", "Mul", "PRelu"), [source.name, number]))

    def through_codes(self, source: Tensor) -> Tensor:
        """Quantised and back."""
        dtype = self.of("int8", "uint8")
        zero, scale = self.zero_of(dtype), self.of(INPUT_SCALE, 0.1)
        name = self.node("QuantizeLinear", [source.name, self.scale(scale), self.operand(zero, dtype)])
        return self.dequantise(Tensor(name, source.shape, dtype, zero), scale)

    def conv_integer(self, source: Tensor) -> Tensor:
        """ConvInteger, whose sums become floats at once."""
        shape, geometry, result = self.geometry(source)
        filter_dtype = self.of("int8", "uint8")
        zeros = [self.operand(source.zero, source.dtype), self.operand(self.zero_of(filter_dtype), filter_dtype)]
        zeros = zeros[: int(self.random.integers(3))]
        filter = self.operand(self.values(shape, filter_dtype))
        sums = self.node("ConvInteger", [source.name, filter, *zeros], **geometry)
        return Tensor(self.node("Cast", [sums], to=TensorProto.FLOAT), result, "float32")

    # Geometry.

    def like(self, source: Tensor, name: str) -> Tensor:
        return Tensor(name, source.shape, source.dtype)

    def geometry(self, source: Tensor) -> tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]:
        """OIHW of a filter, the attributes of its conv, and the NCHW of the result, which has a pixel at least."""
        n, c, *size = source.shape
        groups = self.of(1, 1, 1, c)
        out = groups * self.upto(MOST_CHANNELS // groups + 1)
        axes = [self.axis(length) for length in size]
        kernel, strides, dilations, before, after, results = zip(*axes, strict=True)
        attributes: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": groups}
        attributes = {name: value for name, value in attributes.items() if value not in (1, [1, 1]) or self.chance(0.2)}
        if self.chance(0.2):
            attributes["kernel_shape"] = list(kernel)
        if self.chance(0.15):
            attributes["auto_pad"] = self.of("SAME_UPPER", "SAME_LOWER")
            results = tuple(-(-length // stride) for length, stride in zip(size, strides, strict=True))
        elif any((*before, *after)) or self.chance(0.2):
            attributes["pads"] = [*before, *after]
        return (out, c // groups, *kernel), attributes, (n, out, *results)

    def axis(self, length: int) -> tuple[int, int, int, int, int, int]:
        """Kernel, stride, dilation, padding before and after, and the result's length."""
        kernel, stride, dilation = self.of(1, 2, 3, 3), self.of(1, 1, 2, 3), self.of(1, 1, 1, 2)
        before, after = (self.of(0, 0, 1, 2) for _ in range(2))
        reach = (kernel - 1) * dilation + 1
        before += max(reach - length - before - after, 0)
        return kernel, stride, dilation, before, after, (length + before + after - reach) // stride + 1


def _broadcasts(one: Tensor, other: Tensor) -> bool:
    pairs = zip(one.shape, other.shape, strict=True)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _spread(shape: Sequence[int]) -> float:
    """An output scale that spreads the sums over 8 bits."""
    return float(INPUT_SCALE * FILTER_SCALE * 70 * np.sqrt(np.prod(shape[1:])))
