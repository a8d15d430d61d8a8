"""Compute a network in numpy, step by step: chains by their definition, operators by ONNX's."""

from collections.abc import Mapping

from hexconv.compute import reference
from hexconv.network.elements import Stored, as_model, nhwc, seen_by, stored_as
from hexconv.network.operator_table import OPERATORS
from hexconv.network.program_steps import (
    OTHER,
    Call,
    Operation,
    Program,
    Step,
)
from hexconv.run.tensors import Array


def answer(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute the outputs of a network, in the model's shapes, by name.

    Args:
        program: the steps of the network.
        inputs: the inputs in the model's shapes, by name.
    """
    stored = stored_by(program, inputs)
    return {port.name: as_model(stored[port.operand.buffer], port.shape) for port in program.outputs}


def stored_by(program: Program, inputs: Mapping[str, Array], given: Stored | None = None) -> dict[str, Array]:
    """Compute what every buffer of a network holds, logical NHWC, by its name.

    Args:
        program: the steps of the network.
        inputs: the inputs in the model's shapes, by name.
        given: what the steps write that hexconv has no operator for, by buffer.
    """
    stored = {port.operand.buffer: nhwc(inputs[port.name], port.operand) for port in program.inputs}
    for step in program.steps:
        is_given = isinstance(step, Operation) and step.operator == OTHER
        found = (given or {})[step.result.buffer] if is_given else result_of(step, stored, program.constants)
        stored[step.result.buffer] = found
    return stored


def result_of(step: Step, stored: Mapping[str, Array], constants: Mapping[str, Array]) -> Array:
    """Compute what one step writes, logical NHWC.

    Args:
        step: the step.
        stored: the tensors that it reads, by buffer.
        constants: the constants that it reads, by name.
    """
    seen = seen_by(step, {**constants, **stored})
    if isinstance(step, Call):
        tensors = step.weights
        made = reference(step.case.chain, seen[0], tensors.filters, tensors.biases, tensors.vectors)
        return made.astype(step.result.dtype)
    return stored_as(OPERATORS[step.operator].reals(step, seen, constants), step.result)


def reals_of(step: Operation, stored: Mapping[str, Array], constants: Mapping[str, Array]) -> Array:
    """Compute the real numbers that an operator makes, before they are clamped and stored; arguments of `result_of`."""
    return OPERATORS[step.operator].reals(step, seen_by(step, {**constants, **stored}), constants)
