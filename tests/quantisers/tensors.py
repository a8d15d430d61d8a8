"""Quantised tensors as quantisers write them: constants, scales, zero points, QuantizeLinear and DequantizeLinear."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper

from tests.model.operands import Operands

Array = np.ndarray
NEWEST = defs.onnx_opset_version()
PER_CHANNEL, WIDE_TYPES = 13, 21
"""The first opset with scales along an axis; with 16 bits, 4 bits and blocks."""
CONTRIB = "com.microsoft"
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "int4": (-8, 7)}
DEAD_MOST = (2**31 - 1) / 1.0001
"""The largest bias that ONNX Runtime's quantiser leaves to a channel with next to no weights."""
ROUND_NUMBERS = (
    1.0,
    0.5,
    0.25,
    0.2,
    0.125,
    0.1,
    0.05,
    0.04,
    0.03125,
    0.025,
    0.02,
    0.015625,
    0.01,
    1 / 128,
    0.005,
    0.004,
    0.002,
    0.001,
)
STEPS = 40.0
"""Steps of 8 bits in a standard deviation."""


@dataclass(frozen=True)
class Codes:
    """A quantised tensor, NC and spatial axes."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero: int

    @property
    def channels(self) -> int:
        return self.shape[1]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.shape[2:]


@dataclass(frozen=True)
class Real:
    """A float tensor inside of the network: its standard deviation and whether it is negative anywhere."""

    name: str
    shape: tuple[int, ...]
    spread: float = 1.0
    is_signed: bool = True


class Tensors(Operands):
    """A builder of one model: what its quantiser is and does at every tensor.

    Attributes:
        form: `qdq`, `contrib` (QDQ by ONNX Runtime's own operators) or `qoperator` (QLinearConv and alike).
        integer: the dtype of activations.
        steps: how many steps of theirs are a standard deviation.
        is_round: whether scales are round numbers, which make ties.
        is_shared: whether all that reads a tensor reads the same DequantizeLinear.
        shared: these, by the tensor's name.
    """

    form: str
    integer: str
    steps: float
    is_round: bool
    is_shared: bool
    shared: dict[str, str]

    def held(self, values: Any, dtype: str | None = None) -> str:
        """A constant: stored, of a Constant node, or behind an Identity."""
        array = np.asarray(values, dtype)
        if self.chance(0.9) or array.dtype.kind not in "fiu":
            return self.constant(array)
        if self.chance(0.5):
            return self.node("Constant", [], value=numpy_helper.from_array(array))
        return self.node("Identity", [self.constant(array)])

    def near(self, scale: float) -> np.float32:
        """A scale near to this one: a round number in a model of round numbers."""
        if not self.is_round:
            return np.float32(scale)
        return np.float32(min(ROUND_NUMBERS, key=lambda number: abs(np.log(number / scale))))

    def ends(self, scale: float, zero: int, dtype: str) -> list[str]:
        """Scale and zero point of a tensor; the zero point of 0 of a uint8 may be left out."""
        shape = (1,) if self.chance(0.1) else ()
        names = [self.held(np.full(shape, scale, "float32"))]
        if zero == 0 and dtype == "uint8" and self.form == "qdq" and self.chance(0.2):
            return names
        return [*names, self.held(np.full(shape, zero, dtype))]

    def quantiser(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        domain: dict[str, Any] = {"domain": CONTRIB} if self.form == "contrib" else {}
        return self.node(op, inputs, **attributes, **domain)

    def quantised(self, real: Real, like: Codes | None = None) -> Codes:
        """QuantizeLinear of a float tensor, with the scale and zero point of its range, or those of other codes."""
        dtype, (low, high) = self.integer, RANGES[self.integer]
        middle = (low + high + 1) // 2
        zero = middle if real.is_signed else low
        zero = int(self.random.integers(low, high, endpoint=True)) if self.chance(0.1) else zero
        if dtype.startswith("int") and self.chance(0.4):
            zero = 0
        zero = 0 if dtype == "int16" else 32768 if dtype == "uint16" and self.chance(0.8) else zero
        scale = float(self.near(real.spread / self.steps * self.random.uniform(0.4, 1.6)))
        if like:
            scale, zero = like.scale, like.zero
        ends = self.ends(scale, zero, dtype)
        name = self.quantiser("QuantizeLinear", [real.name, *ends])
        return Codes(name, real.shape, dtype, scale, zero)

    def real(self, codes: Codes) -> Real:
        """DequantizeLinear of codes: one for all that read them, or one for each."""
        name = self.shared.get(codes.name, "") if self.is_shared else ""
        if not name:
            name = self.quantiser("DequantizeLinear", [codes.name, *self.ends(codes.scale, codes.zero, codes.dtype)])
            self.shared[codes.name] = name
        return Real(name, codes.shape, codes.scale * self.steps)

    def ends_of(self, codes: Codes) -> list[str]:
        return [self.held(np.float32(codes.scale)), self.held(codes.zero, codes.dtype)]

    def typed(self, values: Array, dtype: str) -> str:
        """A stored constant of a type that numpy may not have."""
        if dtype != "int4":
            return self.held(values, dtype)
        name = f"constant{len(self.initializers)}"
        flat = np.asarray(values).astype(int).reshape(-1).tolist()
        self.initializers.append(helper.make_tensor(name, TensorProto.INT4, list(np.shape(values)), flat))
        return name
