"""The independent answer: ONNX's own reference evaluator on the whole model, tensor by tensor."""

from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from hexconv.compute import reference
from hexconv.model import Imported, import_model
from hexconv.model.conv_unit import Unit

Tensors = dict[str, np.ndarray]


def saved(model: onnx.ModelProto, folder: Path) -> Imported:
    onnx.save(model, folder / "model.onnx")
    return import_model(folder / "model.onnx")


def tensors_of(model: onnx.ModelProto, names: set[str], seed: int = 0) -> Tensors:
    """Some tensors of a model as ONNX computes them, from a random image."""
    random = np.random.default_rng(seed)
    image = model.graph.input[0]
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(image.type.tensor_type.elem_type)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-1.0, 1.0)
    feed = {image.name: random.uniform(low, high, shape).astype(dtype)}
    wanted = sorted(names - feed.keys())
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    del extended.graph.output[:]
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    results = map(np.asarray, ReferenceEvaluator(extended).run(None, feed))
    return {**feed, **dict(zip(wanted, results, strict=True))}


def nhwc(tensor: np.ndarray) -> np.ndarray:
    """A tensor of NCHW or NCW as a chain has it."""
    return np.moveaxis(tensor if tensor.ndim == 4 else tensor[:, :, None], 1, 3)


def chain_answer(found: Imported, index: int, image: np.ndarray) -> np.ndarray:
    """A chain's output by hexconv's reference from the weights that were imported; NHWC."""
    chain, weights = found.cases[index].chain, found.weights(index)
    count = range(1, len(chain.conv) + 1)
    filters, biases = [weights[f"filter{i}"] for i in count], [weights.get(f"bias{i}") for i in count]
    return reference(chain, image, filters, biases, weights)


def unit_answer(found: Imported, unit: Unit, image: np.ndarray) -> np.ndarray:
    """One conv alone."""
    folded = unit.weights.folded(found.graph)
    vectors = {f"{what}1": vector for what, vector in folded.vectors.items()}
    return reference(unit.alone, image, [folded.filter], [folded.bias], vectors)


def chain_errors(model: onnx.ModelProto, found: Imported) -> list[float]:
    """How far each chain's output is from ONNX's, relative to its largest value."""
    entries = found.network.chain
    tensors = tensors_of(model, {name for entry in entries for name in (entry.input, entry.output)})
    errors = []
    for index, entry in enumerate(entries):
        expected = nhwc(tensors[entry.output]).astype(np.float64)
        answer = chain_answer(found, index, nhwc(tensors[entry.input]))
        assert answer.shape == expected.shape
        errors.append(float(np.max(np.abs(answer - expected)) / max(np.max(np.abs(expected)), 1e-9)))
    return errors


def integer_errors(model: onnx.ModelProto, found: Imported) -> list[int]:
    """How far each conv's output is from ONNX's, from the same input."""
    units = [unit for run in found.runs for unit in run.units]
    tensors = tensors_of(model, {name for unit in units for name in (unit.source, unit.result)})
    answers = [unit_answer(found, unit, nhwc(tensors[unit.source])).astype(np.int64) for unit in units]
    return [
        int(np.max(np.abs(answer - nhwc(tensors[unit.result]).astype(np.int64))))
        for unit, answer in zip(units, answers, strict=True)
    ]
