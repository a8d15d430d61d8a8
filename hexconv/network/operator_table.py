"""All operators between chains: their definitions in numpy, integer forms, and the ONNX nodes that they compute.

An operator stands in one file: how its nodes are read, what it means, its integer form, how float32 rounds it. Its C
is a callback of `hexconv_operators.h`.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from hexconv.network import code_functions, element_moves, matrix_products, pairs, pools
from hexconv.network.elements import Operator
from hexconv.network.program import Table
from hexconv.network.program_steps import (
    BLOCKS,
    OTHER,
    Constants,
    Operation,
    Program,
)

_PARTS = (code_functions, pairs, pools, matrix_products, element_moves)
OPERATORS: dict[str, Operator] = {name: operator for part in _PARTS for name, operator in part.OPERATORS.items()}
"""All operators that C computes, by the name of their callback."""
TABLE: Table = {op: read for part in _PARTS for op, read in part.NODES.items()}
"""All operators of ONNX that a network may have between its chains, each with the function that makes it a step."""


def with_integers(program: Program) -> Program:
    """Give each operation's result the name of a constant that holds its integer form, where it has one."""
    constants, steps, names = dict(program.constants), [], dict[bytes, str]()
    taken = {operand.buffer for step in program.steps for operand in (*step.sources, step.result)} | constants.keys()
    for step in program.steps:
        form = form_of(step, program.constants) if isinstance(step, Operation) else None
        if form is not None:
            name = names.setdefault(form, _free(f"integers:{len(names)}", taken))
            constants[name] = np.frombuffer(form, np.uint8)
            step = replace(step, result=replace(step.result, integers=name))
        steps.append(step)
    return replace(program, steps=tuple(steps), constants=constants)


def _free(name: str, taken: Collection[str]) -> str:
    """Return the name, or a longer one that no tensor has."""
    return name if name not in taken else _free(f"{name}'", taken)


def form_of(step: Operation, constants: Constants) -> bytes | None:
    """Return the integer form of an operation as it lies in memory; None where it has none."""
    tensors = [*step.sources, step.result]
    if step.operator == OTHER or any(
        operand.layout == BLOCKS or operand.dtype not in EIGHT_BITS for operand in tensors
    ):
        return None
    if not 2.0**-60 < step.result.scale < 2.0**60:
        return None
    return OPERATORS[step.operator].form(step, constants)


EIGHT_BITS = ("uint8", "int8", "float32")
