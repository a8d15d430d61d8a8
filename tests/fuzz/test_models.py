"""Random valid models keep the law of an import: a few each time, 6000 by `make fuzz`."""

import os
from pathlib import Path

import pytest

from tests.model.drawn import draw_model
from tests.model.law import breaches

SHARE = 0.02
"""Of the hostile inputs, for each seed."""
FEW = 100
MODELS = int(SHARE * int(os.environ.get("HEXCONV_FUZZ_INPUTS", FEW / SHARE)))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_taken_gives_onnx_s_numbers_and_all_else_has_a_reason(seed: int, tmp_path: Path) -> None:
    for index in range(MODELS):
        broken = breaches(draw_model(seed, index), tmp_path)
        assert not broken, f"draw_model({seed}, {index}): {broken}"


def test_all_opsets_and_all_ways_to_be_a_constant_are_drawn() -> None:
    models = [draw_model(0, index).model for index in range(FEW)]
    opsets = {model.opset_import[0].version for model in models}
    made = {node.op_type for model in models for node in model.graph.node}
    assert (min(opsets), len(opsets) >= 20) == (7, True)
    assert {"Constant", "Identity", "Cast", "Reshape", "QuantizeLinear", "DequantizeLinear", "QLinearConv"} <= made
    assert any(len(model.graph.input) > 1 for model in models)
