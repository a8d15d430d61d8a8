"""The outputs of a network on many inputs, beside ONNX Runtime's."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from hexconv.verify.network import on_many_inputs, outputs_of
from tests.verify.networks import residual

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")


def test_a_small_network_ranks_its_classes_as_onnx_runtime_does(tmp_path: Path) -> None:
    net, output = residual()
    onnx.save(net.model(output), tmp_path / "net.onnx")
    found = on_many_inputs(tmp_path / "net.onnx", 3)
    assert (found.inputs, found.ranked_alike) == (3, 3)
    assert found.largest <= found.step * 3 or found.differing_share < 0.01


def test_what_is_told_of_two_outputs() -> None:
    one = np.arange(24, dtype=np.float32).reshape(1, 24) / 2
    swapped = one.copy()
    swapped[0, [22, 23]] = swapped[0, [23, 22]]
    found = outputs_of([(one, one), (one, swapped)])
    assert (found.inputs, found.ranked_alike, found.largest, found.step) == (2, 1, 0.5, 0.5)
    assert (found.largest_steps, found.differing_share) == (1.0, 2 / 48)
    assert found.mean == pytest.approx(1 / 48)
    assert outputs_of([(one[0], one[0])]).ranked_alike is None
