"""Turn a model's graph into steps: calls of chains, operators between chains, and where each tensor lies.

before:  DequantizeLinear(a), DequantizeLinear(b) -> Add -> Relu -> QuantizeLinear
    after:   add(a, b, result): each tensor says what its codes stand for, and the result is clamped at 0

A node that only changes the shape, or what codes stand for, is no step: its result is the same memory,
seen in another way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hexconv.errors import InputError, Unsupported
from hexconv.model.affine import Clamp, clamp_of
from hexconv.model.chains import Run
from hexconv.model.constants import elements
from hexconv.model.graph import Graph, Node, open_sizes, passes
from hexconv.model.quantised import quantised
from hexconv.model.refused import Refused
from hexconv.network.program_steps import (
    BLOCKS,
    INPUT,
    NCHW,
    NHWC,
    OTHER,
    Call,
    How,
    Operand,
    Operation,
    Other,
    Port,
    Program,
    Step,
    View,
    extents_of,
)
from hexconv.network.views import Placed, loops
from hexconv.run.tensors import Array, Tensors
from hexconv.spec import Case

MOST_LOOPS = 8
"""Of a view, as hexconv_operators.c has them."""


class ModelOperands:
    """The operands in which a model's tensors lie, and the steps that make them.

    Args (of the constructor):
        graph: the graph of the model.
        model: the name of its file, for errors.
    """

    def __init__(self, graph: Graph, model: str) -> None:
        self.graph, self.model = graph, model
        self.steps: list[Step] = []
        self.constants: dict[str, Array] = {}
        self._held: dict[str, Operand] = {}
        self._moving: dict[str, Placed] = {}

    def held(self, tensor: str, layout: str = NHWC) -> Operand:
        """Look up the operand in which a tensor of the model lies; one that only moved so far is copied to a layout.

        Raises:
            Refused: the tensor is a constant, which may not stand here, or it is unknown.
        """
        if tensor not in self._held and tensor in self._moving:
            self._held[tensor] = self._copied(tensor, self._moving[tensor], layout)
        if tensor not in self._held:
            raise Refused(
                f"{tensor}, which it reads, is {'a constant' if self.graph.is_constant(tensor) else 'unknown'}"
            )
        return self._held[tensor]

    def is_known(self, tensor: str) -> bool:
        """Whether a tensor of the model lies somewhere."""
        return tensor in self._held or tensor in self._moving

    def hold(self, tensor: str, operand: Operand) -> None:
        """Note the operand in which a tensor of the model lies."""
        self._held[tensor] = operand

    def placed(self, tensor: str) -> Placed:
        """Look up where the elements of a tensor of the model lie; errors are those of `held`."""
        if tensor in self._held or tensor not in self._moving:
            held = self.held(tensor)
            return Placed.of(self.convert(held, NCHW) if held.layout == BLOCKS else held, self.shape(tensor))
        return self._moving[tensor]

    def operand(self, tensor: str) -> Operand:
        """Look up what the elements of a tensor of the model stand for; errors are those of `held`."""
        is_moving = tensor not in self._held and tensor in self._moving
        return self._moving[tensor].operand if is_moving else self.held(tensor)

    def place(self, tensor: str, placed: Placed) -> None:
        """Note where the elements of a tensor of the model lie; a step copies them once something reads them."""
        if operand := placed.as_it_lies:
            self._held[tensor] = operand
        else:
            self._moving[tensor] = placed

    def meaning(self, tensor: str, made: str, scale: float, zero_point: int) -> None:
        """Note that a tensor has the elements of another one, as codes of this scale and zero point."""
        if tensor in self._held or tensor not in self._moving:
            self.hold(made, self.held(tensor).meaning(scale, zero_point))
        else:
            moving = self._moving[tensor]
            self._moving[made] = replace(moving, operand=moving.operand.meaning(scale, zero_point))

    def _copied(self, tensor: str, placed: Placed, layout: str) -> Operand:
        """Add the step that copies a tensor to a layout; a copy that was made before is reused."""
        source, shape = placed.operand, placed.places.shape
        made = Operand(f"{tensor} copied", extents_of(shape), source.dtype, layout)
        how = View(loops(placed, Placed.of(made, shape)), placed.first)
        for step in self.steps:
            is_copy = isinstance(step, Operation) and step.how == (how,) and step.sources[0].buffer == source.buffer
            if is_copy and (step.result.extents, step.result.layout) == (made.extents, layout):
                made = step.result
                break
        else:
            self.copy(tensor, source.as_numbers, made, how)
        return replace(made, scale=source.scale, zero_point=source.zero_point)

    def copy(self, node: str, source: Operand, result: Operand, how: View) -> None:
        """Add a step that copies elements.

        Raises:
            Refused: it takes more loops than a step has.
        """
        if len(how.dimensions) > MOST_LOOPS:
            raise Refused(f"it moves elements in {len(how.dimensions)} loops; {MOST_LOOPS} are the most here")
        self.steps.append(Operation("view", node, (source,), result, (how,)))

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor of the model.

        Raises:
            InputError: the model leaves a size of it open.
        """
        found = self.graph.type_of(tensor)
        shape, (lack, cure) = found.shape, found.lack
        sizes = tuple(size for size in shape or () if isinstance(size, int))
        if shape is None or len(sizes) < len(shape):
            told = ",".join(map(str, shape)) if shape else "?"
            raise InputError.because(f"{self.model}: {tensor} {lack}, {told}", f"{cure}: --shape INPUT=1,3,224,224")
        return sizes

    def source(self, tensor: str, rank: int | None = None) -> Operand:
        """The operand that an operator reads: in NHWC, or in blocks as a chain writes them; a constant is kept.

        Args:
            tensor: the tensor of the model.
            rank: the rank of the tensor that it is broadcast to; one of fewer axes gets axes of one element in front.
        """
        if tensor not in self._held and self.graph.is_constant(tensor):
            return self.constant_operand(tensor, rank)
        if rank and self.is_known(tensor) and len(shape := self.shape(tensor)) < rank:
            wider = self.placed(tensor).reshaped((1,) * (rank - len(shape)) + shape)
            if wider:
                return self.dense(wider.as_it_lies or self._copied(tensor, wider, NHWC))
        return self.dense(self.held(tensor), blocks=True)

    def constant(self, name: str, values: Array) -> str:
        """Keep an array that an operator reads besides tensors; return its name."""
        self.constants[name] = np.ascontiguousarray(values)
        return name

    def constant_operand(self, tensor: str, rank: int | None) -> Operand:
        """Keep a constant of the model as a tensor; return its operand."""
        values = self.graph.value(tensor)
        extents = extents_of(values.shape, rank)
        batch, rows, columns, channels = extents
        values = values.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1)
        name = self.constant(f"constant:{tensor}", values)
        return Operand(name, extents, str(values.dtype))

    def dense(self, operand: Operand, blocks: bool = False) -> Operand:
        """Return the operand in NHWC, converted if need be; with `blocks`, one in a chain's blocks stays as it is."""
        if operand.layout == NHWC or (blocks and operand.layout == BLOCKS):
            return operand
        return self.convert(operand, NHWC)

    def convert(self, operand: Operand, layout: str) -> Operand:
        """Convert an operand to another layout; a conversion that was made before is reused."""
        sizes = "x".join(map(str, operand.extents))
        target = Operand(f"{operand.buffer} {layout} {sizes}", operand.extents, operand.dtype, layout)
        self._convert(operand.as_numbers, target, layout)
        return replace(target, scale=operand.scale, zero_point=operand.zero_point)

    def floats(self, tensor: str, operand: Operand) -> Operand:
        """Convert the operand of a tensor to the floats that it stands for; a conversion made before is reused."""
        target = Operand(f"{tensor} as floats", operand.extents, "float32")
        self._convert(operand, target, "floats")
        return target

    def _convert(self, operand: Operand, target: Operand, what: str) -> None:
        if not any(step.result.buffer == target.buffer for step in self.steps):
            self.steps.append(Operation("convert", f"{operand.buffer} to {what}", (operand,), target))

    def add(self, operator: str, node: Node, sources: Sequence[Operand], result: Operand, *how: How) -> None:
        """Add a step.

        Raises:
            Refused: a tensor is of a dtype that operators don't compute.
        """
        for operand in (*sources, result):
            if operand.dtype not in COMPUTED:
                raise Refused(f"{operand.buffer} is {operand.dtype or 'of unknown dtype'}")
        self.steps.append(Operation(operator, node.name, tuple(sources), result, how))

    def rename(self, old: str, new: str) -> None:
        """Rename a buffer to one of the caller's."""

        def moved(operand: Operand) -> Operand:
            return replace(operand, buffer=new) if operand.buffer == old else operand

        self.steps = [
            replace(step, sources=tuple(map(moved, step.sources)), result=moved(step.result)) for step in self.steps
        ]
        self._held = {name: moved(operand) for name, operand in self._held.items()}
        self._moving = {name: replace(each, operand=moved(each.operand)) for name, each in self._moving.items()}


@dataclass(frozen=True)
class Member:
    """A chain of the model, and the cases that it runs as.

    Attributes:
        case: the chain as one case, with the limits of its weights.
        run: its nodes in the graph.
        weights: its weights by a run's names.
        dtype: the dtype of its result in the model.
        pieces: the planned cases that run one after the other, each with its weights; empty where it is refused.
        refused: why it has no plan; empty where it has one.
    """

    case: Case
    run: Run
    weights: Mapping[str, Array] = field(repr=False)
    dtype: str
    pieces: tuple[tuple[Case, Tensors], ...] = field(default=(), repr=False)
    refused: str = ""

    @property
    def source(self) -> str:
        """The tensor that it reads."""
        return self.run.source

    @property
    def result(self) -> str:
        """The tensor that it writes."""
        return self.run.result


COMPUTED = ("float32", "uint8", "int8", "int16", "int32")
"""The dtypes that operators compute."""
UINT16 = "uint16"
CARRIED = (UINT16, "int64", "float16", "float64", "bool")
"""The dtypes that tensors may have besides, between what the caller computes."""
CHAIN = "chain"
ANY = Clamp()
"""The clamp that changes no value."""


class Reading(ModelOperands):
    """The reader that turns a network's nodes into steps, one node after the other.

    Args (of the constructor):
        graph: the graph of the model.
        members: the chains of the model.
        model: the name of its file, for errors.
    """

    def __init__(self, graph: Graph, members: Sequence[Member], model: str) -> None:
        super().__init__(graph, model)
        self._given: set[str] = set()
        self._chains = {member.result: member for member in members}
        self._folded = set[Node]()
        self.lost: dict[str, str] = {}

    def read(self, table: "Table") -> Program:
        """Read the whole model into steps; `others` of the program are what no operator here computes.

        What C can't have at all, such as tensors of open sizes, is `lost`: steps that read it get it from the caller.

        Args:
            table: the function that reads each operator of ONNX.

        Raises:
            InputError: an input or an output has an open size.
            Unsupported: an input or an output is of a dtype that C doesn't get.
        """
        ports = tuple(self._inputs())
        needed = self.graph.needed({name: member.source for name, member in self._chains.items()})
        nodes = {node for node in needed.values() if node}
        for node in self.graph.nodes:
            for name in node.outputs:
                if name in self._chains and name in needed:
                    self._call(self._chains[name])
            if node in nodes and node not in self._folded:
                self._read(node, table)
        for name in self.graph.outputs:
            if self.graph.is_constant(name):
                self._hold_constant(name)
        results = tuple(self._given_back(at) for at, name in enumerate(self.graph.outputs) if self._is_port(name))
        return Program(tuple(self.steps), ports, results, self.constants, lost=tuple(self.lost.values()))

    def _inputs(self) -> Iterator[Port]:
        """Yield the ports of the inputs; what reads an input that C doesn't get has it from the caller."""
        for name in self.graph.inputs:
            if self._is_port(name):
                port = self._port(name, f"input:{name}")
                self.hold(port.name, port.operand)
                yield port
            else:
                self._leave(name, [], self._plain(name), Other(self._others, INPUT, reason=self.lost[name]))

    def _hold_constant(self, name: str) -> None:
        """Keep an output that is a constant, from which the caller's memory is written; or note why C can't have it."""
        found, cure = self.graph.type_of(name), "take it off the model's outputs"
        try:
            if found.dtype in COMPUTED and elements(found.shape) != 0:
                self.hold(name, self.constant_operand(name, None))
                return
            what = "no elements" if found.dtype in COMPUTED else found.dtype or "unknown dtype"
            self.lost[name] = f"{name} is a constant of {what}, which C doesn't get; {cure}"
        except Refused as refusal:
            self.lost[name] = f"{name} is an output, and {refusal}; {cure}"

    def _is_port(self, name: str) -> bool:
        """Whether C gets an input or an output; else it is noted as lost."""
        found = self.graph.type_of(name)
        if found.dtype in COMPUTED and (name in self.graph.inputs or (found.is_fixed and self.is_known(name))):
            return True
        cure = "; give the model floats or int16, and keep uint16 between its QuantizeLinear and DequantizeLinear"
        why = f"{name} is {found.dtype or 'unknown'}, which C doesn't get{cure if found.dtype == UINT16 else ''}"
        self.lost.setdefault(name, why if found.dtype not in COMPUTED else open_sizes(self.graph, name))
        return False

    def result(self, tensor: str, clamp: Clamp = ANY) -> Operand:
        """The operand that an operator writes; clamps and a quantiser that alone read its result are folded into it.

        before:  Add -> Relu -> QuantizeLinear -> codes         after:  codes, clamped at 0

        Args:
            tensor: the tensor that the operator makes.
            clamp: the clamp that the operator itself does.
        """
        at, extents = tensor, extents_of(self.shape(tensor))
        dtype = self._dtype(tensor)
        while dtype.startswith("float") and (node := self.graph.only_reader(at)) and node.inputs[0] == at:
            if node.op == "QuantizeLinear":
                self._folded.add(node)
                return self.quantised(node.outputs[0], node.input(1), node.input(2), clamp, by=node)
            own = clamp_of(self.graph, node)
            if own is None and not passes(self.graph, node):
                break
            self._folded.add(node)
            clamp, at = clamp.then(own) if own else clamp, node.outputs[0]
        operand = Operand(at, extents, dtype, low=clamp.low, high=clamp.high)
        self.hold(at, operand.as_numbers)
        return operand

    def quantised(
        self, tensor: str, scale: str, zero_point: str, clamp: Clamp = ANY, by: Node | None = None
    ) -> Operand:
        """Return the operand of a result that is written as codes.

        Raises:
            Refused: scales that are no positive number, or more than one.
        """
        found = quantised(self.graph, tensor, scale, zero_point, by=by)
        extents = extents_of(self.shape(tensor))
        step, zero = float(found.scales[0]), found.zero_point
        operand = Operand(tensor, extents, found.dtype, NHWC, step, zero, clamp.low, clamp.high)
        self.hold(tensor, operand.as_numbers)
        return operand

    def dequantised(self, tensor: str, scale: str, zero_point: str, rank: int | None = None) -> Operand:
        """Return the operand of a source that is read as codes; arguments are those of `source` and of `scale_of`."""
        return self.source(tensor, rank).meaning(*self.scale_of(tensor, scale, zero_point))

    def scale_of(self, tensor: str, scale: str, zero_point: str, by: Node | None = None) -> tuple[float, int]:
        """Return the scale and the zero point of a tensor's codes.

        Raises:
            Refused: scales that are no positive number, or more than one.
        """
        found = quantised(self.graph, tensor, scale, zero_point, by=by)
        return float(found.scales[0]), found.zero_point

    def _port(self, name: str, buffer: str) -> Port:
        """Return the port of an input or an output, in the model's shape."""
        shape = self.shape(name)
        operand = Operand(buffer, extents_of(shape), self.graph.type_of(name).dtype)
        return Port(name, shape, operand.reshaped(operand.extents))

    def _dtype(self, tensor: str) -> str:
        """The dtype of a tensor outside of chains.

        Raises:
            Refused: its codes are uint16, which chains have as int16, and operators not at all.
        """
        dtype = self.graph.type_of(tensor).dtype
        if dtype == UINT16:
            raise Refused(f"{tensor} is uint16 where no chain writes it")
        return dtype

    def _read(self, node: Node, table: "Table") -> None:
        """Read one node with the function that the table has for it; the caller computes what that refuses."""
        folded, held, moving, made = set(self._folded), dict(self._held), dict(self._moving), len(self.steps)
        try:
            if node.op not in table:
                raise Refused
            table[node.op](self, node)
        except Refused as refusal:
            self._folded, self._held, self._moving = folded, held, moving
            del self.steps[made:]
            self._leave_node(node, str(refusal))

    def _leave_node(self, node: Node, reason: str) -> None:
        """Leave a node to the caller: a step for each of its results, or nothing where C can't have one."""
        reads = [self._kept(name) for name in (*node.inputs, *node.captured) if name]
        told = {name: value for name, value in node.attributes.items() if isinstance(value, (int, float, bytes, list))}
        words = ", ".join(f"{name} = {value}" for name, value in told.items())
        for output, name in enumerate(node.outputs):
            if not name or (name not in self.graph.outputs and not self.graph.readers(name)):
                continue
            found = self.graph.type_of(name)
            if None in reads or not found.is_fixed or found.dtype not in (*COMPUTED, *CARRIED):
                what = "tensors of open sizes, of no elements, or of dtypes that C doesn't get"
                self.lost[name] = f"{node.op} {node.name} has {what}"
            if found.is_fixed and found.dtype in (*COMPUTED, *CARRIED):
                how = Other(self._others, node.op, output, words, reason)
                self._leave(node.name, [operand for operand in reads if operand], self._plain(name), how)

    def _kept(self, tensor: str) -> Operand | None:
        """The operand of what the caller reads; None where it is of a dtype or of sizes that C doesn't get."""
        try:
            operand = self.source(tensor)
        except Refused:
            return None
        return operand if operand.dtype in (*COMPUTED, *CARRIED) else None

    def _plain(self, name: str) -> Operand:
        """The operand of a tensor as the caller writes it; codes of uint16 are int16 here, 2^15 less."""
        dtype = self.graph.type_of(name).dtype
        return Operand(name, extents_of(self.shape(name)), "int16" if dtype == UINT16 else dtype)

    def _leave(self, node: str, reads: Sequence[Operand], result: Operand, how: Other) -> None:
        self.steps.append(Operation(OTHER, node, tuple(reads), result, (how,)))
        self.hold(result.buffer, result)

    @property
    def _others(self) -> int:
        """How many steps are left to the caller."""
        return sum(isinstance(step, Operation) and step.operator == OTHER for step in self.steps)

    def _call(self, member: Member) -> None:
        """Add the calls of a chain's pieces, one after the other; the caller computes a chain that can't be called."""
        last, source = member.run.units[-1], self._kept(member.source)
        sums = last.conv.requantize is None and last.dtype in ("uint8", "int8", "int16")
        why = member.refused or ("" if source else f"{member.source}, which it reads, is nothing that C gets")
        if sums:
            why = f"it ends in sums of int32; {last.unfolded or 'put a QuantizeLinear behind it'}"
        made = len(self.steps)
        if source and not why:
            try:
                self._call_pieces(member, self._read_by(member, source))
                return
            except Unsupported as refusal:
                del self.steps[made:]
                why = str(refusal)
        chain = member.case.chain
        result = self._plain(member.result)
        result = result if sums else replace(result, dtype=chain.output_dtype(len(chain.conv) - 1))
        self._leave(member.case.name, [source] if source else [], result, Other(self._others, CHAIN, reason=why))

    def _read_by(self, member: Member, source: Operand) -> Operand:
        """The operand that a chain reads: in NHWC, and floats even where the tensor lies as codes."""
        is_plain = source.same_codes(replace(source.as_numbers, dtype="float32"))
        if is_plain or member.case.chain.dtype != "float32":
            return self.dense(source)
        return self.floats(member.source, source)

    def _call_pieces(self, member: Member, at: Operand) -> None:
        for number, (case, weights) in enumerate(member.pieces):
            last = number == len(member.pieces) - 1
            shape, dtype = case.chain.shapes[-1], case.chain.output_dtype(len(case.chain.conv) - 1)
            result = Operand(member.result if last else case.name, shape, dtype, case.chain.output_layout)
            self.steps.append(Call(case, weights, (at,), result))
            at = result if last else self.dense(result)
        self.hold(member.result, at)

    def _given_back(self, at: int) -> Port:
        """The port of an output: its step writes the caller's memory, or a conversion does if the layout differs.

        Args:
            at: its place among the outputs; each has memory of its own, of a tensor that is listed again, too.
        """
        name, again = self.graph.outputs[at], self.graph.outputs[:at].count(self.graph.outputs[at])
        port = self._port(name, f"output {again + 1}:{name}" if again else f"output:{name}")
        held = self.held(name, NCHW)
        made = [step for step in self.steps if step.result.buffer == held.buffer and isinstance(step, Operation)]
        same = (held.dtype, held.extents, held.is_flat) == (port.operand.dtype, port.operand.extents, True)
        is_taken = held.buffer in self._given  # by another output
        if made and same and not is_taken and (held.scale, held.zero_point) == (1.0, 0):
            self.rename(held.buffer, port.operand.buffer)
            self._given.add(port.operand.buffer)
        else:
            clean = replace(held, low=port.operand.low, high=port.operand.high)
            self.steps.append(Operation("convert", name, (clean,), port.operand))
        return port


Table = Mapping[str, Callable[[Reading, Node], None]]
"""By the name of an ONNX operator, the function that turns its node into a step."""


CHANNEL_AXIS = 3
"""The index of channels in N, H, W, C."""


PLACES = {4: (0, 3, 1, 2), 3: (0, 3, 2), 2: (0, 3)}
"""For a model's tensor of 4, 3 or 2 axes, the place of each axis in N, H, W, C."""


def whole_numbers(reading: Reading, node: Node, at: int, attribute: str) -> list[int]:
    """Read whole numbers: a constant input, or an attribute in old models; empty where there is neither.

    Raises:
        Refused: the input is no constant.
    """
    name = node.input(at)
    if not name:
        return [int(value) for value in node.attributes.get(attribute, ())]
    if not reading.graph.is_constant(name):
        raise Refused(f"its input {name} depends on the model's input")
    return [int(value) for value in reading.graph.value(name).reshape(-1)]


def scale_names(node: Node, at: int) -> tuple[str, str]:
    """Return the names of a scale and a zero point among a node's inputs."""
    return node.input(at), node.input(at + 1)


def three(node: Node, at: int = 0) -> tuple[str, str, str]:
    """Return the names of a tensor among a node's inputs, its scale and its zero point."""
    return node.input(at), node.input(at + 1), node.input(at + 2)


def check_channels(node: Node) -> None:
    """Refuse a node of ONNX Runtime's own whose channels come last."""
    if node.attributes.get("channels_last", 0):
        raise Refused("it sets channels_last; export it in NCHW")
