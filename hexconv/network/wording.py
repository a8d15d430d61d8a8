"""Write the steps of a network as statements in C."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from hexconv.network.operand import Operand
from hexconv.network.step import Along, Axis, Blocks, Call, Filters, How, Operation, Resize, Step, Window, moved_bytes
from hexconv.whitelist import Code

BETWEEN = Code(",\n            ")
DEEPER = Code(",\n                ")
"""Between arguments, and between the elements of an array that is one."""


@dataclass(frozen=True)
class Statement:
    """The statement of one step.

    Attributes:
        comment: the comment that says what the step is and which bytes it moves.
        macro: the macro around the call, `CHAIN` or `STEP`, which checks what the call returns.
        call: the text of the call.
    """

    comment: Code
    macro: str
    call: Code


def statements(steps: tuple[Step, ...], names: tuple[str, ...], places: Mapping[str, Code]) -> Iterator[Statement]:
    """Write all steps as statements.

    Args:
        steps: the steps, in order.
        names: the C identifiers of the chains, in the order of their calls.
        places: the address of every buffer, as an expression in C.
    """
    chains = iter(names)
    for number, step in enumerate(steps, 1):
        read, written = moved_bytes(step)
        told = Code("{}: reads {} bytes, writes {}").format(step.node, read, written)
        if isinstance(step, Call):
            name, source, result = next(chains), places[step.sources[0].buffer], places[step.result.buffer]
            call = Code("{0}_run(&context->{0}, {1}, {2})").format(name, source, result)
            yield Statement(Code("{}. the chain {}").format(number, told), "CHAIN", call)
        else:
            arguments = BETWEEN.join([Code("operators->user"), *_arguments(step, places)])
            call = Code("operators->{}({})").format(step.operator, arguments)
            yield Statement(Code("{}. {}, {}").format(number, step.operator, told), "STEP", call)


def _arguments(step: Operation, places: Mapping[str, Code]) -> Iterator[Code]:
    tensors = [_fields(source, places) for source in step.sources]
    if step.operator == "concat":
        lines = DEEPER.join(Code("{{{}}}").format(fields) for fields in tensors)
        yield Code("(const struct hexconv_tensor[]){{\n                {}}}").format(lines)
        yield Code("{}").format(len(tensors))
    else:
        yield from (Code("TENSOR({})").format(fields) for fields in tensors)
    for how in step.how:
        yield _how(how, places)
    yield Code("TENSOR({})").format(_fields(step.result, places))


def _fields(operand: Operand, places: Mapping[str, Code]) -> Code:
    """Return the fields of a `struct hexconv_tensor`, in its order."""
    layout, dtype = (Code("HEXCONV_{}").format(word.upper()) for word in (operand.layout, operand.dtype))
    low, high, scale = map(c_float, (operand.low, operand.high, operand.scale))
    return _listed(places[operand.buffer], dtype, layout, *operand.extents, scale, operand.zero_point, low, high)


def _listed(*values: object) -> Code:
    return Code(", ").join(map(Code.escape, values))


def _how(how: How, places: Mapping[str, Code]) -> Code:
    """Write one entry of an operation's `how` as arguments in C."""
    if isinstance(how, Along):
        return _listed(how.axis)
    if isinstance(how, Blocks):
        return _listed(how.size, int(how.channels_first))
    if isinstance(how, Window):
        sizes = (*how.kernel, *how.stride, *how.dilation, *how.padding, int(how.counts_padding))
        return Code("WINDOW({})").format(_listed(*sizes))
    if isinstance(how, Resize):
        return Code("RESIZE({}, {})").format(_axis(how.rows, places), _axis(how.columns, places))
    return _filters(how, places)


def _axis(axis: Axis, places: Mapping[str, Code]) -> Code:
    return _listed(places[axis.first], places[axis.part])


def _filters(how: Filters, places: Mapping[str, Code]) -> Code:
    biases = (places[name] if name else "NULL" for name in (how.sums_bias, how.real_bias))
    elements, dtype = places[how.elements], Code("HEXCONV_{}").format(how.dtype.upper())
    fields = _listed(elements, dtype, *how.shape, how.groups, places[how.scales], how.scale_count, *biases)
    return Code("FILTERS({})").format(fields)


def c_float(value: float) -> Code:
    """Return a float32 as a C literal that is exactly equal.

    >>> print(c_float(0.1), c_float(2.0), c_float(float("-inf")))
    0x1.99999a0000000p-4f 0x1.0000000000000p1f -FLT_MAX
    """
    if abs(value) == inf:
        return Code("FLT_MAX") if value > 0 else Code("-FLT_MAX")
    return Code.escape(f"{float(np.float32(value)).hex()}f".replace("+", ""))
