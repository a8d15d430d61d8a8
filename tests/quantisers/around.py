"""What lies between the quantisers and their conv: nodes that move no value, Pads, norms, clamps and curves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.quantisers.filters import Filters
from tests.quantisers.tensors import Codes, Real


class Around(Filters):
    """A builder of what lies around convs."""

    # Between DequantizeLinear and a conv.

    def before(self, codes: Codes) -> tuple[Real, Codes]:
        real = self.real(codes)
        if self.chance(0.6):
            return real, codes
        ways = [self.identity, self.reshaped, self.again, self.doubled, self.cast]
        ways += [self.padded, self.padded, self.padded_codes, self.turned] if len(codes.sizes) == 2 else []
        return self.of(*ways)(real, codes)

    def identity(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        return replace(real, name=self.node("Identity", [real.name])), codes

    def cast(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        return replace(real, name=self.node("Cast", [real.name], to=TensorProto.FLOAT)), codes

    def reshaped(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        """Reshape to the shape that it has; now and then through a flat one."""
        name = real.name
        if self.chance(0.3):
            name = self.node("Reshape", [name, self.held([real.shape[0], -1], "int64")])
        shape = self.of(list(real.shape), [0, *real.shape[1:]] if name == real.name else [*real.shape[:-1], -1])
        return replace(real, name=self.node("Reshape", [name, self.held(shape, "int64")])), codes

    def turned(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        """To NHWC and back."""
        there = self.node("Transpose", [real.name], perm=[0, 2, 3, 1])
        return replace(real, name=self.node("Transpose", [there], perm=[0, 3, 1, 2])), codes

    def again(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        same = self.quantised(real, codes)
        return self.real(same), same

    def doubled(self, real: Real, _: Codes) -> tuple[Real, Codes]:
        other = self.quantised(real)
        return self.real(other), other

    def padded(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        sides = [int(self.random.integers(3)) for _ in range(4)]
        n, c, h, w = real.shape
        shape = (n, c, h + sides[0] + sides[2], w + sides[1] + sides[3])
        value = 0.0 if self.chance(0.85) else 0.5
        pads = [0, 0, *sides[:2], 0, 0, *sides[2:]]
        if self.opset < 11:
            name = self.node("Pad", [real.name], pads=pads, value=value)
        else:
            filled = [self.held(value, "float32")] if value or self.chance(0.3) else []
            mode: dict[str, Any] = {} if self.chance(0.9) else {"mode": "edge"}
            where = self.torch_pads(sides) if self.chance(0.4) else self.held(pads, "int64")
            name = self.node("Pad", [real.name, where, *filled], **mode)
        return replace(real, name=name, shape=shape), replace(codes, shape=shape)

    def torch_pads(self, sides: Sequence[int]) -> str:
        """Pads as PyTorch exports `F.pad`: sides from the last axis on, turned round by a subgraph."""
        top, left, bottom, right = sides
        zeros = self.node(
            "ConstantOfShape",
            [self.constant([4], "int64")],
            value=helper.make_tensor("value", TensorProto.INT64, [1], [0]),
        )
        pairs = self.node("Concat", [self.constant([left, right, top, bottom], "int64"), zeros], axis=0)
        pairs = self.node("Reshape", [pairs, self.constant([-1, 2], "int64")])
        ends = [[-1], [np.iinfo("int64").min + 1], [0], [-1]]
        turned = self.node("Slice", [pairs, *(self.constant(end, "int64") for end in ends)])
        flat = self.node("Reshape", [self.node("Transpose", [turned], perm=[1, 0]), self.constant([-1], "int64")])
        return self.node("Cast", [flat], to=TensorProto.INT64)

    def padded_codes(self, real: Real, codes: Codes) -> tuple[Real, Codes]:
        """A Pad between quantisers of its own."""
        padded, wider = self.padded(real, codes)
        again = self.quantised(padded, wider if self.chance(0.8) else None)
        return self.real(again), again

    # What lies between a conv and its quantiser.

    def behind(self, real: Real) -> Real:
        if self.chance(0.3):
            return real
        ways = [self.relu] * 5 + [self.clip, self.normalised, self.normalised, self.shifted, self.scaled, self.bounded]
        ways += [self.silu, self.curve, self.leaky, self.sloped, self.identity_of, self.hard_swish]
        for _ in range(self.of(1, 1, 1, 2, 3)):
            real = self.of(*ways)(real)
        return real

    def relu(self, real: Real) -> Real:
        return replace(real, name=self.node("Relu", [real.name]), is_signed=False)

    def clip(self, real: Real) -> Real:
        low, high = self.of((0, 6), (0, 6), (0, None), (None, 1.5), (-1, 1), (0, 0.7), (0.7, 0.5))
        if self.opset < 11:
            rest: dict[str, Any] = {
                key: float(value) for key, value in (("min", low), ("max", high)) if value is not None
            }
            name = self.node("Clip", [real.name], **rest)
        else:
            bounds = ["" if bound is None else self.held(bound, "float32") for bound in (low, high)]
            name = self.node("Clip", [real.name, *(bounds if bounds[1] else bounds[:1])])
        return replace(real, name=name, is_signed=real.is_signed and low != 0)

    def vector(self, low: float, high: float, shape: Sequence[int]) -> str:
        return self.held(self.random.uniform(low, high, shape), "float32")

    def normalised(self, real: Real) -> Real:
        shape = real.shape[1:2]
        signs = self.random.choice([-1, 1, 1, 1], shape)
        scale = self.held(signs * self.random.uniform(0.3, 2, shape), "float32")
        rest = [self.vector(-1, 1, shape), self.vector(-1, 1, shape), self.vector(0.3, 2, shape)]
        epsilon: dict[str, Any] = {"epsilon": 1e-3} if self.chance(0.5) else {}
        name = self.node("BatchNormalization", [real.name, scale, *rest], **epsilon)
        return replace(real, name=name, is_signed=True)

    def per_channel(self, real: Real) -> tuple[int, ...]:
        """The shape of a constant: one a channel mostly, or one for all."""
        along = (real.shape[1], *[1] * (len(real.shape) - 2))
        return self.of(along, (1, *along), (1, *along), (), (1,))

    def with_constant(self, real: Real, op: str, constant: str) -> Real:
        pair = [real.name, constant] if op == "Div" or self.chance(0.7) else [constant, real.name]
        return replace(real, name=self.node(op, pair), is_signed=True)

    def shifted(self, real: Real) -> Real:
        return self.with_constant(real, self.of("Add", "Add", "Sub"), self.vector(-1, 1, self.per_channel(real)))

    def scaled(self, real: Real) -> Real:
        low = self.of(0.4, 0.4, -0.5)
        op = self.of("Mul", "Mul", "Div" if low > 0 else "Mul")
        return self.with_constant(real, op, self.vector(low, 1.5, self.per_channel(real)))

    def bounded(self, real: Real) -> Real:
        op, bound = self.of(("Max", 0.0), ("Max", 0.0), ("Min", 1.0), ("Max", -0.5))
        if self.opset < 12 and op == "Min" and self.chance(0.5):
            return self.relu(real)
        made = self.with_constant(real, op, self.held(bound, "float32"))
        return replace(made, is_signed=real.is_signed and bound != 0)

    def silu(self, real: Real) -> Real:
        return replace(real, name=self.node("Mul", [real.name, self.node("Sigmoid", [real.name])]))

    def hard_swish(self, real: Real) -> Real:
        if self.opset >= 14 and self.chance(0.5):
            return replace(real, name=self.node("HardSwish", [real.name]))
        gate = self.node("HardSigmoid", [real.name], alpha=1 / 6)
        return replace(real, name=self.node("Mul", [real.name, gate]))

    def curve(self, real: Real) -> Real:
        name = self.node(self.of("Sigmoid", "Tanh", "HardSigmoid"), [real.name])
        return replace(real, name=name, spread=0.4, is_signed=True)

    def leaky(self, real: Real) -> Real:
        return replace(real, name=self.node("LeakyRelu", [real.name], alpha=0.1))

    def sloped(self, real: Real) -> Real:
        along = (real.shape[1], *[1] * (len(real.shape) - 2))
        return replace(real, name=self.node("PRelu", [real.name, self.vector(0.05, 0.4, self.of(along, (1,)))]))

    def identity_of(self, real: Real) -> Real:
        return replace(real, name=self.node(self.of("Identity", "Dropout"), [real.name]))
