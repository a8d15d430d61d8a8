"""Write the steps of a network as statements in C."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from hexconv.network.operand import Operand
from hexconv.network.step import Along, Axis, Blocks, Call, Filters, How, Operation, Resize, Step, Window, moved_bytes

INDENT = " " * 12


@dataclass(frozen=True)
class Statement:
    """The statement of one step.

    Attributes:
        comment: the comment that says what the step is and which bytes it moves.
        macro: the macro around the call, `CHAIN` or `STEP`, which checks what the call returns.
        call: the text of the call.
    """

    comment: str
    macro: str
    call: str


def statements(steps: tuple[Step, ...], names: tuple[str, ...], places: Mapping[str, str]) -> Iterator[Statement]:
    """Write all steps as statements.

    Args:
        steps: the steps, in order.
        names: the C identifiers of the chains, in the order of their calls.
        places: the address of every buffer, as an expression in C.
    """
    chains = iter(names)
    for number, step in enumerate(steps, 1):
        read, written = moved_bytes(step)
        told = f"reads {read} bytes, writes {written}"
        if isinstance(step, Call):
            name, source, result = next(chains), places[step.sources[0].buffer], places[step.result.buffer]
            call = f"{name}_run(&context->{name}, {source}, {result})"
            yield Statement(f"{number}. the chain {_plain(step.node)}: {told}", "CHAIN", call)
        else:
            arguments = ["operators->user", *_arguments(step, places)]
            call = f"operators->{step.operator}({f',{chr(10)}{INDENT}'.join(arguments)})"
            yield Statement(f"{number}. {step.operator}, {_plain(step.node)}: {told}", "STEP", call)


def _arguments(step: Operation, places: Mapping[str, str]) -> Iterator[str]:
    tensors = [_fields(source, places) for source in step.sources]
    if step.operator == "concat":
        lines = f",{chr(10)}{INDENT}    ".join(f"{{{fields}}}" for fields in tensors)
        yield f"(const struct hexconv_tensor[]){{\n{INDENT}    {lines}}}"
        yield str(len(tensors))
    else:
        yield from (f"TENSOR({fields})" for fields in tensors)
    for how in step.how:
        yield _how(how, places)
    yield f"TENSOR({_fields(step.result, places)})"


def _fields(operand: Operand, places: Mapping[str, str]) -> str:
    """Return the fields of a `struct hexconv_tensor`, in its order."""
    layout, dtype = (f"HEXCONV_{word.upper()}" for word in (operand.layout, operand.dtype))
    sizes = ", ".join(map(str, operand.extents))
    ends = f"{c_float(operand.low)}, {c_float(operand.high)}"
    return (
        f"{places[operand.buffer]}, {dtype}, {layout}, {sizes}, {c_float(operand.scale)}, {operand.zero_point}, {ends}"
    )


def _how(how: How, places: Mapping[str, str]) -> str:
    """Write one entry of an operation's `how` as arguments in C."""
    if isinstance(how, Along):
        return str(how.axis)
    if isinstance(how, Blocks):
        return f"{how.size}, {int(how.channels_first)}"
    if isinstance(how, Window):
        sizes = (*how.kernel, *how.stride, *how.dilation, *how.padding, int(how.counts_padding))
        return f"WINDOW({', '.join(map(str, sizes))})"
    if isinstance(how, Resize):
        return f"RESIZE({_axis(how.rows, places)}, {_axis(how.columns, places)})"
    return _filters(how, places)


def _axis(axis: Axis, places: Mapping[str, str]) -> str:
    return f"{places[axis.first]}, {places[axis.part]}"


def _filters(how: Filters, places: Mapping[str, str]) -> str:
    sizes = ", ".join(map(str, (*how.shape, how.groups)))
    biases = ", ".join(places[name] if name else "NULL" for name in (how.sums_bias, how.real_bias))
    elements = f"{places[how.elements]}, HEXCONV_{how.dtype.upper()}"
    return f"FILTERS({elements}, {sizes}, {places[how.scales]}, {how.scale_count}, {biases})"


def c_float(value: float) -> str:
    """Return a float32 as a C literal that is exactly equal.

    >>> c_float(0.1), c_float(float("-inf"))
    ('0x1.99999a0000000p-4f', '-FLT_MAX')
    """
    if abs(value) == inf:
        return "FLT_MAX" if value > 0 else "-FLT_MAX"
    return f"{float(np.float32(value)).hex()}f"


def _plain(name: str) -> str:
    """Return a name of the model made safe for a comment in C.

    >>> _plain("a */ b")
    'a * b'
    """
    return "".join(c for c in name.replace("*/", "*") if c.isprintable() and c.isascii() and c not in '"\\\\')
