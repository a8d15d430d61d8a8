"""The law of an import: what is taken gives ONNX's numbers from the files that were written, all else has a reason."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from hexconv.compute import magnitude, reference
from hexconv.compute.reference import of_conv
from hexconv.model import Imported, import_model, write_network
from hexconv.model.conv_unit import Unit
from hexconv.spec import Case, Chain
from hexconv.spec.activations import TABLE
from hexconv.spec.case import with_limits
from hexconv.spec.vectors import looked_up
from tests.model.answers import nhwc
from tests.model.drawn import Drawn

Array = np.ndarray
Inputs = tuple[Chain, Array, list[Array], list[Array | None]]
Vectors = dict[str, Array]
Tensors = dict[str, Array]
NEAR = {"float32": 2e-5, "float16": 1e-2}
"""Of the largest sum."""


class DequantizeLinear(OpRun):
    """`(x - zero_point) * scale`, by slices along an axis: as opsets 10 to 18 define it."""

    def _run(self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, **_: Any) -> tuple[Array]:
        along = [1] * x.ndim
        if scale.size > 1:
            along[axis] = scale.size
        moved = x.astype(np.int32) - (0 if zero is None else zero.astype(np.int32).reshape(along))
        return ((moved * scale.astype(np.float64).reshape(along)).astype(np.float32),)


class BatchNormalization(OpRun):
    """At inference, as all opsets define it; before opset 14 ONNX's evaluator trains."""

    def _run(self, x: Array, *vectors: Array, epsilon: float = 1e-5, **_: Any) -> tuple[Array]:
        along = (-1, *[1] * (x.ndim - 2))
        scale, bias, mean, variance = (vector.reshape(along) for vector in vectors)
        return (((x - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(x.dtype),)


DEFINED_HERE: dict[type[OpRun], int] = {DequantizeLinear: 19, BatchNormalization: 14}
"""What ONNX's evaluator lacks, or gets wrong, before this opset."""


def evaluated(drawn: Drawn, names: set[str]) -> dict[str, Array]:
    """Tensors of a model, as ONNX's reference evaluator computes them."""
    # What is given is no result of the evaluator's.
    given = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in drawn.model.graph.initializer} | drawn.feed
    made = sorted(names - given.keys())
    extended = onnx.ModelProto()
    extended.CopyFrom(drawn.model)
    del extended.graph.output[:]
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    own = [op for op, since in DEFINED_HERE.items() if drawn.model.opset_import[0].version < since]
    with np.errstate(all="ignore"):  # floats that no conv reads may grow beyond all integers
        results = ReferenceEvaluator(extended, new_ops=own).run(None, drawn.feed) if made else []
    return {
        **{name: given[name] for name in names & given.keys()},
        **dict(zip(made, map(np.asarray, results), strict=True)),
    }


def breaches(drawn: Drawn, folder: Path) -> list[str]:
    """Where an import of the model with its weights breaks the law; empty where it keeps it.

    Raises:
        InputError: the whole model is refused, though it is valid.
    """
    path = folder / "model.onnx"
    onnx.save(drawn.model, path)
    found = import_model(path)
    write_network(found, folder, weights=True)
    network = found.network
    named = Counter(name for entry in network.chain for name in entry.convs)
    named += Counter(conv.node for conv in network.not_taken)
    convs = Counter(node.name for node in drawn.model.graph.node if "Conv" in node.op_type)
    broken = [] if named == convs else [f"convs {convs} are {named} in the manifest"]
    broken += [f"{conv.node} is not taken, without a reason" for conv in network.not_taken if not conv.reason.strip()]
    if found.runs:
        names = {name for run in found.runs for unit in run.units for name in (unit.source, unit.result)}
        tensors = evaluated(drawn, names)
        for index in range(len(found.runs)):
            broken += _wrong(drawn, found, index, folder, tensors)
    return broken


def _wrong(drawn: Drawn, found: Imported, index: int, folder: Path, tensors: dict[str, Array]) -> list[str]:
    """Where one chain differs from ONNX: its convs one by one, each from ONNX's input, then all of it."""
    entry, units = found.network.chain[index], found.runs[index].units
    case = Case.load(folder / f"{entry.case}.toml")
    with np.load(folder / f"{entry.case}.npz", allow_pickle=False) as file:
        weights = dict(file)
    filters = [weights[f"filter{number}"] for number in range(1, len(units) + 1)]
    biases = [weights.get(f"bias{number}") for number in range(1, len(units) + 1)]
    stated = with_limits(found.runs[index].chain, filters, biases)
    if (case.chain, entry.input, entry.output) != (stated, units[0].source, units[-1].result):
        return [f"{entry.case}: the files are of another chain"]
    broken, image = [], nhwc(tensors[entry.input])
    for number, (unit, filter, bias) in enumerate(zip(units, filters, biases, strict=True), 1):
        alone = (unit.alone, nhwc(tensors[unit.source]), [filter], [bias])
        vectors = {f"{what}1": vector for what, vector in of_conv(weights, number).items()}
        has_table = unit.conv.activation == TABLE
        broken += [] if has_table else _differs(drawn, unit, alone, vectors, tensors)
        broken += _differs_by_table(unit, alone, vectors, tensors) if has_table else []
        image = reference(unit.alone, image, [filter], [bias], vectors).astype(unit.alone.output_dtype(0))
    whole = reference(case.chain, nhwc(tensors[entry.input]), filters, biases, weights).astype(image.dtype)
    return broken if np.array_equal(whole, image) else [*broken, f"{entry.case} is not its convs one after the other"]


def _differs_by_table(unit: Unit, alone: Inputs, vectors: Vectors, tensors: Tensors) -> list[str]:
    """How it differs where codes that may be 1 apart from ONNX's are looked up."""
    conv = replace(unit.conv, activation="none", table_zero_point=0)
    codes = reference(replace(unit.alone, conv=(conv,)), *alone[1:], vectors).astype(np.int64)
    ends, expected = np.iinfo(unit.dtype), nhwc(tensors[unit.result])
    near = (np.clip(codes + apart, ends.min, ends.max).astype(unit.dtype) for apart in (-1, 0, 1))
    is_near = np.logical_or.reduce([looked_up(some, vectors["table1"]) == expected for some in near])
    return [] if is_near.all() else [f"{unit.node.name}: {np.sum(~is_near)} codes are not ONNX's, nor beside them"]


def _differs(drawn: Drawn, unit: Unit, alone: Inputs, vectors: Vectors, tensors: Tensors) -> list[str]:
    """How a conv's answer differs from ONNX's, where it does by more than is documented."""
    answer, size = reference(*alone, vectors), magnitude(*alone, vectors)
    expected = tensors[unit.result]
    if expected.ndim != 4 or nhwc(expected).shape != answer.shape:
        return [f"{unit.node.name}: {answer.shape} for an NCHW of {expected.shape}"]
    expected = nhwc(expected).astype(np.float64)
    most = 1.0 if unit.conv.requantize else 0.0
    if unit.dtype in NEAR:
        most = NEAR[unit.dtype] * max(size, 1e-6)
    elif unit.conv.requantize is None and unit.node.op == "Conv":
        scale = _unit_scale(drawn, unit)
        expected = expected / scale
        most = 1.0 + 1e-5 * np.abs(expected).max()  # a float bias is rounded to whole units; ONNX's sums are float32
    error = float(np.max(np.abs(answer.astype(np.float64) - expected), initial=0))
    return [] if error <= most else [f"{unit.node.name}: {error:g} apart from ONNX, where {most:g} is documented"]


def _unit_scale(drawn: Drawn, unit: Unit) -> Array:
    """What one unit of a QDQ conv's sums stands for, for all channels or each."""
    makers = {name: node for node in drawn.model.graph.node for name in node.output}
    of_image, of_filter = (makers[name].input[1] for name in unit.node.inputs[:2])
    found = evaluated(drawn, {of_image, of_filter})
    return found[of_image].astype(np.float64).reshape(-1) * found[of_filter].astype(np.float64).reshape(-1)
