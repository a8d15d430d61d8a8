"""Networks in codes: what their float forms compute between QuantizeLinear and DequantizeLinear."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.verify import full_size
from tests.verify.families import resnet

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")


@pytest.mark.parametrize("name", ["fsrcnn", "resnet"])
def test_a_network_in_codes_computes_the_codes_of_the_one_in_floats(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(full_size.NETWORKS, "resnet", resnet)
    full_size.write(tmp_path, [name], ["tensor"], codes=True)
    floats, codes = (str(tmp_path / f"{name}-tensor{form}.onnx") for form in ("", "-codes"))
    scale, zero = _ends(onnx.load(floats))
    image = onnxruntime.InferenceSession(codes).get_inputs()[0]
    drawn = np.random.default_rng(3).integers(0, 256, image.shape, np.uint8)
    real = (drawn.astype(np.float32) - zero[0]) * scale[0]
    (expected,) = onnxruntime.InferenceSession(floats).run(None, {"image": real})
    (got,) = onnxruntime.InferenceSession(codes).run(None, {image.name: drawn})
    assert got.dtype == np.uint8
    assert np.array_equal((got.astype(np.float32) - zero[1]) * scale[1], expected)
    assert len(np.unique(got)) > 8


def _ends(model: onnx.ModelProto) -> tuple[list[np.float32], list[np.float32]]:
    """Scales and zero points of the first QuantizeLinear and the last DequantizeLinear."""
    known = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    first = next(node for node in model.graph.node if node.op_type == "QuantizeLinear")
    last = [node for node in model.graph.node if node.op_type == "DequantizeLinear" and node.input[0] not in known][-1]
    scales, zeros = ([np.float32(known[node.input[at]]) for node in (first, last)] for at in (1, 2))
    return scales, zeros
