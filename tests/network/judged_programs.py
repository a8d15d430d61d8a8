"""Judge drawn programs: each step by numpy beside ONNX Runtime and ONNX's evaluator, on what both have before it.

ONNX Runtime computes each step node by node and optimised; the evaluator in float64. An element is wrong where neither
float32's error nor what the import says explains a difference from either, node by node.
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from hexconv.errors import HexconvError
from hexconv.model import import_model
from hexconv.model.refused import Refused
from hexconv.network import Wanted
from hexconv.network.answer import result_of, stored_by
from hexconv.network.elements import as_model
from hexconv.network.planned_model import PlannedModel
from hexconv.network.program_steps import OTHER, Call, Operation, Other, Program, Step, is_codes
from hexconv.verify.compared_steps import given_to, in_program, tensors_of, within_float32
from hexconv.verify.network import inner_tensors, judged, step_tensors
from hexconv.verify.runtime import Whole
from hexconv.verify.verdict import Comparison
from tests.model.drawn import Drawn
from tests.quantisers.definition import in_double, meaning
from tests.quantisers.verified import unplanned

Array = np.ndarray
NODE_BY_NODE, OPTIMISED, EVALUATOR = "ONNX Runtime node by node", "ONNX Runtime optimised", "ONNX's evaluator"
WITNESSES = (NODE_BY_NODE, OPTIMISED, EVALUATOR)
QUANTISERS = {"QuantizeLinear", "DequantizeLinear"}
SAME = {"Identity", "Dropout", "Cast", "Constant"}
"""Operators that change no number."""
CONV = frozenset(["Conv"])
MOST = 10**6
REFUSALS = re.compile(
    "starts behind the image|lies in its padding alone|reads float32|its mode is edge|the most here"
    "|it takes one tensor here"
)
"""Why a drawn operator may be left to the caller."""
FAULTS = {"AveragePool", "MaxPool", "QLinearAveragePool", "ConvTranspose", "Floor", "Ceil", "Round", "ThresholdedRelu"}
"""Of which ONNX's evaluator has faults (ceil_mode, auto_pad, groups), or where float32 decides the side of a step."""


@dataclass(frozen=True)
class Apart:
    """How far numpy's tensor is from that of a witness.

    Attributes:
        operators: the operators of ONNX that made it.
        witness: who made the other.
        elements: how many codes were compared; 0 where the tensor holds floats.
        differing: how many of them differ.
        largest: the largest difference, in codes.
        wrong: how many elements differ by more than float32's error.
        told: what differs, in words.
    """

    operators: frozenset[str]
    witness: str
    elements: int = 0
    differing: int = 0
    largest: int = 0
    wrong: int = 0
    told: str = ""


def judged_program(drawn: Drawn, folder: Path) -> Iterator[Apart]:
    """Judge all steps of a drawn model, and its outputs; the model is kept in the folder.

    Raises:
        HexconvError: hexconv refuses the model, or ONNX Runtime does.
    """
    path = folder / "program.onnx"
    onnx.save(drawn.model, path)
    imported = import_model(path)
    planned = unplanned(imported, Wanted(1 << 22, "llvm").question)
    whole = Whole.load(path, None)
    tapped = [*inner_tensors(imported), *step_tensors(planned.as_read, imported.graph)]
    tapped += step_tensors(planned.open_program, imported.graph)
    found = {**drawn.feed, **whole.tapped(tapped, drawn.feed)}
    far = {
        each.result: sum(1 + sum(one.off_steps or 0.0 for one in unit.inexact) for unit in each.run.units)
        for each in planned.members
    }
    yield from _Steps(planned.as_read, whole, found, drawn.feed, far).all()
    for member in planned.members:
        for conv in judged(imported.graph, whole, member, found) if member.pieces else ():
            are_codes = found[conv.tensor].dtype.kind in "iu"
            yield from map(partial(_of_conv, conv.node, are_codes), conv.comparisons)
    yield from _simplified(planned, found, drawn.feed)


def _of_conv(node: str, are_codes: bool, one: Comparison) -> Apart:
    """A conv by numpy beside its definition in float64, or beside ONNX Runtime node by node."""
    if one.rule != "ONNX Runtime" or not are_codes:
        return Apart(CONV, EVALUATOR, wrong=one.differing, told=f"{node}: {one}")
    differing = one.rounded + one.differing
    return Apart(
        CONV, NODE_BY_NODE, one.values, differing, int(min(one.largest, MOST)), one.differing, f"{node}: {one}"
    )


def _simplified(planned: PlannedModel, found: Mapping[str, Array], feed: Mapping[str, Array]) -> Iterator[Apart]:
    """Hold the program as it is built against the steps as they are read: not a bit may differ."""
    outputs = []
    for program in (planned.as_read, planned.open_program):
        stored = stored_by(program, feed, given_to(program, found))
        outputs.append([as_model(stored[port.operand.buffer], port.shape) for port in program.outputs])
    for port, one, other in zip(planned.open_program.outputs, *outputs, strict=True):
        differing = 0 if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else int(np.sum(one != other))
        told = f"{port.name}: other than before it was simplified"
        yield Apart(frozenset(["whole"]), NODE_BY_NODE, wrong=differing, told=told)


@dataclass(frozen=True)
class _Steps:
    """The steps of a program beside a model that ONNX Runtime has run."""

    program: Program
    whole: Whole
    found: Mapping[str, Array]
    feed: Mapping[str, Array]
    far_on_average: Mapping[str, float]

    def all(self) -> Iterator[Apart]:
        program, tensors = self.program, tensors_of(self.program)
        theirs = {port.operand.buffer: in_program(self.feed[port.name], port.operand) for port in program.inputs}
        given = given_to(program, self.found)
        known = dict(self.feed)
        for step in program.steps:
            tensor = tensors[step.result.buffer]
            if isinstance(step, Operation) and step.operator == OTHER:
                left = step.told(Other)
                if left.op not in ("chain", "Conv") and not REFUSALS.search(left.reason):
                    told = f"{step.node}: refused: {left.reason}"
                    yield Apart(frozenset([left.op]), NODE_BY_NODE, wrong=1, told=told)
                theirs[step.result.buffer], known[tensor] = given[step.result.buffer], self.found[tensor]
                continue
            if self._has(tensor, step):
                yield from self._beside(step, tensor, theirs, known)
            if self._has(tensor, step):
                theirs[step.result.buffer] = in_program(self.found[tensor], step.result)
                known[tensor] = self.found[tensor]
            else:
                theirs[step.result.buffer] = result_of(step, theirs, program.constants)

    def _has(self, tensor: str, step: Step) -> bool:
        theirs = self.found.get(tensor)
        return (
            theirs is not None
            and str(theirs.dtype) == step.result.dtype
            and theirs.size == np.prod(step.result.extents)
        )

    def _beside(
        self, step: Step, tensor: str, theirs: Mapping[str, Array], known: Mapping[str, Array]
    ) -> Iterator[Apart]:
        """Compare one step with every witness that computes it."""
        made = result_of(step, theirs, self.program.constants)
        own = CONV if isinstance(step, Call) else self._operators(step, tensor, known)
        for witness in WITNESSES:
            if (value := self._computed(witness, tensor, known)) is None or value.shape != self.found[tensor].shape:
                continue
            other = in_program(value, step.result)
            if isinstance(step, Operation) or witness == OPTIMISED:
                yield self._apart(step, own, witness, made, other, theirs)
                continue
            # Conv by conv elsewhere; here that the call reads and writes the tensors of its convs.
            far = float(np.abs(made.astype(np.float64) - other).mean())
            near = self.far_on_average[tensor] + (0.0 if is_codes(step.result) else 1e-3 * float(np.abs(other).mean()))
            yield Apart(own, witness, wrong=made.size * (far > near), told=f"{step.node}: {far} on the average")

    def _operators(self, step: Operation, tensor: str, known: Mapping[str, Array]) -> frozenset[str]:
        """The operator of a step's node; of a quantiser, those between it and known tensors, if there are any."""
        nodes = self.whole.needed([tensor], known)
        operators = frozenset(node.op for node in nodes)
        own = frozenset(node.op for node in nodes if node.name == step.node)
        return (own - QUANTISERS) or (operators - QUANTISERS - SAME) or own or frozenset(["whole"])

    def _apart(
        self, step: Step, own: frozenset[str], witness: str, made: Array, other: Array, theirs: Mapping[str, Array]
    ) -> Apart:
        with np.errstate(invalid="ignore"):
            differs = ~((made == other) | ((made != made) & (other != other)))
            far = np.abs(made.astype(np.float64) - other)
        wrong, told = np.zeros_like(differs), ""
        if differs.any() and witness != OPTIMISED and isinstance(step, Operation):
            wrong = differs & ~within_float32(step, other, theirs, self.program.constants)
            at = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(far, nan=np.inf), -1))), far.shape)
            told = f"{step.node}, {witness}: {made[at]} at {tuple(map(int, at))}, where it has {other[at]}"
        if not is_codes(step.result):
            return Apart(own, witness, 0, 0, 0, int(wrong.sum()), told)
        return Apart(own, witness, made.size, int(differs.sum()), int(far.max(initial=0)), int(wrong.sum()), told)

    def _computed(self, witness: str, tensor: str, known: Mapping[str, Array]) -> Array | None:
        """What a witness makes of a tensor; None where it can't. A step may copy what is known to another layout."""
        if tensor in known:
            return known[tensor]
        if witness != EVALUATOR:
            try:
                return self.whole.computed([tensor], known, fuses=witness == OPTIMISED)[tensor]
            except (Refused, HexconvError):
                return None
        model, reads = self.whole.part([tensor], known)
        if any(node.op_type in FAULTS for node in model.graph.node):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                return meaning(in_double(model), {name: known[name] for name in reads}, [tensor])[tensor]
        except (ValueError, IndexError, RuntimeError, NotImplementedError, TypeError):
            return None  # what it doesn't implement
