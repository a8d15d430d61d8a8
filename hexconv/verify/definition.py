"""One conv of a model by ONNX's definitions, in float64: the exact result, and all results that float32 can give.

    before:  source -> DequantizeLinear -> Conv -> Relu -> QuantizeLinear -> result
    after:   result: for each element the exact value, and the least and the largest one within float32's error

The nodes are read from the model, not from what an import made of them. With u = 2**-24, the unit roundoff of float32
(2**-11 for float16), the error bound is, operator by operator:

- a conv of n products and a bias: `(n + 8) u (sum |x w| + |b|)` for sums of floats in any order; for exact sums of
  integers that are scaled in float32 `4 u |sum| + 10**-6 |b|`, since the bias's own float32 scale may be that far from
  the scale of the sums; for both what float64 leaves of terms that cancel, `(n + 8) 2**-53 (max |x| sum |w| + |b|)`;
- any other operator that rounds: what a relative change of 8 u of each input makes of its result, and 8 u of that;
- QuantizeLinear: 2 u of the quotient; then every code is possible that half a step and this bound reach.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.contributed import as_standard
from hexconv.model.conv_unit import Unit
from hexconv.model.graph import VIEWS, Graph, Node
from hexconv.model.integer import SAME_SCALE, TABLES
from hexconv.model.quantised import quantised, quantised_filter
from hexconv.model.refused import Refused

UNIT_ROUNDOFF = {"float16": 2.0**-11}
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
ROUNDINGS = 8
"""How many units in the last place one operator of float32 may be off by, inside and outside."""
TIE = 1e-9
"""A quotient this near to a half, relatively, is one: float64 computed it."""
BEYOND = 2.0**40
"""More steps than any code has."""
MOVES = frozenset((*VIEWS, "Transpose", "Pad", "Cast", "Relu", "Clip", "Max", "Min", "Neg", "Abs"))
"""Operators that round nothing."""


@dataclass(frozen=True)
class Bounds:
    """A tensor in the model's shape: its exact elements, and between which ones float32 arithmetic stays.

    Attributes:
        exact: the elements in float64; codes are whole numbers.
        low: the least elements within the error bound.
        high: the largest ones.
    """

    exact: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, exact: Array) -> "Bounds":
        """Return elements that are known exactly."""
        return cls(exact, exact, exact)

    def moved(self, by: Array | float) -> "Bounds":
        """Return the same elements with an error that is larger by `by`."""
        return Bounds(self.exact, self.low - by, self.high + by)

    def every(self, made: Callable[[Array], Array]) -> "Bounds":
        """Return what a function that grows with its argument makes of the elements."""
        return Bounds(made(self.exact), made(self.low), made(self.high))

    def contain(self, values: Array) -> Array:
        """Whether each value lies within the bounds; NaN lies where the exact element is NaN."""
        return ((values >= self.low) & (values <= self.high)) | (np.isnan(values) & np.isnan(self.exact))


@dataclass(frozen=True)
class Arithmetic:
    """How a conv is computed beside its definition.

    Attributes:
        sums_floats: whether products are floats that are summed in any order; else sums are exact integers.
        more_steps: what else its results may be off by before they are rounded, in steps of its first quantiser:
            one number, or one for each output channel.
        table_steps: the same, for what a table of 256 codes in place of a function of the sums adds.
    """

    sums_floats: bool
    more_steps: Array | float = 0.0
    table_steps: float = 0.0


@dataclass(frozen=True)
class Definition:
    """The nodes of a conv, from the tensor that it reads to the tensor that it writes.

    Attributes:
        graph: the graph of the model.
        unit: the conv with the nodes that fold into it.
    """

    graph: Graph
    unit: Unit
    _known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes between the source and the result that depend on the source, in the graph's order."""
        waiting, needed = [self.unit.result], set[Node]()
        while waiting:
            name = waiting.pop()
            maker = None if name == self.unit.source or self.graph.is_constant(name) else self.graph.maker(name)
            if maker and maker not in needed:
                needed.add(maker)
                waiting += [read for read in (*maker.inputs, *maker.captured) if read]
        return tuple(node for node in self.graph.nodes if node in needed)

    @property
    def is_tabulated(self) -> bool:
        """Whether the chain looks a function of the sums up among codes that the model does not have."""
        return any(each.what == TABLES for each in self.unit.inexact)

    @cached_property
    def first_codes(self) -> str:
        """The tensor in which results are judged: the first codes, where all nodes behind read nothing else.

        Behind it stands a table or a curve, which can make several steps out of one. It is `unit.result` where there is
        none, or where the curve reads numbers that are no codes.
        """
        if self.is_tabulated:
            return self.unit.result
        after = self.nodes[self.nodes.index(self.unit.node) :]
        for place, node in enumerate(after):
            if _word(node) in ("QuantizeLinear", "QLinearConv"):
                made = {name for later in after[place:] for name in later.outputs}
                read = {name for later in after[place + 1 :] for name in later.inputs if name}
                alone = all(name in made or self.graph.is_constant(name) for name in read)
                return node.outputs[0] if alone else self.unit.result
        return self.unit.result

    def bounds(self, source: Array, arithmetic: Arithmetic) -> Bounds:
        """Compute `first_codes` out of the source.

        Args:
            source: the elements of `unit.source`, in the model's shape; a definition is for one source.
            arithmetic: how sums are made, which says how far off they may be.

        Raises:
            Refused: a constant can't be read, or a node can't be computed.
        """
        nodes = self.nodes
        if self.first_codes != self.unit.result:
            last = next(at for at, node in enumerate(nodes) if self.first_codes in node.outputs)
            nodes = nodes[: last + 1]
        return self._computed(nodes, {self.unit.source: Bounds.of(_wide(source))}, arithmetic)[self.first_codes]

    @property
    def steps(self) -> Bounds | None:
        """What `bounds` rounded to codes; None where `first_codes` are no codes."""
        return self._known.get("steps")

    def curve(self, codes: Array) -> Bounds:
        """Compute `unit.result` out of codes of `first_codes`, NCHW; the codes themselves where both are one tensor."""
        first = next((at for at, node in enumerate(self.nodes) if self.first_codes in node.outputs), len(self.nodes))
        known = {self.first_codes: Bounds.of(_wide(codes))}
        return self._computed(self.nodes[first + 1 :], known, Arithmetic(sums_floats=True))[self.unit.result]

    def unit_of_sums(self) -> Array:
        """The real number that a unit of the sums stands for, one or one a channel: both scales of a QDQ conv.

        Raises:
            Refused: the conv does not read dequantised tensors.
        """
        before, of_filter = (self.graph.maker(name) for name in self.unit.node.inputs[:2])
        if before is None or of_filter is None or _word(before) != "DequantizeLinear":
            raise Refused("its sums have no scale")
        source = quantised(self.graph, *(before.input(i) for i in range(3)), by=before)
        filter = quantised_filter(self.graph, *(of_filter.input(i) for i in range(3)), by=of_filter)
        return source.scales.astype(np.float64) * filter.scales

    def _computed(self, nodes: tuple[Node, ...], known: dict[str, Bounds], how: Arithmetic) -> dict[str, Bounds]:
        for node in nodes:
            for part in _parts(node):
                known |= self._of_node(part, known, how)
        return known

    def _of_node(self, node: Node, known: Mapping[str, Bounds], how: Arithmetic) -> dict[str, Bounds]:
        """Compute one node out of known tensors and constants."""
        word = _word(node)
        if word in ("Conv", "ConvInteger", "QLinearConv"):
            return {node.outputs[0]: getattr(self, f"_{word}")(node, known, how)}
        if word == "QuantizeLinear":
            first = node.outputs[0] == self.first_codes
            scale, zero = self._constant(node.inputs[1]), node.input(2)
            more = how.more_steps + how.table_steps if first else 0.0
            return {node.outputs[0]: self._quantised(known[node.inputs[0]], scale, zero, node, more)}
        if word == "DequantizeLinear":
            return {node.outputs[0]: known[node.inputs[0]].every(partial(self._dequantised, node))}
        return self._rounded(node, known)

    def _rounded(self, node: Node, known: Mapping[str, Bounds]) -> dict[str, Bounds]:
        """Compute a node with ONNX's evaluator in float64; each input is moved by its error, one after the other."""
        exact = {name: known[name].exact if name in known else self._constant(name) for name in node.inputs if name}
        # What BatchNormalization rounds on its way is as large as its constants, though its result may be next to 0.
        is_long = node.op == "BatchNormalization"
        moving = [name for name in exact if name in known or is_long]
        ulps = 0.0 if node.op in MOVES else ROUNDINGS * self._roundoff
        made = self._evaluated(node, exact)
        low, high = dict(made), dict(made)
        for name in moving:
            widened = known.get(name, Bounds.of(exact[name])).moved(_size(exact[name], ulps))
            ends = [self._evaluated(node, {**exact, name: end}) for end in (widened.low, widened.high)]
            for output, value in made.items():
                low[output] = low[output] + np.minimum(_less(np.minimum(*(end[output] for end in ends)), value), 0)
                high[output] = high[output] + np.maximum(_less(np.maximum(*(end[output] for end in ends)), value), 0)
        return {name: Bounds(made[name], low[name], high[name]).moved(_size(made[name], ulps)) for name in made}

    def _Conv(self, node: Node, known: Mapping[str, Bounds], how: Arithmetic) -> Bounds:  # noqa: N802
        filter = self._constant(node.inputs[1])
        bias = self._constant(node.inputs[2]) if node.input(2) else np.zeros(1)
        return self._summed(node, known[node.inputs[0]], filter, bias, how)

    def _ConvInteger(self, node: Node, known: Mapping[str, Bounds], _: Arithmetic) -> Bounds:  # noqa: N802
        zero, filter_zero = (self._constant(name) if name else np.zeros(1) for name in (node.input(2), node.input(3)))
        filter = self._constant(node.inputs[1])
        return Bounds.of(
            convolved(node, known[node.inputs[0]].exact - zero, filter - _along(filter_zero, filter.shape, 0, 0))
        )

    def _QLinearConv(self, node: Node, known: Mapping[str, Bounds], how: Arithmetic) -> Bounds:  # noqa: N802
        scale, zero, filter, filter_scale, filter_zero = (self._constant(name) for name in node.inputs[1:6])
        real = known[node.inputs[0]].every(lambda codes: (codes - zero) * scale)
        of_filter = (_along(vector, filter.shape, 0, 0) for vector in (filter_zero, filter_scale))
        weights = (filter - next(of_filter)) * next(of_filter)
        bias = self._constant(node.inputs[8]) * scale * filter_scale if node.input(8) else np.zeros(1)
        made = self._summed(node, real, weights, bias, replace(how, sums_floats=False))
        return self._quantised(made, self._constant(node.inputs[6]), node.input(7), node, how.more_steps)

    def _summed(self, node: Node, image: Bounds, filter: Array, bias: Array, how: Arithmetic) -> Bounds:
        """Convolve, and add what float32 may be off by."""
        along = (-1, *[1] * (filter.ndim - 2))
        exact = self._kept("sums", lambda: convolved(node, image.exact, filter) + bias.reshape(along))
        largest = np.abs(image.exact).max(initial=0) * np.abs(filter).reshape(len(filter), -1).sum(1) + np.abs(bias)
        terms = prod(filter.shape[1:]) + ROUNDINGS
        error = 4 * self._roundoff * np.abs(exact) + SAME_SCALE * np.abs(bias).reshape(along)
        error = error + terms * FLOAT64 * largest.reshape(along)
        if how.sums_floats:
            magnitude = self._kept(
                "magnitude",
                lambda: convolved(node, np.abs(image.exact), np.abs(filter)) + np.abs(bias).reshape(along),
            )
            error = terms * self._roundoff * magnitude
        apart = np.maximum(image.high - image.exact, image.exact - image.low)
        if apart.any():
            error = error + convolved(node, apart, np.abs(filter))
        return Bounds(exact, exact - error, exact + error)

    def _kept(self, name: str, make: Callable[[], Array]) -> Array:
        """Compute the sums of one source once, for every arithmetic."""
        if name not in self._known:
            self._known[name] = make()
        return self._known[name]

    def _quantised(self, real: Bounds, scale: Array, zero: str, node: Node, more: Array | float) -> Bounds:
        """Quantise: the nearest code, half to even, and every code that the error reaches."""
        axis, block = int(node.attributes.get("axis", 1)), int(node.attributes.get("block_size", 0))
        shape = real.exact.shape
        scale, zeros = (
            _along(scale, shape, axis, block),
            _along(self._constant(zero), shape, axis, block) if zero else 0,
        )
        ends = np.iinfo(self.graph.type_of(node.outputs[0]).dtype or "uint8")
        steps = real.every(lambda value: np.clip(value / scale, -BEYOND, BEYOND))
        wide = steps.moved(2 * self._roundoff * np.abs(steps.exact) + TIE * (1 + np.abs(steps.exact)))
        if np.any(more):  # what is off beyond rounding is off from a code that there is
            cut = wide.every(lambda value: np.clip(value, ends.min - zeros, ends.max - zeros))
            cut = cut.moved(np.reshape(more, (-1, *[1] * max(len(shape) - 2, 0))))
            wide = Bounds(steps.exact, np.minimum(wide.low, cut.low), np.maximum(wide.high, cut.high))
        if node.outputs[0] == self.first_codes:
            self._known["steps"] = wide.every(lambda value: value + zeros)
        codes = Bounds(_nearest(steps.exact), np.ceil(wide.low - 0.5), np.floor(wide.high + 0.5))
        return codes.every(lambda code: np.clip(code + zeros, ends.min, ends.max))

    def _dequantised(self, node: Node, codes: Array) -> Array:
        axis, block = int(node.attributes.get("axis", 1)), int(node.attributes.get("block_size", 0))
        scale = _along(self._constant(node.inputs[1]), codes.shape, axis, block)
        zero = _along(self._constant(node.inputs[2]), codes.shape, axis, block) if node.input(2) else 0
        return (codes - zero) * scale

    def _constant(self, name: str) -> Array:
        """The value of a constant, what is dequantised on the way in float64."""
        maker = self.graph.maker(name)
        if maker is None or not any(map(self._is_dequantised, self._before(name))):
            return _wide(self.graph.value(name))
        values = {read: self._constant(read) for read in maker.inputs if read}
        if _word(maker) == "DequantizeLinear":
            return self._dequantised(maker, values[maker.inputs[0]])
        return self._evaluated(maker, values)[name]

    def _before(self, name: str) -> Iterator[Node]:
        """All nodes that a constant is computed by."""
        waiting, seen = [name], set[str]()
        while waiting:
            maker = self.graph.maker(waiting.pop())
            if maker and maker.outputs[0] not in seen:
                seen.add(maker.outputs[0])
                yield maker
                waiting += [read for read in maker.inputs if read]

    @staticmethod
    def _is_dequantised(node: Node) -> bool:
        return _word(node) == "DequantizeLinear"

    def _evaluated(self, node: Node, values: Mapping[str, Array]) -> dict[str, Array]:
        return {name: _wide(value) for name, value in self.graph.constants.computed(node.proto, values).items() if name}

    @property
    def _roundoff(self) -> float:
        return UNIT_ROUNDOFF.get(self.unit.dtype, FLOAT32)


def convolved(node: Node, image: Array, filter: Array) -> Array:
    """ONNX's Conv of float64 without its bias, over one or two spatial axes: tap by tap.

    Args:
        node: the conv, for its attributes.
        image: [N, C, ...].
        filter: [K, C of a group, ...].

    Raises:
        Refused: it has more than two spatial axes.
    """
    told: dict[str, Any] = node.attributes
    spatial = filter.ndim - 2
    if spatial == 1:
        flat = {name: [1, *told[name]] for name in ("strides", "dilations") if name in told}
        flat |= {"pads": [0, told["pads"][0], 0, told["pads"][1]]} if "pads" in told else {}
        made = convolved(replace(node, attributes={**told, **flat}), image[:, :, None], filter[:, :, None])
        return made[:, :, 0]
    if spatial != 2:
        raise Refused(f"it has {spatial} spatial axes")
    groups, kernel = int(told.get("group", 1)), filter.shape[2:]
    strides, dilations = (tuple(told.get(name, (1, 1))) for name in ("strides", "dilations"))
    before, after = _padding(told, image.shape[2:], kernel, strides, dilations)
    padded = np.pad(image, ((0, 0), (0, 0), *zip(before, after, strict=True)))
    made = [
        (size - (taps - 1) * apart - 1) // step + 1
        for size, taps, apart, step in zip(padded.shape[2:], kernel, dilations, strides, strict=True)
    ]
    total = np.zeros((image.shape[0], groups, filter.shape[0] // groups, prod(made)))
    for row, column in np.ndindex(*kernel):
        down, right = row * dilations[0], column * dilations[1]
        seen = padded[:, :, down : down + (made[0] - 1) * strides[0] + 1 : strides[0]]
        seen = seen[..., right : right + (made[1] - 1) * strides[1] + 1 : strides[1]]
        seen = seen.reshape(image.shape[0], groups, -1, prod(made))
        taps = filter[:, :, row, column].reshape(groups, -1, filter.shape[1])
        total += taps * seen if filter.shape[1] == 1 else np.matmul(taps, seen)
    return total.reshape(image.shape[0], filter.shape[0], *made)


def _padding(told: Mapping[str, Any], sizes: Any, kernel: Any, strides: Any, dilations: Any) -> tuple[Any, Any]:
    """Zeros before and after each spatial axis."""
    auto = told.get("auto_pad", b"NOTSET")
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        reach = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations, strict=True)]
        made = [-(-size // step) for size, step in zip(sizes, strides, strict=True)]
        ends = [(count - 1) * step + far for count, step, far in zip(made, strides, reach, strict=True)]
        whole = [max(end - size, 0) for end, size in zip(ends, sizes, strict=True)]
        less, more = [size // 2 for size in whole], [size - size // 2 for size in whole]
        return (less, more) if auto == b"SAME_UPPER" else (more, less)
    pads = list(told.get("pads", [0] * 4)) if auto == b"NOTSET" else [0] * 4
    return pads[:2], pads[2:]


def _parts(node: Node) -> Iterator[Node]:
    """A node of ONNX Runtime's own domain as nodes of ONNX's; any other node as it is."""
    if not node.op.startswith("com.microsoft."):
        yield node
        return
    for part in as_standard(node.proto):
        yield Node.of(part)


def _word(node: Node) -> str:
    """The name of a node's operator without its domain."""
    return node.op.rpartition(".")[2]


def _wide(values: Array) -> Array:
    """Numbers in float64; shapes and the like stay integers of 64 bits."""
    return values if values.dtype == np.int64 or values.dtype == bool else values.astype(np.float64)


def _along(vector: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """Scales or zero points in a shape that broadcasts: of all elements, along an axis, or of blocks along it."""
    if vector.size == 1:
        return vector.reshape(())
    if vector.ndim > 1:
        return np.repeat(vector, block or 1, axis).take(np.arange(shape[axis]), axis)
    return vector.reshape([-1 if at == axis % len(shape) else 1 for at in range(len(shape))])


def _size(values: Array, ulps: float) -> Array:
    """So many roundings of values; an infinite one, as log(0) is, has none."""
    return ulps * np.abs(np.where(np.isinf(values), 0, values))


def _less(one: Array, other: Array) -> Array:
    """The difference of two arrays; 0 where both are the same infinity."""
    return np.subtract(one, other, out=np.zeros_like(one), where=one != other)


def _nearest(quotients: Array) -> Array:
    """The nearest whole numbers; what float64 leaves next to a half is a half, and goes to the even one."""
    halves = np.floor(quotients) + 0.5
    return np.rint(np.where(np.abs(quotients - halves) <= TIE * (1 + np.abs(quotients)), halves, quotients))
