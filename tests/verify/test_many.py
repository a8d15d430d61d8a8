"""The outputs of a network on many inputs, beside ONNX Runtime's."""

import numpy as np
import pytest

from hexconv.verify.network import outputs_of

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")


def test_what_is_told_of_two_outputs() -> None:
    one = np.arange(24, dtype=np.float32).reshape(1, 24) / 2
    swapped = one.copy()
    swapped[0, [22, 23]] = swapped[0, [23, 22]]
    found = outputs_of([(one, one), (one, swapped)])
    assert (found.inputs, found.top1_alike, found.ranked_alike, found.largest, found.step) == (2, 1, 1, 0.5, 0.5)
    assert found.psnr_db == pytest.approx(10 * np.log10(11.5**2 / (2 * 0.25 / 48)))
    assert (found.largest_steps, found.differing_share) == (1.0, 2 / 48)
    assert found.mean == pytest.approx(1 / 48)
    same = outputs_of([(one[0], one[0])])
    assert (same.ranked_alike, same.psnr_db) == (None, None)
