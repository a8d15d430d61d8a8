"""Drawn quantised convs: all between a conv and its quantisers folds, and is off by no more than is said."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from hexconv.model.onnx_file import load_model
from tests.model.answers import nhwc, saved, unit_answer
from tests.model.drawn_qdq import DrawnQdq, draw_qdq

SMALL = {"int8": 1e-3, "uint8": 1e-3, "int16": 2e-2}
"""Steps by which float32 scales move products that no range cuts."""


def evaluated(model: onnx.ModelProto, tensor: str, image: np.ndarray) -> np.ndarray:
    """A tensor of a model, from its image."""
    if tensor == model.graph.input[0].name:
        return image
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name=tensor))
    [found] = ReferenceEvaluator(model).run(None, {"image": image})
    return np.asarray(found)


def breaches(drawn: DrawnQdq, folder: Path) -> list[str]:
    """What is wrong with the import of a drawn conv; empty where nothing is."""
    found = saved(drawn.model, folder)
    if found.network.not_taken:
        reason = found.network.not_taken[0].reason
        return [] if "a 128th of it" in reason else [reason]
    [unit] = [unit for run in found.runs for unit in run.units]
    if unit.dtype == "float32":
        return [f"computes in floats: {unit.notes}"]
    if unit.conv.requantize is None:
        is_too_wide = "8 bits hold a range of at most 255" in unit.unfolded
        wrong = [f"does not fold: {unit.unfolded}"] if drawn.folds and not is_too_wide else []
        return wrong if unit.unfolded else ["does not fold, without a reason", *wrong]
    bits = np.iinfo(unit.dtype)
    with np.errstate(all="ignore"):
        [exact] = ReferenceEvaluator(drawn.exact).run(None, {"image": drawn.image})
    source = evaluated(load_model(folder / "model.onnx"), unit.source, drawn.image)
    answer = unit_answer(found, unit, nhwc(source)).astype(np.float64)
    apart = float(np.max(np.abs(answer - np.clip(nhwc(np.asarray(exact)), bits.min, bits.max))))
    said = 0.5 + sum(each.off_steps or 0.0 for each in unit.inexact)
    return (
        [] if apart <= said + SMALL[unit.dtype] else [f"{apart:.4f} steps apart from exact, where {said:.4f} is said"]
    )


@pytest.mark.parametrize("part", range(3))
def test_drawn_convs_are_off_by_no_more_than_their_notes_say(part: int, tmp_path: Path) -> None:
    wrong = {index: found for index in range(part, 240, 3) if (found := breaches(draw_qdq(1, index), tmp_path))}
    assert wrong == {}
