"""Steps of a network: calls of chains, operators, and their operands: memory, layout, meaning of elements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, prod
from operator import attrgetter
from typing import TypeVar

import numpy as np

from hexconv.errors import Unsupported
from hexconv.layout import packed
from hexconv.run.tensors import Array, Tensors
from hexconv.spec import Case

Extents = tuple[int, int, int, int]

NHWC = "NHWC"
"""The layout that operators write and chains read."""
NCHW = "NCHW"
"""The layout of a model's inputs and outputs."""
BLOCKS = "NHWC8h8w32c"
"""The layout that chains of float32 write."""


@dataclass(frozen=True)
class Operand:
    """Elements of a buffer. They are real numbers, or codes that stand for `(code - zero_point) * scale`.

    Attributes:
        buffer: the name of the memory that it lies in.
        extents: its logical sizes N, H, W, C; a matrix has its rows in N and its columns in C.
        dtype: the dtype of its elements.
        layout: its layout, `NHWC`, `NCHW` or `NHWC8h8w32c`.
        scale: the real number that a step of one code stands for, a float32.
        zero_point: the code that stands for 0.
        low: the least real value that is stored; lower values are raised to it.
        high: the largest real value that is stored; higher values are lowered to it.
        integers: of a result, the name of a constant with its integer form; empty if there is none.
    """

    buffer: str
    extents: Extents
    dtype: str
    layout: str = NHWC
    scale: float = 1.0
    zero_point: int = 0
    low: float = -inf
    high: float = inf
    integers: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of its memory, fringe included."""
        physical = packed(BLOCKS, self.extents).physical_shape if self.layout == BLOCKS else self.extents
        return prod(physical) * np.dtype(self.dtype).itemsize

    @property
    def is_float(self) -> bool:
        """Whether its elements are real numbers."""
        return self.dtype.startswith("float")

    @property
    def is_one_order(self) -> bool:
        """Whether NCHW and NHWC are the same order of its elements.

        >>> Operand("x", (1, 4, 4, 1), "uint8").is_one_order, Operand("x", (1, 4, 4, 2), "uint8").is_one_order
        (True, False)
        """
        _, rows, columns, channels = self.extents
        return channels == 1 or rows * columns == 1

    @property
    def is_flat(self) -> bool:
        """Whether its elements lie in the order of NCHW, whatever its layout is called."""
        return self.layout == NCHW or (self.layout == NHWC and self.is_one_order)

    def reshaped(self, extents: Extents) -> "Operand":
        """Return the same flat elements under other extents."""
        seen = replace(self, extents=extents, layout=NCHW)
        return replace(seen, layout=NHWC) if seen.is_one_order else seen

    @property
    def as_numbers(self) -> "Operand":
        """Return the same elements read as plain numbers: scale 1, zero point 0, no clamp."""
        return replace(self, scale=1.0, zero_point=0, low=-inf, high=inf)

    @property
    def is_unclamped(self) -> bool:
        """Whether its elements may have any value."""
        return (self.low, self.high) == (-inf, inf)

    @property
    def words(self) -> str:
        """What lies in its memory, in words.

        >>> Operand("x", (1, 4, 4, 1), "uint8", scale=0.5, zero_point=128).words
        'uint8 1x4x4x1 in NHWC of scale 0.5 and zero point 128'
        """
        numbers = (self.scale, self.zero_point) == (1.0, 0)
        meaning = "" if numbers else f" of scale {self.scale:g} and zero point {self.zero_point}"
        return f"{self.dtype} {'x'.join(map(str, self.extents))} in {self.layout}{meaning}"

    def same_codes(self, result: "Operand") -> bool:
        """Whether a result that holds the same real numbers has the same elements."""
        ours, theirs = ((each.dtype, each.scale, each.zero_point) for each in (self, result))
        return ours == theirs and result.is_unclamped

    def meaning(self, scale: float, zero_point: int) -> "Operand":
        """Return the same elements read as codes of this scale and zero point."""
        return replace(self, scale=scale, zero_point=zero_point)


def is_codes(operand: Operand) -> bool:
    """Whether the elements are codes of 8 bits."""
    return operand.dtype in ("uint8", "int8")


def extents_of(shape: tuple[int, ...], rank: int | None = None) -> Extents:
    """Logical N, H, W, C of a model's tensor: of NCHW, NCW or a matrix; any other shape has all elements in C.

    Args:
        shape: the shape of the tensor.
        rank: the rank of the tensor that it is broadcast to, by default its own.

    >>> extents_of((1, 3, 8, 9)), extents_of((2, 10)), extents_of((64, 1, 1), 4), extents_of((6, 4, 2))
    ((1, 8, 9, 3), (2, 1, 1, 10), (1, 1, 1, 64), (6, 1, 2, 4))
    """
    sizes = (1,) * ((rank or len(shape)) - len(shape)) + shape
    if len(sizes) in (3, 4):
        return sizes[0], sizes[2] if len(sizes) == 4 else 1, sizes[-1], sizes[1]
    return (sizes[0], 1, 1, sizes[1]) if len(sizes) == 2 else (1, 1, 1, prod(sizes))


Constants = Mapping[str, Array]


@dataclass(frozen=True)
class Window:
    """Which elements a pool looks at, or where a transposed conv puts them.

    Attributes:
        kernel: its rows and columns.
        stride: the stride along rows and columns.
        dilation: the dilation along rows and columns.
        padding: the padding at the top, left, bottom and right.
        counts_padding: whether an average counts the padding, as zeros.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    counts_padding: bool = False

    def sees_nothing(self, source: Extents, result: Extents) -> bool:
        """Whether some place of the result has a window with no element of the source, so that its mean is none.

        >>> wide = Window((2, 1), (1, 1), (2, 1), (1, 0, 1, 0))
        >>> wide.sees_nothing((1, 1, 1, 1), (1, 1, 1, 1)), wide.sees_nothing((1, 2, 1, 1), (1, 2, 1, 1))
        (True, False)
        """
        axes = zip(self.kernel, self.stride, self.dilation, self.padding, source[1:3], result[1:3], strict=False)
        return any(
            not any(0 <= place * stride - first + tap * apart < size for tap in range(taps))
            for taps, stride, apart, first, size, made in axes
            for place in range(made)
        )


@dataclass(frozen=True)
class Filters:
    """Weights of a matrix product or a transposed conv, [outputs, rows, columns, inputs of a group].

    Attributes:
        elements: the name of their constant; the zero points of integers are subtracted already.
        dtype: their dtype, int8, int16 or float32.
        scales: the name of the constant that holds one scale, or one for each output.
        scale_count: how many scales there are.
        shape: the shape of the elements.
        groups: how many groups the inputs are divided into.
        sums_bias: the name of an int32 bias in units of the sums; empty if there is none.
        real_bias: the name of a float32 bias; empty if there is none.
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
    """Which source rows or columns a resized axis is read from: names of constants that have a value for each place.

    Attributes:
        first: the constant with the place in the source, int32.
        part: the constant with the weight of the next place in the source, float32.
    """

    first: str
    part: str


@dataclass(frozen=True)
class Resize:
    """How an image is resized along both axes."""

    rows: Axis
    columns: Axis


@dataclass(frozen=True)
class Along:
    """The axis along which tensors are concatenated, 0 to 3 for N, H, W, C."""

    axis: int


INPUT = "input"
"""The `op` of an input of the model that C doesn't get."""
OTHER = "other"
"""The operator of a step that no operator here computes: a callback of the caller's own does."""


@dataclass(frozen=True)
class Other:
    """A node, or a chain without a plan, that the caller computes.

    Attributes:
        number: its number among all of these, from 0 on; a node of several results is called once for each.
        op: its ONNX operator, or `chain`.
        output: which of the node's outputs the result is.
        told: its attributes, in words.
        reason: why no operator computes it; empty where there is none of its kind.
    """

    number: int
    op: str
    output: int = 0
    told: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Dimension:
    """A loop over elements of a source and of a result, in steps of elements as they lie in memory.

    Attributes:
        size: how many turns it has.
        source_step: how far the source's element is from that of the turn before.
        result_step: the same of the result.
        places: the name of a constant with the source's elements, int32, in place of steps; empty if there is none.
    """

    size: int
    source_step: int
    result_step: int
    places: str = ""


@dataclass(frozen=True)
class View:
    """Which element of a source each element of a result is.

    Attributes:
        dimensions: loops, the last one innermost.
        source_first: the source's element of the first turn of all loops.
        result_first: the same of the result.
        fill: the real number of the elements that no turn writes; None if there are none.
    """

    dimensions: tuple[Dimension, ...]
    source_first: int = 0
    result_first: int = 0
    fill: float | None = None


@dataclass(frozen=True)
class Map:
    """A function of one number.

    Attributes:
        reals: the name of the constant with what it is of each code, by its byte: float32 [count, 256].
        count: 1, or how many channels there are.
    """

    reals: str
    count: int


@dataclass(frozen=True)
class Powers:
    """A softmax.

    Attributes:
        powers: the name of the constant with e to what 0 to 255 codes stand for, taken off: float32.
        axis: its axis, 0 to 3 for N, H, W, C.
    """

    powers: str
    axis: int


@dataclass(frozen=True)
class Held:
    """The least and the largest real number that a sum may be before it is averaged."""

    low: float
    high: float


How = Window | Filters | Resize | Along | View | Map | Powers | Held | Other
Kind = TypeVar("Kind", Window, Filters, Resize, Along, View, Map, Powers, Held, Other)


@dataclass(frozen=True)
class Operation:
    """One call of an operator.

    Attributes:
        operator: the name of the callback.
        node: the name of its node in the model.
        sources: the tensors that it reads.
        result: the tensor that it writes.
        how: everything else that the operator has to know.
    """

    operator: str
    node: str
    sources: tuple[Operand, ...]
    result: Operand
    how: tuple[How, ...] = ()

    def told(self, kind: type[Kind]) -> Kind:
        """Return the entry of `how` that is of this kind."""
        return next(how for how in self.how if isinstance(how, kind))


_in_memory = attrgetter("dtype", "extents", "layout", "scale", "zero_point")
"""What code of a chain takes for granted of a tensor that it reads or writes."""


@dataclass(frozen=True)
class Call:
    """One call of a chain, or of a piece of one.

    Attributes:
        case: its chain and plan.
        weights: the tensors of its convs, by the names that a run gives them.
        sources: the one tensor that it reads.
        result: the tensor that it writes.

    Raises:
        Unsupported: a tensor lies in memory as something else than what the chain has there.
    """

    case: Case
    weights: Tensors
    sources: tuple[Operand, ...]
    result: Operand

    def __post_init__(self) -> None:
        """Refuse tensors of another dtype, other sizes or another layout: code of chains takes memory as it is."""
        chain, [source] = self.case.chain, self.sources
        wanted = Operand("", chain.input, chain.dtype, chain.input_layout)
        made = Operand("", chain.shapes[-1], chain.output_dtype(len(chain.conv) - 1), chain.output_layout)
        for does, operand, own in (("reads", source, wanted), ("writes", self.result, made)):
            if _in_memory(operand) != _in_memory(own):
                raise Unsupported(
                    f"{self.node} {does} {operand.buffer} as {operand.words}, and its chain {does} {own.words}; "
                    "quantise what its convs read, their filters and what they write, or none of these"
                )

    @property
    def node(self) -> str:
        """The name of the case."""
        return self.case.name


Step = Operation | Call


@dataclass(frozen=True)
class Resident:
    """A tensor that stays in VTCM from the step that writes it to the last that reads it.

    Attributes:
        tensor: the name of its buffer.
        first: the number of the step that writes it, from 1 on.
        last: the number of the last step that reads it.
        offset_bytes: its place in the VTCM of the network.
        bytes: the bytes that it takes, in whole granules of 2 KiB.
    """

    tensor: str
    first: int
    last: int
    offset_bytes: int
    bytes: int


@dataclass(frozen=True)
class Port:
    """An input or an output of a network.

    Attributes:
        name: its name in the model.
        shape: its shape in the model.
        operand: the layout and dtype in which it lies in the caller's memory.
    """

    name: str
    shape: tuple[int, ...]
    operand: Operand


@dataclass(frozen=True)
class Program:
    """All steps of a network, with its inputs, outputs and constants.

    Attributes:
        steps: its steps, in order.
        inputs: its inputs, in the model's order.
        outputs: its outputs, in the model's order.
        constants: the arrays that operators read besides tensors, by name.
        differences: where its chains differ from the model, and by how much.
        lost: nodes that C can't even leave to the caller, and why.
        residents: the tensors that stay in VTCM from one step to a later one.
        vtcm_bytes: the VTCM of these tensors and of the chains beside them; 0 where no tensor stays.
    """

    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Constants = field(repr=False)
    differences: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    residents: tuple[Resident, ...] = ()
    vtcm_bytes: int = 0

    @property
    def calls(self) -> tuple[Call, ...]:
        """The steps that are calls of chains."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def others(self) -> tuple[Operation, ...]:
        """The steps that the caller computes."""
        return tuple(step for step in self.steps if isinstance(step, Operation) and step.operator == OTHER)

    @property
    def computed(self) -> tuple[Step, ...]:
        """The steps that hexconv computes."""
        return tuple(step for step in self.steps if isinstance(step, Call) or step.operator != OTHER)

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of the operator callbacks that the network needs."""
        return tuple(sorted({step.operator for step in self.steps if isinstance(step, Operation)}))

    @property
    def outside(self) -> frozenset[str]:
        """The names of the buffers that belong to the caller."""
        return frozenset(port.operand.buffer for port in (*self.inputs, *self.outputs))

    def moved_bytes(self, step: Step) -> tuple[int, int]:
        """Return the bytes that a step reads, of an operator with its weights and tables, and those that it writes."""
        read, written = moved_bytes(step)
        names = _constants_of(step) if isinstance(step, Operation) else ()
        return read + sum(self.constants[name].nbytes for name in names), written


def _constants_of(step: Operation) -> Iterator[str]:
    """Yield the names of the constants that an operator reads besides tensors: its integer form, or its weights."""
    for how in step.how:
        if isinstance(how, View):
            yield from (each.places for each in how.dimensions if each.places)
        elif isinstance(how, Resize):
            yield from (name for axis in (how.rows, how.columns) for name in (axis.first, axis.part))
        elif not step.result.integers and isinstance(how, Filters):
            yield from filter(None, (how.elements, how.scales, how.sums_bias, how.real_bias))
        elif not step.result.integers and isinstance(how, Map | Powers):
            yield how.reals if isinstance(how, Map) else how.powers
    if step.result.integers:
        yield step.result.integers


def moved_bytes(step: Step) -> tuple[int, int]:
    """Return the bytes of tensors that a step reads, and the bytes that it writes."""
    return sum(source.bytes for source in step.sources), step.result.bytes
