"""A network, verified: chains of integers on their target, all else by ONNX Runtime, in two passes."""

import tempfile
from pathlib import Path

import numpy as np

from hexconv.apart import cores
from hexconv.errors import InputError
from hexconv.model import import_model, write_network
from hexconv.run.doctor import saturation
from hexconv.verify.inputs import inputs_of
from hexconv.verify.members import members_of
from hexconv.verify.parts import Whole
from hexconv.verify.passes import Asked, Done, Passes
from hexconv.verify.runtime import Array, runtime
from hexconv.verify.taps import tapped
from hexconv.verify.top import top_same
from hexconv.verify.verdict import NetworkVerdict, OutputVerdict


def verify_network(path: Path, asked: Asked, done: Done = lambda *_: None) -> NetworkVerdict:
    """Verify a network.

    Args:
        path: of the `.onnx` file.
        asked: how.
        done: is told the name of each chain that is done, how many are, and of how many, both passes together.

    Raises:
        InputError: the model or its inputs can't be used, or it has no chain of integers.
        ToolMissing: ONNX Runtime is not installed.
        RunFailed: ONNX Runtime fuses less where its tensors are looked at.
    """
    runtime()  # before anything that takes time
    imported, whole = import_model(path, asked.shapes), Whole.load(path, asked.shapes)
    members, others = members_of(imported)
    if not members:
        told = f"; {others[0][0]}: {others[0][1]}" if others else ""
        raise InputError(str(path), f"a model without a chain of integers{told}", "a quantised model")
    inputs = inputs_of(whole.graph, whole.inputs, str(path), asked.given, asked.seed)
    found = tapped(whole, [name for member in members for name in member.tensors], inputs)
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder, cores(asked.workers) as executor:
        write_network(imported, Path(folder), weights=True)
        passes = Passes(Path(folder), asked, executor, done)
        alone = passes.alone(members, found)
        verdicts, values = passes.together(whole, members, alone, found, inputs)
    outputs = tuple(_output(name, found.outputs[name], values[name]) for name in whole.outputs)
    cause = _cause() if any(conv.not_float32 for chain in verdicts for conv in chain.convs) else ""
    return NetworkVerdict(path.name, asked.target, verdicts, outputs, others, cause)


def _cause() -> str:
    """Why ONNX Runtime's values may not be its sums of integers, scaled."""
    return saturation() or "ONNX Runtime computes convs in floats where it has no integer conv of their types"


def _output(name: str, alone: Array, network: Array) -> OutputVerdict:
    """One output of the model, both ways."""
    one, other = alone.astype(np.float64), network.astype(np.float64)
    apart = np.abs(one - other)
    return OutputVerdict(
        name=name,
        values=one.size,
        differing=int(np.count_nonzero(apart)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()) if one.size else 0.0,
        range=float(np.ptp(one)) if one.size else 0.0,
        top5_same=top_same(one, other),
    )
