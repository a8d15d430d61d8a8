"""Random quantised convs with what quantisers leave before and behind them, as a model and in exact float64.

codes -> DequantizeLinear -> before -> Conv -> behind -> QuantizeLinear
             weights -> DequantizeLinear -> before -+
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tests.model.builder import Builder

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16}
IMAGE_SCALE = 0.02

Array = np.ndarray


@dataclass(frozen=True)
class DrawnQdq:
    """A model of one conv, and how its result comes about exactly.

    Attributes:
        model: the model.
        exact: the same without quantisers, all in float64; its output is in steps of the result, zero point added.
        image: values for its input, which are codes.
        folds: whether all that lies between the conv and its quantiser can fold into the conv.
    """

    model: onnx.ModelProto
    exact: onnx.ModelProto
    image: Array
    folds: bool


def draw_qdq(seed: int, index: int) -> DrawnQdq:
    """The model of this index; every one can be drawn alone."""
    model, exact = (_Draw([seed, index], is_exact) for is_exact in (False, True))
    return DrawnQdq(model.drawn(), exact.drawn(), model.image, model.folds)


class _Draw(Builder):
    def __init__(self, seed: list[int], is_exact: bool) -> None:
        self.is_exact, self.random = is_exact, np.random.default_rng(seed)
        self.integer = self.of("int8", "uint8", "uint8", "int8", "int16")
        self.channels, self.sides = int(self.random.integers(1, 5)), [int(self.random.integers(3, 7)) for _ in "hw"]
        shape = (1, int(self.random.integers(1, 4)), *self.sides)
        random = self.random
        super().__init__("qdq", shape, TYPES[self.integer])
        self.random, self.folds, self.has_limits, self.is_bent, self.is_bound = random, True, False, False, False
        bits = np.iinfo(self.integer)
        self.image = self.random.integers(bits.min, bits.max, shape, self.integer, endpoint=True)

    def of(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def zero(self, dtype: str) -> int:
        bits = np.iinfo(dtype)
        return 0 if dtype == "int16" else int(self.random.integers(bits.min, bits.max, endpoint=True))

    def floats(self, values: Any) -> str:
        """A constant of floats; the exact model has the same numbers in float64."""
        rounded = np.asarray(values, np.float32)
        return self.constant(rounded.astype(np.float64) if self.is_exact else rounded)

    def dequantise(self, codes: str, dtype: str, scale: Any, zero: Any, axis: int = 1) -> str:
        scale = np.asarray(scale, np.float32)
        if not self.is_exact:
            constants = [self.floats(scale), self.constant(zero, dtype)]
            return self.node("DequantizeLinear", [codes, *constants], axis=axis)
        along = [-1 if place == axis else 1 for place in range(4)] if scale.ndim else []
        scale, zero = (np.asarray(each, np.float64).reshape(along) for each in (scale, zero))
        apart = self.node("Sub", [self.node("Cast", [codes], to=TensorProto.DOUBLE), self.constant(zero)])
        return self.node("Mul", [apart, self.constant(scale)])

    def drawn(self) -> onnx.ModelProto:
        result = self.conv_between()
        for _ in range(int(self.random.integers(5))):
            result = self.of(*[self.affine] * 5, *[self.limit] * 3, self.curve, self.same)(result)
        result = self.moved(result, 0.15)
        bits, spread = np.iinfo(self.integer), self.of(1.0, 4.0, 16.0)
        scale, zero = np.float32(spread / (bits.max - bits.min)), self.zero(self.integer)
        if self.is_exact:
            steps = self.node("Div", [result, self.floats(scale)])
            return self.model(self.node("Add", [steps, self.constant(np.float64(zero))]))
        return self.model(self.node("QuantizeLinear", [result, self.floats(scale), self.constant(zero, self.integer)]))

    def conv_between(self) -> str:
        shape = (self.channels, self.image.shape[1], *(int(self.random.integers(1, 4)) for _ in "hw"))
        image = self.dequantised_image()
        bias = [self.floats(self.random.uniform(-2, 2, self.channels))] if self.chance(0.5) else []
        pads = [int(self.random.integers(2)) for _ in range(4)]
        return self.node("Conv", [image, self.dequantised_filter(shape), *bias], pads=pads)

    def dequantised_image(self) -> str:
        """Moved and padded on both sides of DequantizeLinear, and perhaps quantised once more in between."""
        zero, codes = self.zero(self.integer), "image"
        if self.chance(0.15):
            codes = self.padded(codes, self.constant(zero, self.integer))
        image = self.moved(self.dequantise(codes, self.integer, IMAGE_SCALE, zero), 0.3)
        if self.chance(0.2):
            image = self.padded(image, self.of("", self.floats(0)))
        if self.chance(0.3):
            image = self.moved(self.quantised_again(image, zero), 0.2)
        if self.chance(0.2):
            image = self.padded(image, self.floats(0))
        return image

    def quantised_again(self, image: str, zero: int) -> str:
        if self.is_exact:
            return image
        constants = [self.floats(IMAGE_SCALE), self.constant(zero, self.integer)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [image, *constants]), *constants])

    def padded(self, tensor: str, filled: str) -> str:
        top, left, bottom, right = (int(self.random.integers(3)) for _ in range(4))
        if filled and self.chance(0.3):
            inputs = [self.constant([left, top, right, bottom]), filled, self.constant([3, -2])]
        else:
            inputs = [self.constant([0, 0, top, left, 0, 0, bottom, right]), *([filled] if filled else [])]
        return self.node("Pad", [tensor, *inputs])

    def moved(self, tensor: str, share: float) -> str:
        """The same elements in the same shape, perhaps by way of another one."""
        if not self.chance(share):
            return tensor
        if self.chance(0.4):
            axis = self.constant([int(self.random.integers(5))])
            return self.node("Squeeze", [self.node("Unsqueeze", [tensor, axis]), axis])
        if self.chance(0.4):
            turned = [0, 2, 3, 1]
            back = self.node("Transpose", [tensor], perm=turned)
            return self.node("Transpose", [self.same(back)], perm=[0, 3, 1, 2])
        return self.same(tensor)

    def dequantised_filter(self, shape: tuple[int, ...]) -> str:
        """Stored as it is read, flat, or with its axes turned."""
        dtype = self.of("int8", "int8", "uint8") if self.integer != "int16" else "int8"
        bits = np.iinfo(dtype)
        codes = self.random.integers(bits.min + self.chance(0.7), bits.max, shape, dtype, endpoint=True)
        scale = self.of(0.01, 0.002, self.random.uniform(0.001, 0.01, shape[0]))
        zero = self.of(0, self.zero(dtype)) if np.ndim(scale) == 0 else np.zeros(shape[0], int)
        how = self.of("as it is", "as it is", "flat", "turned")
        if how == "flat":
            flat = self.dequantise(self.constant(codes.reshape(shape[0], -1, 1, 1)), dtype, scale, zero, 0)
            return self.node("Reshape", [flat, self.constant(shape, "int64")])
        if how == "turned":
            turned = self.dequantise(self.constant(codes.transpose(2, 3, 1, 0)), dtype, scale, zero, 3)
            return self.node("Transpose", [turned], perm=[3, 2, 0, 1])
        return self.moved(self.dequantise(self.constant(codes), dtype, scale, zero, 0), 0.2)

    def same(self, result: str) -> str:
        op = self.of("Identity", "Dropout", "Cast")
        to = TensorProto.DOUBLE if self.is_exact else TensorProto.FLOAT
        return self.node("Cast", [result], to=to) if op == "Cast" else self.node(op, [result])

    def number(self, values: Callable[[int], Array], per_channel: bool) -> str:
        if per_channel:
            return self.floats(values(self.channels).reshape(self.of((-1, 1, 1), (1, -1, 1, 1))))
        return self.floats(values(1).reshape(self.of((1,), (), (1, 1, 1))))

    def affine(self, result: str) -> str:
        op, per_channel = self.of("Normalize", "Add", "Sub", "Mul", "Div", "Neg"), self.chance(0.6)
        if op == "Neg":
            return self.node("Neg", [result])
        if op == "Normalize":
            # Behind a limit, channels would need limits of their own; and it is no part of a function of one number.
            self.is_bound |= self.has_limits
            self.folds &= not self.has_limits or (self.channels == 1 and not self.is_bent)
            return self.normalize(result)
        self.folds &= not (self.has_limits and per_channel) or self.channels == 1
        factors = op in ("Mul", "Div")
        dead = self.chance(0.1) and op == "Mul"

        def values(count: int) -> Array:
            found = self.random.uniform(0.5, 2, count) * self.random.choice([-1, 1, 1], count)
            return np.where(self.random.random(count) < 0.3 * dead, 0, found) if factors else found - 0.5

        number = self.number(values, per_channel)
        swapped = op != "Div" and self.chance(0.4)
        return self.node(op, [number, result] if swapped else [result, number])

    def normalize(self, result: str) -> str:
        """BatchNormalization, now and then with channels that it all but takes away, as training leaves them."""
        scale = self.random.uniform(0.5, 2, self.channels) * self.random.choice([-1, 1, 1], self.channels)
        scale = np.where(self.random.random(self.channels) < 0.15, self.of(0, 1e-12, -1e-30), scale)
        mean, bias, variance = (self.random.uniform(*ends, self.channels) for ends in ((-1, 1), (-1, 1), (0.3, 2)))
        return self.node("BatchNormalization", [result, *map(self.floats, (scale, bias, mean, variance))])

    def limit(self, result: str) -> str:
        self.has_limits = True
        op: str = self.of("Relu", "Clip", "Max", "Min", "HardSigmoid")
        low, high = self.random.uniform((-1, 0.2), (0.2, 6))
        if op in ("Max", "Min"):
            pair = [result, self.floats(low if op == "Max" else high)]
            return self.node(op, pair if self.chance(0.5) else pair[::-1])
        if op == "Clip":
            return self.node("Clip", [result, self.floats(low), self.floats(high)][: self.of(2, 3)])
        return self.node(op, [result])

    def curve(self, result: str) -> str:
        self.folds &= self.integer != "int16" and not self.is_bound
        self.has_limits = self.is_bent = True
        op: str = self.of("silu", "hardswish", "gelu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "HardSwish", "Softplus")
        if op == "silu":
            return self.node("Mul", [result, self.node("Sigmoid", [result])])
        if op == "hardswish":
            moved = self.node("Add", [result, self.floats(3)])
            gate = self.node("Clip", [moved, self.floats(0), self.floats(6)])
            return self.node("Div", [self.node("Mul", [gate, result]), self.floats(6)])
        if op == "gelu":
            erf = self.node("Erf", [self.node("Div", [result, self.floats(np.sqrt(2))])])
            whole = self.node("Mul", [result, self.node("Add", [erf, self.floats(1)])])
            return self.node("Mul", [whole, self.floats(0.5)])
        return self.node(op, [result])
