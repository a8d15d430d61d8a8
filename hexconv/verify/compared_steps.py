"""Hold every step of a program against numpy on what it read in the run, and against ONNX Runtime on its own inputs.

Steps are judged one by one: numpy computes each out of the tensors that the run had before it, so that one wrong step
does not make those behind it wrong. Beside ONNX Runtime, an operator's element is float32's rounding where ONNX
Runtime's lies as near to the real number that numpy computes as sums of so many terms can be off in float32.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hexconv.compute import magnitude
from hexconv.compute.reference import added
from hexconv.errors import Unsupported
from hexconv.layout import packed
from hexconv.model.conv_unit import Joined
from hexconv.model.refused import Refused
from hexconv.network.answer import reals_of, result_of
from hexconv.network.elements import elements_of, nhwc, seen_by
from hexconv.network.operator_table import OPERATORS
from hexconv.network.pairs import ADD
from hexconv.network.program_run import Ran
from hexconv.network.program_steps import (
    BLOCKS,
    OTHER,
    Call,
    Operand,
    Operation,
    Other,
    Program,
    Step,
)
from hexconv.run.check import ROUNDING_OF_A_SUM, tolerance_of
from hexconv.run.tensors import Array
from hexconv.spec import Chain
from hexconv.verify.runtime import Values, Whole
from hexconv.verify.verdict import HALF_OF_UINT16, Comparison, StepVerdict

ROUNDINGS = 16
"""How many times an operator rounds besides the terms that it adds up: scales, biases, a division."""
TIE = 1e-6
"""A quotient this near to a half may be rounded either way."""


def tensors_of(program: Program) -> dict[str, str]:
    """Return the model's tensor that each buffer of a program has, by the buffer's name; other buffers have none."""
    ports = {port.operand.buffer: port.name for port in (*program.inputs, *program.outputs)}
    results = [step.result.buffer for step in program.steps]
    return {**{name: name for name in results}, **ports}


def given_to(program: Program, found: Values) -> dict[str, Array]:
    """Return what the steps write that hexconv has no operator for, logical NHWC by buffer: ONNX Runtime's tensors."""
    tensors = tensors_of(program)
    return {step.result.buffer: in_program(found[tensors[step.result.buffer]], step.result) for step in program.others}


def check_given(model: str, program: Program, found: Values) -> None:
    """Check that what a run takes from ONNX Runtime has as many elements there as the model's shapes say.

    Args:
        model: the name of its file.
        program: the steps.
        found: ONNX Runtime's tensors by name.

    Raises:
        Unsupported: a step has other sizes in ONNX Runtime.
    """
    tensors, told = tensors_of(program), []
    for step in program.others:
        elements, wanted = found[tensors[step.result.buffer]].size, prod(step.result.extents)
        if elements != wanted:
            left = step.told(Other)
            why = f"ONNX Runtime gives it {elements} elements, the model's shapes {wanted}; correct these shapes"
            told.append(f"{left.op} {step.node}: {left.reason or why}")
    if told:
        raise Unsupported(f"{model}: {'; '.join(dict.fromkeys(told))}")


def in_program(tensor: Array, operand: Operand) -> Array:
    """Turn a tensor of the model into logical NHWC, as the program has it: its int16 may be the model's uint16."""
    if tensor.dtype == np.uint16 and operand.dtype == "int16":
        tensor = (tensor.astype(np.int32) - HALF_OF_UINT16).astype(np.int16)
    return nhwc(tensor, operand)


@dataclass(frozen=True)
class Judge:
    """What steps are held against.

    Attributes:
        program: the steps.
        inputs: the model's inputs by name.
        found: ONNX Runtime's tensors by name.
        whole: the model, to ask ONNX Runtime again.
    """

    program: Program
    inputs: Values
    found: Values
    whole: Whole

    def verdicts(self, ran: Ran | None, reason: str = "") -> Iterator[StepVerdict]:
        """Yield the verdict on each step.

        Args:
            ran: what the run gave; None where there was none.
            reason: why there was none.
        """
        tensors = tensors_of(self.program)
        start = {port.operand.buffer: nhwc(self.inputs[port.name], port.operand) for port in self.program.inputs}
        read, theirs = dict(start), dict(start)
        for number, step in enumerate(self.program.steps, 1):
            verdict = StepVerdict(number, step.operator if isinstance(step, Operation) else "chain", step.node)
            packets = None if ran is None or ran.step_packets is None else int(ran.step_packets[number - 1].sum())
            buffer = step.result.buffer
            tensor = tensors[buffer] if self._has(tensors[buffer], step.result) else ""
            verdict = replace(verdict, tensor=tensor, packets=packets, reason=reason)
            memory = ran.written[number] if ran and ran.written else None
            if isinstance(step, Operation) and step.operator == OTHER:
                left = step.told(Other)
                theirs[buffer] = read[buffer] = in_program(self.found[tensors[buffer]], step.result)
                why = left.reason or f"no operator computes {left.op}"
                yield replace(verdict, operator="chain" if left.op == "chain" else left.op, reason=why)
                continue
            if memory is not None:
                verdict = replace(verdict, run=_run(step, memory, read, self.program.constants))
                read[buffer] = elements_of(memory, step.result)
            if tensor:
                theirs[buffer], made = in_program(self.found[tensor], step.result), theirs
                if isinstance(step, Operation):
                    verdict = replace(verdict, alone=self._alone(step, tensor, made))
                if memory is not None:
                    apart = Comparison.of("ONNX Runtime", read[buffer], theirs[buffer])
                    verdict = replace(verdict, in_network=apart)
            else:
                theirs[buffer] = result_of(step, theirs, self.program.constants)
            yield verdict

    def _has(self, tensor: str, operand: Operand) -> bool:
        """Whether ONNX Runtime gives a tensor with the same elements."""
        if tensor not in self.found:
            return False
        theirs = self.found[tensor]
        is_same = str(theirs.dtype) == operand.dtype or (str(theirs.dtype), operand.dtype) == ("uint16", "int16")
        return is_same and theirs.size == prod(operand.extents)

    def _alone(self, step: Operation, tensor: str, theirs: Mapping[str, Array]) -> Comparison:
        """Compare an operator by numpy with ONNX Runtime on ONNX Runtime's inputs; asked again, node by node."""
        made = result_of(step, theirs, self.program.constants)
        one = self._beside(step, made, theirs, self.found[tensor])
        if one.holds:
            return one
        known = {name: value for name, value in {**self.inputs, **self.found}.items() if name != tensor}
        try:
            again = self.whole.computed([tensor], known, fuses=False)[tensor]
        except Refused:
            return one
        unfused = self._beside(step, made, theirs, again)
        return unfused if unfused.holds else one

    def _beside(self, step: Operation, made: Array, theirs: Mapping[str, Array], wanted: Array) -> Comparison:
        other = in_program(wanted, step.result)
        if np.array_equal(made, other):
            return Comparison("ONNX Runtime", made.size)
        return Comparison.of("ONNX Runtime", made, other, within_float32(step, other, theirs, self.program.constants))


def of_add(chain: Chain, index: int, own: str, joined: Joined, found: Values) -> Comparison:
    """Compare the Add of conv `index`, by numpy on ONNX Runtime's tensors, with the sum that ONNX Runtime has.

    Args:
        chain: the chain.
        index: the conv, from 0.
        own: the tensor of the conv's own codes.
        joined: the Add.
        found: ONNX Runtime's tensors by name.
    """
    shape, (least, most) = chain.shapes[index + 1], joined.add(0).codes(chain.dtype)
    zeros = (chain.own_zero_point(index), joined.other_zero_point, joined.zero_point)
    one, other, total = (
        Operand(name, shape, chain.dtype, scale=scale, zero_point=zero)
        for name, scale, zero in zip((own, joined.other, joined.result), joined.scales, zeros, strict=True)
    )
    low, high = ((end - total.zero_point) * total.scale for end in (least, most))
    step = Operation(ADD, own, (one, other), replace(total, low=low, high=high))
    stored = {operand.buffer: in_program(found[operand.buffer], operand) for operand in (one, other, total)}
    made, theirs = added(chain, index, stored[one.buffer], stored[other.buffer]), stored[total.buffer]
    return Comparison.of("Add", made, theirs, within_float32(step, theirs, stored, {}))


def _run(step: Step, memory: Array, read: Mapping[str, Array], constants: Mapping[str, Array]) -> Comparison:
    """Compare what a step wrote with numpy, on what it read in the run; a fringe that is not zero differs."""
    found, wanted = elements_of(memory, step.result), result_of(step, read, constants)
    allowed = None
    if isinstance(step, Call) and not step.case.chain.is_integer:
        chain, tensors = step.case.chain, replace(step.weights, image=seen_by(step, read)[0])
        relative, absolute = tolerance_of(chain.dtype, chain.longest_sum)
        exact = np.abs(wanted.astype(np.float64))
        size = max(float(exact.max(initial=0)), magnitude(chain, *tensors.logical))
        allowed = np.abs(found.astype(np.float64) - wanted) <= absolute * size + relative * exact
    compared = Comparison.of("run", found, wanted, allowed)
    if step.result.layout != BLOCKS:
        return compared
    layout = packed(BLOCKS, step.result.extents)
    elements = memory.view(step.result.dtype).reshape(layout.physical_shape)
    dirty = np.count_nonzero((elements != 0) & ~layout.pack(np.ones(step.result.extents, bool)))
    return replace(compared, differing=compared.differing + int(dirty))


def within_float32(
    step: Operation, theirs: Array, stored: Mapping[str, Array], constants: Mapping[str, Array]
) -> Array:
    """For each element of ONNX Runtime's, whether float32 can give it where numpy computes the real number exactly."""
    result = step.result
    reals = np.clip(reals_of(step, stored, constants).astype(np.float64), result.low, result.high)
    error = _error(step, stored, constants)
    if result.is_float:
        return np.abs(theirs.astype(np.float64) - reals) <= error
    ends = np.iinfo(result.dtype)
    quotients = reals / np.float64(np.float32(result.scale)) + result.zero_point
    reach = 0.5 + TIE + error / np.float64(np.float32(result.scale))
    lowest, highest = np.clip(quotients - reach, ends.min, ends.max), np.clip(quotients + reach, ends.min, ends.max)
    return (theirs >= np.ceil(lowest - TIE)) & (theirs <= np.floor(highest + TIE))


def _error(step: Operation, stored: Mapping[str, Array], constants: Mapping[str, Array]) -> float:
    """How far a real number of an operator may be off in float32: its terms, times the largest sum of their sizes."""
    seen = seen_by(step, {**constants, **stored})
    sizes = [_largest(values, source) for values, source in zip(seen, step.sources, strict=True)]
    terms, size = OPERATORS[step.operator].terms(step, sizes, constants)
    return (terms + ROUNDINGS) * ROUNDING_OF_A_SUM * size


def _largest(values: Array, source: Operand) -> float:
    """The largest size of the real numbers that elements stand for."""
    reals = (values.astype(np.float64) - source.zero_point) * source.scale
    return float(np.abs(reals).max(initial=0))
