"""Draw small float networks and let ONNX Runtime's own tool quantise them, with the options that people give it."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.model.drawn import Drawn
from tests.quantisers.draw import Network
from tests.quantisers.tensors import Array, Codes, Real

OPTIONS = ("ActivationSymmetric", "AddQDQPairToWeight", "DedicatedQDQPair", "ForceQuantizeNoInputCheck")
NEXT_TO_NONE = 1e-12
"""Weights of channels that training has left dead, beside those of others."""


class _Floats(Network):
    """The same networks without their quantisers."""

    FORMS = ("qdq",)
    OPSETS = (13, 15, 17, 19, 21)
    FLOAT_IMAGES = 1.0

    def quantised(self, real: Real, like: Codes | None = None) -> Codes:
        scale = like.scale if like else real.spread / self.steps
        return Codes(real.name, real.shape, self.integer, scale, 0)

    def real(self, codes: Codes) -> Real:
        return Real(codes.name, codes.shape, codes.scale * self.steps)

    def filter(self, shape: tuple[int, ...]) -> tuple[str, Array]:
        values = self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        is_dead = self.random.random(shape[0]) < (0.3 if self.chance(0.3) else 0)
        values[is_dead] *= NEXT_TO_NONE
        return self.constant(values, "float32"), np.ones(())

    def bias(self, channels: int, source: float, scales: Array) -> list[str]:  # noqa: ARG002
        if self.chance(0.3):
            return []
        return [self.constant(self.random.standard_normal(channels) * self.of(0.3, 1, 3), "float32")]


class _Images(CalibrationDataReader):
    def __init__(self, images: list[Array]) -> None:
        self.left = [{"image": image} for image in images]

    def get_next(self) -> dict[str, Array] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.left.pop() if self.left else None


def draw_by_tool(seed: int, index: int) -> Drawn:
    """The network of this index, quantised by ONNX Runtime's tool."""
    random = np.random.default_rng([seed, index, 1])
    net = _Floats(random)
    drawn = net.drawn()
    images = [random.standard_normal(drawn.feed["image"].shape).astype("float32") for _ in range(2)]
    is_wide, is_narrow = net.chance(0.1), net.chance(0.1)
    activations = [QuantType.QInt16, QuantType.QUInt16] if is_wide else [QuantType.QUInt8, QuantType.QInt8]
    activation = net.of(*activations)
    has_bytes = activation == QuantType.QUInt8 and net.chance(0.2)
    weights = QuantType.QUInt8 if has_bytes else QuantType.QInt4 if is_narrow else QuantType.QInt8
    extra = {name: True for name in OPTIONS if net.chance(0.2)}
    extra |= {"UseQDQContribOps": True} if net.chance(0.15) else {}
    form = QuantFormat.QOperator if net.chance(0.2) and not (is_wide or is_narrow) else QuantFormat.QDQ
    with TemporaryDirectory() as place:
        path = Path(place) / "quantised.onnx"
        quantize_static(
            drawn.model,
            path,
            _Images(images),
            quant_format=form,
            per_channel=net.chance(0.6),
            reduce_range=net.chance(0.1),
            activation_type=activation,
            weight_type=weights,
            extra_options=extra,
        )
        return replace(drawn, model=onnx.load(path))
