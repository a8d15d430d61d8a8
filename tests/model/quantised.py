"""Quantised networks: QLinearConv, QDQ and ConvInteger, with scales that spread the sums over 8 bits."""

import numpy as np
from onnx import TensorProto

from tests.model.builder import Builder

ONNX_TYPES = {
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16,
}


class Quantised(Builder):
    """A builder of quantised convs over an 8-bit image."""

    def __init__(self, name: str, image: tuple[int, ...], dtype: str, seed: int = 0) -> None:
        super().__init__(name, image, ONNX_TYPES[dtype], seed)
        self.bits = np.iinfo(dtype)
        self.integer = dtype

    def scale(self, value: float) -> str:
        return self.constant(value, "float32")

    def zero(self, value: int, dtype: str = "") -> str:
        return self.constant(value, dtype or self.integer)

    def integers(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        bits = np.iinfo(dtype)
        return self.random.integers(bits.min, bits.max, shape, dtype, endpoint=True)

    def qlinear(self, x: str, shape: tuple[int, int, int, int], zeros: tuple[int, int, int], **rest) -> str:
        """QLinearConv; zero points of x, w and y; filter in the other 8-bit type if `filter_dtype` says so."""
        filter_dtype = rest.pop("filter_dtype", self.integer)
        filter = self.constant(self.integers(shape, filter_dtype), filter_dtype)
        bias = self.constant(self.random.integers(-4000, 4000, shape[0]), "int32")
        output_scale = 0.02 * 0.03 * 70 * np.sqrt(np.prod(shape[1:]))
        inputs = [x, self.scale(0.02), self.zero(zeros[0]), filter, self.scale(0.03), self.zero(zeros[1], filter_dtype)]
        inputs += [self.scale(output_scale), self.zero(zeros[2]), bias]
        return self.node("QLinearConv", inputs, **rest)

    def dequantize(self, x: str, scale: float, zero: int) -> str:
        return self.node("DequantizeLinear", [x, self.scale(scale), self.zero(zero)])

    def quantize(self, x: str, scale: float, zero: int) -> str:
        return self.node("QuantizeLinear", [x, self.scale(scale), self.zero(zero)])

    def qdq(self, x: str, shape: tuple[int, int, int, int], zero: int, bias: str = "int32", **rest) -> str:
        """Conv between DequantizeLinear of x, of an int8 filter and of a bias; its float result."""
        filter = self.constant(self.integers(shape, "int8"), "int8")
        filter = self.node("DequantizeLinear", [filter, self.scale(0.03), self.zero(0, "int8")])
        inputs = [self.dequantize(x, 0.02, zero), filter]
        if bias == "int32":
            units = self.constant(self.random.integers(-4000, 4000, shape[0]), "int32")
            scale = self.constant(np.float32(0.02) * np.float32(0.03), "float32")
            inputs.append(self.node("DequantizeLinear", [units, scale]))
        elif bias == "float32":
            inputs.append(self.constant(self.random.uniform(-2, 2, shape[0]), "float32"))
        return self.node("Conv", inputs, **rest)
