"""`hexconv verify` of a drawn network, with numpy's answers where code would run: what it says of right networks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from hexconv.errors import HexconvError
from hexconv.layout import packed
from hexconv.model import Imported
from hexconv.network import Wanted
from hexconv.network.answer import stored_by
from hexconv.network.elements import as_model
from hexconv.network.planned_model import PlannedModel, members_of
from hexconv.network.program_run import Ran
from hexconv.network.program_steps import BLOCKS, NCHW, Operand
from hexconv.run.given import Given
from hexconv.run.tensors import random_tensors
from hexconv.search import PlannedNetwork, Question
from hexconv.verify import Asked, network, verify_network
from hexconv.verify.network import Running
from tests.quantisers.judge import Finding

REFUSED_BY_RUNTIME = "ONNX Runtime refuses"


def _in_numpy(run: Running, inputs: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray], **_: bool) -> Ran:
    """What a right network writes: numpy's answers, in the layouts of the steps."""
    stored = stored_by(run.program, inputs, given)
    steps = enumerate(run.program.steps, 1)
    written = {number: _memory(stored[step.result.buffer], step.result) for number, step in steps}
    ports = run.program.outputs
    return Ran(tuple(as_model(stored[port.operand.buffer], port.shape) for port in ports), None, written)


def _memory(values: np.ndarray, operand: Operand) -> np.ndarray:
    """The bytes of elements that lie as an operand says; the inverse of `elements_of`."""
    if operand.layout == BLOCKS:
        return packed(BLOCKS, operand.extents).pack(values).reshape(-1).view(np.uint8)
    turned = values.transpose(0, 3, 1, 2) if operand.layout == NCHW else values
    return np.ascontiguousarray(turned.astype(operand.dtype)).reshape(-1).view(np.uint8)


def unplanned(imported: Imported, question: Question) -> PlannedModel:
    """Every chain as one piece, without a plan."""
    members = [
        replace(member, pieces=((member.case, Given(dict(member.weights)).over(random_tensors(member.case.chain))),))
        for member in members_of(imported)
    ]
    return PlannedModel(imported, question, PlannedNetwork((), (), None, 0.0), tuple(members))


def verify_findings(path: Path) -> list[Finding]:
    """What `verify` says against a network whose chains are right; empty if it doesn't differ."""
    try:
        with (
            patch.object(network, "plan", unplanned),
            patch.object(network, "compiled_as_far", lambda _, planned, __: (planned, None)),
            patch.object(network, "write_compiled", lambda *_: None),
            patch.object(Running, "__call__", _in_numpy),
        ):
            verdict = verify_network(path, Asked(Wanted(1 << 22, "llvm")))
    except HexconvError as refusal:
        return [] if REFUSED_BY_RUNTIME in str(refusal) else [Finding("verify", str(refusal))]
    convs = [conv for chain in verdict.chains for conv in chain.convs]
    apart = [f"{conv.node}: {one}" for conv in convs for one in conv.comparisons if not one.holds]
    missing = [f"{conv.node}: not compared: {reason}" for conv in convs for reason in conv.reasons]
    steps = [f"step {step.number}: {step}" for step in verdict.steps if step.answer == "differs"]
    return [Finding("verify", told) for told in (*apart, *missing, *steps)]
