"""Filters and biases as quantisers write them: a scale for all, one a channel or one a block, dead channels."""

import numpy as np

from tests.quantisers.tensors import DEAD_MOST, PER_CHANNEL, RANGES, WIDE_TYPES, Array, Tensors


class Filters(Tensors):
    """A builder of quantised weights; `is_torch`: quantised floats, as PyTorch's fake quantisation leaves them."""

    is_torch: bool

    def filter(self, shape: tuple[int, ...]) -> tuple[str, Array]:
        """A dequantised filter of a standard deviation near 1 / sqrt(fan-in), and its scales, one or one a channel."""
        dtype = self.of(*["int8"] * 8, "uint8", *(["int4"] if self.has_blocks else []))
        dtype = "int16" if self.integer == "int16" and self.chance(0.1) else dtype
        low, high = RANGES[dtype]
        zero = (low + high + 1) // 2 if dtype.startswith("u") else 0
        is_coarse = self.chance(0.05)  # a unit of the sums is then more than a step of the result
        levels = 1.0 if is_coarse else (high - low) / 6
        codes = np.clip(np.rint(self.random.standard_normal(shape) * levels) + zero, low, high)
        step = 1 / levels / np.sqrt(np.prod(shape[1:]))
        kinds = ["tensor"] + (["channel"] * 2 if self.opset >= PER_CHANNEL or self.form == "contrib" else [])
        kind = self.of(*kinds, *(["block", "block", "axis"] if self.has_blocks and self.chance(0.5) else []))
        if kind == "tensor":
            scales = np.full((1,) if self.chance(0.1) else (), self.near(step), np.float32)
        elif kind == "block":
            return self.blocked(codes, step, zero, dtype)
        else:
            axis = 0 if kind == "channel" else self.of(1, -1, -len(shape))
            count = shape[axis]
            reach = 1e-4 if self.chance(0.3 if is_coarse else 0.04) else 0.3
            scales = (step * np.exp(self.random.uniform(np.log(reach), 0, count))).astype("float32")
            if kind == "channel" and self.chance(0.3):
                codes, scales = self.with_dead_channels(codes, scales, zero)
            scales = np.array([self.near(scale) for scale in scales], "float32") if self.is_round else scales
            given = {"axis": axis} if axis != 1 or self.chance(0.5) else {}
            given = {"axis": axis - len(shape)} if axis == 0 and self.chance(0.1) else given
            zeros = np.full(count, zero)
            if dtype.endswith("8") and self.chance(0.05):
                zeros = self.random.integers(low, high, count)
            filter = self.stored_filter(codes, scales, zeros, dtype, given)
            return filter, scales if axis == 0 else np.full((), step, "float32")
        return self.stored_filter(codes, scales, np.full(scales.shape, zero), dtype, {}), scales

    @property
    def has_blocks(self) -> bool:
        return self.opset >= WIDE_TYPES and self.form == "qdq"

    def with_dead_channels(self, codes: Array, scales: Array, zero: int) -> tuple[Array, Array]:
        """Channels with next to no weights, whose scale is the least with which a bias of theirs fits into int32."""
        codes, scales = codes.copy(), scales.copy()
        for channel in range(len(scales)):
            if self.chance(0.4):
                codes[channel] = zero + self.random.integers(-1, 1, codes.shape[1:], endpoint=True) * self.chance(0.5)
                scales[channel] = np.float32(self.random.uniform(0.05, 8) / DEAD_MOST * self.steps)
        return codes, scales

    def stored_filter(self, codes: Array, scales: Array, zeros: Array, dtype: str, axis: dict[str, int]) -> str:
        """DequantizeLinear of stored codes, of quantised floats, or with nodes around it that move no value."""
        has_zeros = zeros.any() or self.chance(0.7)
        ends = [self.held(scales), *([self.typed(zeros, dtype)] if has_zeros else [])]
        if self.is_torch and dtype == "int8" and has_zeros:
            near = codes + self.random.uniform(-0.4, 0.4, codes.shape)
            along = spread_of(codes.ndim, axis.get("axis", 1) if axis or scales.ndim else 0)
            floats = (near - zeros.reshape(along if zeros.size > 1 else [1] * codes.ndim)).astype("float64")
            floats = floats * scales.reshape(along if scales.size > 1 else [1] * codes.ndim)
            made = self.quantiser("QuantizeLinear", [self.constant(floats, "float32"), *ends], **axis)
            return self.quantiser("DequantizeLinear", [made, *ends], **axis)
        way = self.of(*["plain"] * 6, "identity", "reshape", "flat", "transpose", "turned codes")
        if way == "flat" and scales.size > 1 and axis.get("axis") != 0:
            way = "plain"
        if way == "flat":
            flat = self.typed(codes.reshape(codes.shape[0], -1), dtype)
            made = self.quantiser("DequantizeLinear", [flat, *ends], **axis)
            return self.node("Reshape", [made, self.held(codes.shape, "int64")])
        if way in ("transpose", "turned codes") and codes.ndim == 4:
            hwio = self.typed(codes.transpose(2, 3, 1, 0), dtype)
            if way == "turned codes" and dtype != "int4":
                turned = self.node("Transpose", [hwio], perm=[3, 2, 0, 1])
                return self.quantiser("DequantizeLinear", [turned, *ends], **axis)
            place = {"axis": [3, 2, 0, 1][axis.get("axis", 1)]} if scales.size > 1 or zeros.size > 1 else {}
            made = self.quantiser("DequantizeLinear", [hwio, *ends], **place)
            return self.node("Transpose", [made], perm=[3, 2, 0, 1])
        made = self.quantiser("DequantizeLinear", [self.typed(codes, dtype), *ends], **axis)
        if way == "identity":
            return self.node("Identity", [made])
        return self.node("Reshape", [made, self.held(codes.shape, "int64")]) if way == "reshape" else made

    def blocked(self, codes: Array, step: float, zero: int, dtype: str) -> tuple[str, Array]:
        """Scales by blocks along axis 0 or 1."""
        axis = self.of(0, 1, 1)
        length = codes.shape[axis]
        block = self.of(length, self.upto(length))
        shape = list(codes.shape)
        shape[axis] = -(-length // block)
        scales = (step * self.random.uniform(0.3, 1, shape)).astype("float32")
        zeros = [self.typed(np.full(shape, zero), dtype)] if zero or self.chance(0.5) else []
        inputs = [self.typed(codes, dtype), self.held(scales), *zeros]
        filter = self.node("DequantizeLinear", inputs, axis=axis, block_size=block)
        return filter, np.full((), step, "float32")

    def bias(self, channels: int, source: float, scales: Array) -> list[str]:
        """None, int32 in units of the sums, in other units, floats, or one that int32 doesn't hold."""
        kind = self.of("none", *["int32"] * 4, "float", "other units")
        if kind == "none":
            return []
        units = np.broadcast_to(np.float32(source) * scales.reshape(-1), (channels,)).astype("float32")
        real = self.random.standard_normal(channels)
        if self.chance(0.01):
            real[self.random.integers(channels)] = float(units.max()) * 1e10
        if kind == "float":
            return [self.held(real, "float32")]
        if kind == "other units":
            units = units * np.float32(self.of(3, 2, 100))
        if scales.size == 1:
            units = units[0]
        whole = np.clip(np.rint(real / units), -DEAD_MOST, DEAD_MOST).astype("int32")
        if kind == "int32" and scales.size > 1:
            # Channels of next to no weights have biases at the end of what the quantiser leaves.
            is_dead = scales < 1e-6
            whole[is_dead] = np.rint(DEAD_MOST * self.random.choice([-1, -0.9, 0.5, 0.99, 1], is_dead.sum()))
        axis = {"axis": 0} if np.ndim(units) and (self.opset >= PER_CHANNEL or self.form == "contrib") else {}
        zero = [self.constant(np.zeros(np.shape(units)), "int32")] if self.chance(0.6) else []
        if np.ndim(units) and not axis:
            return [self.held(whole * units, "float32")]
        inputs = [self.held(whole), self.held(units, "float32"), *zero]
        return [self.quantiser("DequantizeLinear", inputs, **axis)]


def spread_of(axes: int, axis: int) -> list[int]:
    """The shape of a vector along an axis.

    >>> spread_of(4, 0)
    [-1, 1, 1, 1]
    """
    shape = [1] * axes
    shape[axis] = -1
    return shape
