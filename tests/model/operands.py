"""Constants in all the forms that a model can have them in, and now and then an input of the model instead."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.model.builder import Builder

FLOAT_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE}
EIGHT_BITS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}

Array = np.ndarray


class Operands(Builder):
    """A builder that draws values, and the ways in which they come into the model; `feed` has those of its inputs."""

    feed: dict[str, Array]

    def of(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def upto(self, most: int) -> int:
        return int(self.random.integers(1, most, endpoint=True))

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def zero_of(self, dtype: str) -> int:
        bits = np.iinfo(dtype)
        return self.of(0, 0, bits.min, bits.max, int(self.random.integers(bits.min, bits.max, endpoint=True)))

    def values(self, shape: Sequence[int], dtype: str) -> Array:
        if dtype in EIGHT_BITS:
            bits = np.iinfo(dtype)
            return self.random.integers(bits.min, bits.max, shape, dtype, endpoint=True)
        return np.asarray(self.random.uniform(-1, 1, shape), dtype)

    def operand(self, values: Any, dtype: str | None = None) -> str:
        """These values as a constant, or as an input of the model."""
        array = np.asarray(values, dtype)
        forms = ["stored"] * 8 + ["constant"] * 3 + ["identity", "cast", "reshape", "rescaled"]
        form = "input" if self.chance(0.03) else self.of(*forms)
        if form == "input":
            name = f"operand{len(self.inputs)}"
            self.inputs.append(helper.make_tensor_value_info(name, _onnx_type(array), list(array.shape)))
            self.feed[name] = array
            return name
        if form == "constant":
            return self.node("Constant", [], value=numpy_helper.from_array(array))
        if form == "identity":
            return self.node("Identity", [self.constant(array)])
        if form == "cast":
            wide = "int32" if array.dtype.kind in "iu" else "float64"
            return self.node("Cast", [self.constant(array, wide)], to=_onnx_type(array))
        if form == "reshape":
            return self.node("Reshape", [self.constant(array.reshape(-1)), self.constant(array.shape, "int64")])
        return self.rescaled(array) if form == "rescaled" else self.constant(array)

    def rescaled(self, array: Array) -> str:
        """About these values from a QuantizeLinear or a DequantizeLinear of a constant, where there is one."""
        name = str(array.dtype)
        if self.opset >= 10 and name in EIGHT_BITS and array.ndim:
            ends = [self.constant(0.5, "float32"), self.constant(self.zero_of(name), name)]
            return self.node("QuantizeLinear", [self.constant(array / 4, "float32"), *ends])
        if self.opset < 10 or name != "float32" or array.ndim == 0:
            return self.constant(array)
        return self.dequantised_weights(array)

    def dequantised_weights(self, array: Array) -> str:
        """Quantised weights, one scale for all or one per slice along an axis."""
        step = max(float(np.abs(array).max()), 0.1) / 127
        whole = self.constant(np.rint(array / step), "int8")
        if self.opset >= 13 and self.chance(0.5):
            axis = int(self.random.integers(-array.ndim, array.ndim))
            scales = self.constant(self.random.uniform(0.5, 1, array.shape[axis]) * step, "float32")
            return self.node("DequantizeLinear", [whole, scales], axis=axis)
        zero = [self.constant(self.of(0, 1), "int8")] if self.chance(0.5) else []
        return self.node("DequantizeLinear", [whole, self.constant(step, "float32"), *zero])

    def scale(self, value: float, channels: int = 0) -> str:
        """A scale; where there are channels, now and then one for each."""
        per_channel = channels and self.opset >= 13 and self.chance(0.4)
        return self.operand(value * (self.random.uniform(0.5, 1, channels) if per_channel else np.ones(())), "float32")


def _onnx_type(array: Array) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)
