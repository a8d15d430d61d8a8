"""What a network does, one step after the other: calls of chains, and operators between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from hexconv.network.operand import Operand
from hexconv.run.tensors import Array, Tensors
from hexconv.spec import Case

Constants = Mapping[str, Array]


@dataclass(frozen=True)
class Window:
    """Which elements a pool looks at, or where a transposed conv puts them.

    Attributes:
        kernel: rows and columns.
        stride: likewise.
        dilation: likewise.
        padding: top, left, bottom, right.
        counts_padding: whether an average counts what lies in the padding, as zeros.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    counts_padding: bool = False


@dataclass(frozen=True)
class Filters:
    """Weights of a matrix product or a transposed conv, [outputs, rows, columns, inputs of a group].

    Attributes:
        elements: name of the constant; where these are integers, their zero points are subtracted already.
        dtype: int8, int16 or float32.
        scales: name of the constant: one scale, or one for each output.
        scale_count: how many.
        shape: of the elements.
        groups: of inputs.
        sums_bias: name of int32 in units of the sums, or nothing.
        real_bias: name of float32, or nothing.
    """

    elements: str
    dtype: str
    scales: str
    scale_count: int
    shape: tuple[int, int, int, int]
    groups: int = 1
    sums_bias: str = ""
    real_bias: str = ""


@dataclass(frozen=True)
class Axis:
    """Where one axis of a resized image comes from, name by name of constants, one value for each of its places.

    Attributes:
        first: place in the source, int32.
        part: how much of the next place there is in it, float32.
    """

    first: str
    part: str


@dataclass(frozen=True)
class Resize:
    """Both axes."""

    rows: Axis
    columns: Axis


@dataclass(frozen=True)
class Blocks:
    """How channels become pixels.

    Attributes:
        size: rows and columns of pixels that a pixel becomes.
        channels_first: whether the pixels of a channel lie side by side in depth (CRD), or channels (DCR).
    """

    size: int
    channels_first: bool


@dataclass(frozen=True)
class Along:
    """The axis of a concatenation, 0 to 3 for N, H, W, C."""

    axis: int


How = Window | Filters | Resize | Blocks | Along
Kind = TypeVar("Kind", Window, Filters, Resize, Blocks, Along)


@dataclass(frozen=True)
class Operation:
    """One call of an operator.

    Attributes:
        operator: name of the callback.
        node: the name in the model.
        sources: what it reads.
        result: what it writes.
        how: all else that it has to know.
    """

    operator: str
    node: str
    sources: tuple[Operand, ...]
    result: Operand
    how: tuple[How, ...] = ()

    def told(self, kind: type[Kind]) -> Kind:
        """What it says of its operator, of one kind."""
        return next(how for how in self.how if isinstance(how, kind))


@dataclass(frozen=True)
class Call:
    """One call of a chain, or of a piece of one.

    Attributes:
        case: chain and plan.
        weights: its tensors, by the names of a run.
        sources: what it reads, one tensor.
        result: what it writes.
    """

    case: Case
    weights: Tensors
    sources: tuple[Operand, ...]
    result: Operand

    @property
    def node(self) -> str:
        """The name of the case."""
        return self.case.name


Step = Operation | Call


@dataclass(frozen=True)
class Port:
    """What goes into a network, or comes out of it.

    Attributes:
        name: in the model.
        shape: in the model.
        operand: how it lies in the caller's memory.
    """

    name: str
    shape: tuple[int, ...]
    operand: Operand


@dataclass(frozen=True)
class Program:
    """A network.

    Attributes:
        steps: in order.
        inputs: in the model's order.
        outputs: likewise.
        constants: what operators read besides, by name.
    """

    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Constants = field(repr=False)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Of chains."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the callbacks that it needs."""
        return tuple(sorted({step.operator for step in self.steps if isinstance(step, Operation)}))

    @property
    def outside(self) -> frozenset[str]:
        """Buffers that are the caller's."""
        return frozenset(port.operand.buffer for port in (*self.inputs, *self.outputs))


def moved_bytes(step: Step) -> tuple[int, int]:
    """What a step reads and writes of tensors."""
    return sum(source.bytes for source in step.sources), step.result.bytes
