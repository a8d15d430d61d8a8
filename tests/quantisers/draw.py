"""Draw small quantised networks as quantisers write them: ONNX Runtime's (QDQ, QOperator, its own domain), PyTorch's
fake quantisation, TensorFlow's by tf2onnx.

    image -> Q -> DQ -> [Identity, Reshape, Pad, ...] -> Conv -> [BatchNormalization, Relu, SiLU, ...] -> Q -> DQ -> ...
                    filter -> DQ -> [Reshape, Transpose] ^  ^ DQ <- bias

Real values stay near a standard deviation of 1, so that every clamp and every curve is met. All models are valid.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.model.drawn import Drawn
from tests.quantisers.around import Around
from tests.quantisers.definition import in_double, meaning
from tests.quantisers.tensors import CONTRIB, DEAD_MOST, NEWEST, RANGES, STEPS, WIDE_TYPES, Array, Codes, Real


def draw_quantised(seed: int, index: int) -> Drawn:
    """The model of this index; every one can be drawn alone."""
    return Network(np.random.default_rng([seed, index])).drawn()


class Network(Around):
    """A builder of one random network, whose parts are in a random form."""

    FORMS = (*["qdq"] * 7, "contrib", "qoperator", "qoperator")
    OPSETS = (*range(10, NEWEST + 1), *[13, 17, 21] * 4)
    FLOAT_IMAGES = 0.7
    """The share of the models that quantise their own input."""
    WIDE_INTEGERS = True
    """Whether some models have activations of 16 bits."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.form = self.of(*self.FORMS)
        opset = self.of(*self.OPSETS)
        self.opset = opset
        bits16 = self.WIDE_INTEGERS and ((opset >= WIDE_TYPES and self.form == "qdq") or self.form == "contrib")
        self.integer = self.of(*["uint8"] * 5, *["int8"] * 4, *(["int16", "uint16"] if bits16 else []))
        self.steps = STEPS if self.integer.endswith("8") else STEPS * 200
        self.is_round, self.is_shared, self.is_torch = self.chance(0.3), self.chance(0.5), self.chance(0.2)
        is_nhwc, axes = self.chance(0.15), self.of(*[2] * 12, 1)
        shape = self.shape_of_image(axes)
        is_float = self.form != "qoperator" and self.chance(self.FLOAT_IMAGES)
        stored = (shape[0], *shape[2:], shape[1]) if is_nhwc and axes == 2 else shape
        kind = helper.np_dtype_to_tensor_dtype(np.dtype("float32" if is_float else self.integer))
        super().__init__("drawn", stored, kind, opset=opset)
        self.random = random  # the base class makes one of its own
        self.shared: dict[str, str] = {}
        self.image = Real("image", shape)
        self.is_nhwc, self.is_float = stored != shape, is_float
        values = random.standard_normal(stored) if is_float else self._codes(stored)
        self.feed = {"image": values.astype("float32" if is_float else self.integer)}

    def shape_of_image(self, axes: int) -> tuple[int, ...]:
        """Batch and channels of the image, and its sizes along so many axes."""
        most = 32 if self.chance(0.08) else 7  # large ones have ties in plenty
        sizes = tuple(self.upto(most) for _ in range(axes))
        shape = (self.of(1, 1, 1, 2), self.upto(4), *sizes)
        return (1, self.of(32, 64), *(min(size, 4) for size in sizes)) if self.chance(0.06) else shape

    def _codes(self, shape: Sequence[int]) -> Array:
        low, high = RANGES[self.integer]
        return self.random.integers(low, high, shape, endpoint=True)

    def drawn(self) -> Drawn:
        at, pool = self.start(), []
        blocks: list[Callable[[Codes], Codes]] = [*[self.conv8] * 5, self.residual, self.elementwise]
        blocks += [self.joined, self.pooled] if len(at.sizes) == 2 else []
        blocks += [self.excited] if self.form != "qoperator" and len(at.sizes) == 2 else []
        for _ in range(self.of(1, 1, 2, 2, 3, 4)):
            pool.append(at)
            at = self.of(*blocks)(at)
        outputs = [self.ended(at)]
        outputs += [codes.name for codes in pool[1:] if self.chance(0.05)]
        return Drawn(self.typed_model(list(dict.fromkeys(outputs))), self.feed)

    def typed_model(self, outputs: list[str]) -> onnx.ModelProto:
        """The model, its outputs with their types: ONNX's inference knows none behind ONNX Runtime's own operators."""
        model = self.model(*outputs)
        if self.form != "qdq" or not all(info.type.tensor_type.HasField("shape") for info in model.graph.output):
            for info, values in zip(model.graph.output, _values(model, self.feed, outputs), strict=True):
                kind = "float32" if values.dtype == np.float64 else values.dtype
                dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
                info.CopyFrom(helper.make_tensor_value_info(info.name, dtype, values.shape))
        return model

    def start(self) -> Codes:
        image = self.image
        if not self.is_float:
            zero = 0 if self.integer.startswith("int") else (RANGES[self.integer][1] + 1) // 2
            codes = Codes("image", image.shape, self.integer, float(self.near(1 / self.steps)), zero)
            if not self.is_nhwc:
                return codes
            return replace(codes, name=self.node("Transpose", ["image"], perm=[0, 3, 1, 2]))
        if not self.is_nhwc:
            return self.quantised(image)
        if self.chance(0.5):
            return self.quantised(replace(image, name=self.node("Transpose", ["image"], perm=[0, 3, 1, 2])))
        codes = self.quantised(image)
        if self.chance(0.5):
            return replace(codes, name=self.node("Transpose", [codes.name], perm=[0, 3, 1, 2]))
        moved = self.node("Transpose", [self.real(codes).name], perm=[0, 3, 1, 2])
        return self.quantised(replace(image, name=moved), codes)

    def ended(self, codes: Codes) -> str:
        """The end of the network: codes, real numbers, NHWC, or classes."""
        if self.form == "qoperator":
            return self.of(codes.name, self.node("DequantizeLinear", [codes.name, *self.ends_of(codes)]))
        ends = ["codes", "real", "real"] + (["NHWC", "Gemm", "MatMul"] if len(codes.sizes) == 2 else [])
        end = self.of(*ends)
        if end == "codes":
            return codes.name
        real = self.real(codes)
        if end == "real":
            return real.name
        if end == "NHWC":
            return self.node("Transpose", [real.name], perm=[0, 2, 3, 1])
        return self.classes(codes, end)

    def classes(self, codes: Codes, op: str) -> str:
        """Pooled, flattened, multiplied by quantised weights."""
        pooled = self.quantised(Real(self.node("GlobalAveragePool", [self.real(codes).name]), (), codes.scale * 9))
        flat = self.node("Flatten", [self.real(pooled).name])
        flat = self.real(self.quantised(Real(flat, (), codes.scale * 9), pooled)).name
        count, shape = codes.channels, (codes.channels, 5)
        scale = self.held(np.full((), 0.01, "float32"))
        stored = self.held(self.random.integers(-127, 127, shape[:: -1 if op == "Gemm" else 1]), "int8")
        weights = self.quantiser("DequantizeLinear", [stored, scale])
        if op == "MatMul":
            scores = self.node("MatMul", [flat, weights])
        else:
            added = [self.held(np.zeros(5), "float32")] if self.opset < 11 else []
            scores = self.node("Gemm", [flat, weights, *added], transB=1)
        return self.real(self.quantised(Real(scores, (codes.shape[0], 5), codes.scale * np.sqrt(count)))).name

    # The conv.

    def conv8(self, codes: Codes, out: int = 0, is_pointwise: bool = False, is_same: bool = False) -> Codes:
        if self.form == "qoperator":
            return self.qlinear_conv(codes, out)
        real, codes = self.before(codes) if not is_same else (self.real(codes), codes)
        shape, attributes, result = self.geometry(codes, out, is_pointwise, is_same)
        filter, scales = self.filter(shape)
        inputs = [real.name, filter, *self.bias(shape[0], codes.scale, scales)]
        name = self.node("Conv", inputs, **attributes)
        behind = self.behind(Real(name, result, spread=1.0))
        if self.chance(0.04):  # the quantiser was told to leave it alone
            behind = Real(self.node("Relu", [behind.name]), result, is_signed=False)
        return self.quantised(behind)

    def geometry(
        self, codes: Codes, out: int, is_pointwise: bool, is_same: bool
    ) -> tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]:
        """OIHW of a filter, the attributes of its conv, and the shape of the result."""
        n, c, *sizes = codes.shape
        groups = self.of(1, 1, 1, 1, c, 2 if c % 2 == 0 else 1) if not out else 1
        out = out or (c if self.chance(0.2) else groups * self.upto(max(8 // groups, 1)))
        kernel, strides, dilations = [], [], []
        pads: tuple[list[int], list[int]] = ([], [])
        for length in sizes:
            size = 1 if is_pointwise else self.of(1, 3) if is_same else self.of(1, 1, 2, 3, 3, 3, 5)
            stride = 1 if is_same or is_pointwise else self.of(1, 1, 1, 2, 3)
            dilation = 1 if is_same else self.of(1, 1, 1, 1, 2)
            reach = (size - 1) * dilation + 1
            before, after = (size // 2,) * 2 if is_same or self.chance(0.5) else (self.of(0, 0, 1), self.of(0, 1))
            before += max(reach - length - before - after, 0)
            for values, value in zip(
                (kernel, strides, dilations, *pads), (size, stride, dilation, before, after), strict=True
            ):
                values.append(value)
        spatial = zip(sizes, kernel, strides, dilations, *pads, strict=True)
        result = [(s + b + a - (k - 1) * d - 1) // t + 1 for s, k, t, d, b, a in spatial]
        attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
        ones = (1, [1] * len(sizes))
        attributes = {key: value for key, value in attributes.items() if value not in ones or self.chance(0.3)}
        attributes |= {"kernel_shape": kernel} if self.chance(0.7) else {}
        if not is_same and max(dilations) == 1 and self.chance(0.1):  # ONNX Runtime has no auto_pad beside dilations
            attributes["auto_pad"] = self.of("SAME_UPPER", "SAME_LOWER")
            result = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
        elif any((*pads[0], *pads[1])) or self.chance(0.3):
            attributes["pads"] = [*pads[0], *pads[1]]
        return (out, c // groups, *kernel), attributes, (n, out, *result)

    # What lies between convs.

    def elementwise(self, codes: Codes) -> Codes:
        """A curve between quantisers, perhaps with one inside, as SiLU is quantised."""
        if self.form == "qoperator":
            return self.own_elementwise(codes)
        real = self.real(codes)
        if self.chance(0.5):
            return self.quantised(self.of(self.silu, self.curve, self.leaky, self.hard_swish, self.clip)(real))
        gate = self.quantised(Real(self.node("Sigmoid", [real.name]), real.shape, 0.4, is_signed=False))
        pair = [self.real(codes).name, self.real(gate).name]
        return self.quantised(replace(real, name=self.node("Mul", pair)))

    def own_elementwise(self, codes: Codes) -> Codes:
        made = replace(codes, scale=float(self.near(codes.scale)))
        ends = [*self.ends_of(codes), *self.ends_of(made)]
        op = self.of("QLinearSigmoid", "QLinearLeakyRelu")
        slope: dict[str, Any] = {"alpha": 0.1} if "Leaky" in op else {}
        name = self.node(op, [codes.name, *ends], domain=CONTRIB, **slope)
        return replace(made, name=name)

    def residual(self, codes: Codes) -> Codes:
        """Convs beside which their input is added."""
        made = self.conv8(codes, codes.channels, is_same=True)
        made = self.conv8(made, codes.channels, is_same=True) if self.chance(0.3) else made
        if self.form == "qoperator":
            scale = float(self.near(codes.scale * 1.5))
            ends = [*self.ends_of(made), codes.name, *self.ends_of(codes)]
            result = replace(made, scale=scale)
            return replace(
                result, name=self.node("QLinearAdd", [made.name, *ends, *self.ends_of(result)], domain=CONTRIB)
            )
        total = Real(self.node("Add", [self.real(made).name, self.real(codes).name]), codes.shape, 1.4)
        return self.quantised(self.relu(total) if self.chance(0.5) else total)

    def joined(self, codes: Codes) -> Codes:
        """Two convs of one tensor, side by side."""
        one, two = (self.conv8(codes, self.upto(4), is_same=True) for _ in range(2))
        shape = (codes.shape[0], one.channels + two.channels, *codes.sizes)
        if self.form == "qoperator":
            made = replace(one, shape=shape)
            ends = [one.name, *self.ends_of(one), two.name, *self.ends_of(two)]
            joint = self.node("QLinearConcat", [*self.ends_of(made), *ends], domain=CONTRIB, axis=1)
            return replace(made, name=joint)
        joint = self.node("Concat", [self.real(one).name, self.real(two).name], axis=1)
        return self.quantised(Real(joint, shape, one.scale * self.steps))

    def pooled(self, codes: Codes) -> Codes:
        n, c, h, w = codes.shape
        halves: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]}
        shape = (n, c, (h + 1) // 2, (w + 1) // 2)
        if self.form == "qoperator":
            return self.conv8(codes)
        real = self.real(codes)
        if self.chance(0.3):
            name = self.node("AveragePool", [real.name], **halves, count_include_pad=self.of(0, 1))
            return self.quantised(replace(real, name=name, shape=shape))
        most = replace(real, name=self.node("MaxPool", [real.name], **halves), shape=shape)
        return self.quantised(most, replace(codes, shape=shape))

    def excited(self, codes: Codes) -> Codes:
        """Squeeze and excite: two 1x1 convs of the mean gate the channels."""
        real = self.real(codes)
        n, c, *_ = codes.shape
        mean = self.quantised(Real(self.node("GlobalAveragePool", [real.name]), (n, c, 1, 1), 0.5))
        inner = self.conv8(mean, self.upto(4), is_pointwise=True)
        if inner.sizes != (1, 1):
            return inner
        gate = self.conv8(inner, c, is_pointwise=True)
        if gate.sizes != (1, 1):
            return gate
        gated = self.node(self.of("HardSigmoid", "Sigmoid"), [self.real(gate).name])
        gate = self.quantised(Real(gated, gate.shape, 0.4, is_signed=False))
        return self.quantised(Real(self.node("Mul", [self.real(codes).name, self.real(gate).name]), codes.shape))

    # QLinearConv.

    def qlinear_conv(self, codes: Codes, out: int = 0) -> Codes:
        shape, attributes, result = self.geometry(codes, out, False, bool(out))
        low, high = RANGES["int8"]
        filter = np.clip(np.rint(self.random.standard_normal(shape) * 40), low, high)
        step = 1 / 40 / np.sqrt(np.prod(shape[1:]))
        scales = np.full((), self.near(step), "float32")
        if self.chance(0.5):
            scales = (step * self.random.uniform(0.3, 1, shape[0])).astype("float32")
            if self.chance(0.3):
                filter, scales = self.with_dead_channels(filter, scales, 0)
        units = np.broadcast_to(np.float32(codes.scale) * scales, shape[:1])
        bias = np.clip(np.rint(self.random.standard_normal(shape[0]) / units), -DEAD_MOST, DEAD_MOST)
        is_relu = self.chance(0.5)
        low, high = RANGES[codes.dtype]
        made = Codes("", result, codes.dtype, float(self.near(1 / STEPS)), low if is_relu else (low + high + 1) // 2)
        of_filter = [self.held(filter, "int8"), self.held(scales), self.held(np.zeros(scales.shape), "int8")]
        inputs = [codes.name, *self.ends_of(codes), *of_filter, *self.ends_of(made)]
        inputs += [self.held(bias, "int32")] if self.chance(0.8) else []
        return replace(made, name=self.node("QLinearConv", inputs, **attributes))


def _values(model: onnx.ModelProto, feed: dict[str, Array], names: list[str]) -> list[Array]:
    found = meaning(in_double(model), feed, names)
    return [found[name] for name in names]
