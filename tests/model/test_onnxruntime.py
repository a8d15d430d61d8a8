"""Imported u8s8 chains against ONNX Runtime, whose fused convs are `rint(float32(sum) * scale)`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.model.answers import chain_answer, nhwc, saved
from tests.model.quantised import Quantised
from tests.verify.saturation import kept_exact

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
MOST_APART = 2e-4
"""Share of the outputs that float32 roundings may move over a half, by one."""


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("form", ["qdq", "qlinear"])
def test_u8s8_is_onnx_runtimes(form: str, per_channel: bool, tmp_path: Path) -> None:
    net = Quantised("runtime", (1, 32, 24, 24), "uint8")
    stored = net.integers((64, 32, 3, 3), "int8")
    stored[stored == -128] = 127  # as quantisers have them
    stored = kept_exact(stored)
    unit = float(4.1 * np.max(stored) / 127)  # so that results spread over the codes
    scales = net.constant(0.03 * (np.linspace(0.1, 1, 64) if per_channel else np.ones(())), "float32")
    zeros = net.constant(np.zeros(64 if per_channel else (), np.int8))
    bias = net.random.integers(-40000, 40000, 64).astype(np.int32)
    if form == "qlinear":
        ends = [net.scale(0.02), net.zero(7), net.constant(stored), scales, zeros, net.scale(unit), net.zero(100)]
        result = net.node("QLinearConv", ["image", *ends, net.constant(bias)], pads=[1, 1, 1, 1])
    else:
        of_sums = net.constant(np.float32(0.02) * net.initializers_value(scales))
        axis: dict[str, Any] = {"axis": 0} if per_channel else {}
        filter = net.node("DequantizeLinear", [net.constant(stored), scales, zeros], **axis)
        units = net.node("DequantizeLinear", [net.constant(bias), of_sums], **axis)
        result = net.quantize(
            net.node("Conv", [net.dequantize("image", 0.02, 7), filter, units], pads=[1, 1, 1, 1]), unit, 100
        )
    model = net.model(result)
    found = saved(model, tmp_path)
    image = net.integers((1, 32, 24, 24), "uint8")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [expected] = session.run(None, {"image": image})
    apart = np.abs(chain_answer(found, 0, nhwc(image)).astype(int) - nhwc(expected).astype(int))
    assert apart.max() <= 1
    assert np.mean(apart) <= MOST_APART
    assert len(np.unique(expected)) > 100
