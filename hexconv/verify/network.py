"""Verify a network in two passes: integer chains run on their target, all other nodes in ONNX Runtime."""

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
from hexconv.written import scratch


def verify_network(path: Path, asked: Asked, done: Done = lambda *_: None) -> NetworkVerdict:
    """Verify a network.

    Args:
        path: the `.onnx` file.
        asked: how to verify it.
        done: is called after each chain with its name, how many chains are done, and how many there are over both
            passes.

    Raises:
        InputError: the model or its inputs can't be used, or it has no chain of integers.
        ToolMissing: ONNX Runtime is not installed.
        RunFailed: ONNX Runtime fuses less, or gives other values, once it has to give inner tensors back.
    """
    runtime()  # a missing ONNX Runtime is reported before anything that takes time
    imported, whole = import_model(path, asked.shapes), Whole.load(path, asked.shapes)
    members, others = members_of(imported)
    if not members:
        told = f"; {others[0][0]}: {others[0][1]}" if others else ""
        raise InputError(str(path), f"a model without a chain of integers{told}", "a quantised model")
    inputs = inputs_of(whole.graph, whole.inputs, str(path), asked.given, asked.seed)
    found = tapped(whole, [name for member in members for name in member.tensors], inputs)
    with scratch() as folder, cores(asked.workers) as executor:
        write_network(imported, folder, weights=True)
        passes = Passes(folder, asked, executor, done)
        alone = passes.alone(members, found)
        verdicts, values = passes.together(whole, members, alone, found, inputs)
    outputs = tuple(_output(name, found.outputs[name], values[name]) for name in whole.outputs)
    cause = _cause() if any(conv.not_float32 for chain in verdicts for conv in chain.convs) else ""
    return NetworkVerdict(path.name, asked.target, verdicts, outputs, others, cause)


def _cause() -> str:
    """Why ONNX Runtime's values on this machine may not be its integer sums, scaled; empty where they are."""
    return saturation() or "ONNX Runtime computes convs in floats where it has no integer conv of their types"


def _output(name: str, alone: Array, network: Array) -> OutputVerdict:
    """Compare one output of the model: ONNX Runtime's alone, and that of the network with its chains replaced."""
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
