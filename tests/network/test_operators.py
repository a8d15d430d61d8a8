"""Operators between chains: what numpy says of each, held against ONNX Runtime, which computes node by node."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import hexconv
from hexconv.errors import Unsupported
from hexconv.network import operator_table
from hexconv.network.answer import answer
from hexconv.network.built_network import Wanted, read_network
from hexconv.network.operator_table import OPERATORS as COMPUTED
from tests.model.quantised import Quantised
from tests.network.models import EXACT, OPERATORS, SHAPE, OneOperator, saved

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

PACKAGE = Path(hexconv.__file__).parent
WANTED = Wanted(1 << 20, "llvm")


def node_by_node(path: Path, image: np.ndarray) -> list[np.ndarray]:
    """ONNX Runtime without its optimisations: each node as ONNX defines it."""
    options: Any = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, {"image": image})


@pytest.mark.parametrize("reals", [False, True], ids=["codes", "reals"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_means_what_onnx_says(tmp_path: Path, name: str, reals: bool) -> None:
    for seed in range(3):
        net = OneOperator(seed, reals)
        output = OPERATORS[name](net)
        path = saved(net, [output], tmp_path / "one.onnx")
        image = (np.random.default_rng(seed).standard_normal(SHAPE) * 1.5).astype(np.float32)
        [expected] = node_by_node(path, image)
        found = answer(read_network(path, WANTED), {"image": image})[output]
        assert found.shape == expected.shape
        if name in EXACT:
            assert np.array_equal(found, expected)
        elif reals and name != "quantised_average_pool_cut":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        else:
            steps = np.abs(found - expected) / np.min(np.diff(np.unique(expected)))
            assert steps.max() < 1.5
            assert np.count_nonzero(steps > 0.5) <= 0.002 * found.size + 1


@pytest.mark.parametrize("kind", ["conv", "conv of one dimension"])
def test_uint16_between_quantisers_is_what_onnx_says(kind: str, tmp_path: Path) -> None:
    size = (12,) if "dimension" in kind else (12, 11)
    net = Quantised("wide", (1, 3, *size), "uint16", seed=3)
    net.inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *size])]
    sums = net.qdq(net.quantize("image", 0.0001, 2**15), (8, 3, *[3] * len(size)), 2**15)  # pyright: ignore[reportArgumentType]
    path = saved(net, [net.dequantize(net.quantize(sums, 0.01, 2**15), 0.01, 2**15)], tmp_path / "wide.onnx")
    image = np.random.default_rng(0).uniform(-3, 3, (1, 3, *size)).astype(np.float32)
    [expected] = node_by_node(path, image)
    [found] = answer(read_network(path, WANTED), {"image": image}).values()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.011
    assert np.mean(found != expected) < 0.01


def test_uint16_at_the_edge_of_a_network_is_refused(tmp_path: Path) -> None:
    net = Quantised("wide", (1, 3, 8, 8), "uint16")
    path = saved(net, [net.quantize(net.qdq("image", (8, 3, 3, 3), 2**15), 0.01, 2**15)], tmp_path / "wide.onnx")
    with pytest.raises(Unsupported, match="image is uint16, which C doesn't get"):
        read_network(path, WANTED)


MADE_ELSEWHERE = {
    "convert": ("program.py", "simplified.py", "texts.py", "call_costs.py"),
    "view": ("program.py", "simplified.py"),
    "concat": ("simplified.py",),
    "resize": ("compiled.py",),
}
"""Where steps of these are made, dropped or counted, too, since no node alone asks for them. A layout that a chain asks
for is a convert: `texts` and `call_costs` tell layouts from quantisers by it. What moves is a view; views of views are
one. HVX has no code for a resize, which its compilation leaves out. Parts of a split, side by side in a concat, are the
whole. What they mean stands in one file."""


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_an_operator_stands_in_one_file(name: str) -> None:
    """How its nodes are read, what it means, its integer form and its error: a new one is one file, and its C."""
    paths = [path for room in ("network", "verify", "build") for path in (PACKAGE / room).rglob("*.py")]
    files = [path.name for path in paths if f'"{name}"' in path.read_text()]
    elsewhere = MADE_ELSEWHERE.get(name, ())
    assert len(files) == 1 + len(elsewhere)
    assert set(elsewhere) <= set(files)
    defined = [Path(str(part.__file__)).name for part in operator_table._PARTS if name in part.OPERATORS]
    assert defined == [file for file in files if file not in elsewhere]
