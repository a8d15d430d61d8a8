"""Follow a quantised conv to its QuantizeLinear: what lies between becomes multiplier, bias, clamp or table.

conv -> BatchNormalization -> Add -> Relu -> QuantizeLinear      a multiplier and a bias for each channel, a clamp
conv -> Mul -+-> Sigmoid -+-> Mul -> QuantizeLinear              a multiplier, and a table of 256 codes
             +------------+
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

import numpy as np

from hexconv.model.affine import affine_of, clamp_of, limits_of
from hexconv.model.constants import Array
from hexconv.model.graph import Graph, Node, passes
from hexconv.model.multipliers import Scaled, requantize, scale_of
from hexconv.model.pointwise import ELEMENTWISE, MOST_NODES, computed, following, leads_on
from hexconv.model.quantised import Quantised, quantised
from hexconv.model.refused import Refused
from hexconv.spec.dtypes import INTEGER_RANGE

HAS_TABLE = ("uint8", "int8")
"""The dtypes whose convs can look their results up in a table."""
FAR = np.geomspace(1e-6, 1e12, 2000)
PLACES = np.concatenate([-FAR[::-1], [0.0], FAR])
"""Numbers of all sizes; what a function does beyond them no sum of a conv meets."""
WITHIN = 33
"""Places in each code's interval, both ends included, at which the function is computed."""
SLACK = 1e-3
"""Of a code's interval: more than the rounding of multipliers can move a sum."""
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Parts of a range that codes are tried on, where the whole range needs coarser ones."""

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Tabulated:
    """A table of 256 codes in place of a function.

    Attributes:
        scale: the scale of the codes that are looked up.
        zero_point: their zero point.
        codes: the table, int64, [256], from the least code on.
        off_steps: by how much more than half a step a result of the table is away from the exact one at most.
        zero_point_of_result: the zero point of the codes in the table.
        what: the function in words.
    """

    scale: float
    zero_point: int
    codes: Array
    off_steps: float
    zero_point_of_result: int = 0
    what: str = ""


def tabulated(function: Function, ends: tuple[int, int], error: float = 0.0) -> Tabulated:
    """Find codes for a function's argument, and the table from them to codes of its result.

    The codes cover what leads to different results: numbers beyond have the result of the last code. Where that range
    makes codes so coarse that they cost more than a step, a part of it may do better, and is tried.

    Args:
        function: gives the exact result for each number of a vector, in steps of the result, zero point added.
        ends: the least and the most code, of argument and result alike.
        error: by how much arguments may be off.

    >>> found = tabulated(lambda x: np.maximum(x, 0) * 10, (0, 255))
    >>> found.zero_point, float(np.round(found.scale, 3)), found.off_steps <= 0.5
    (0, 0.1, True)
    """

    def limited(places: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num(function(places), nan=ends[0]), *ends)

    low, high = _range(limited, PLACES)
    low, high = _range(limited, np.linspace(low, high, 1 << 14))
    found = _covered(limited, ends, low, high, error)
    if found.off_steps <= 0.5:
        return found
    places = np.union1d(PLACES, np.linspace(low, high, 1 << 15))
    values = limited(places)
    near = [
        (_covered(lambda at: np.interp(at, places, values), ends, low * one, high * two, error).off_steps, one, two)
        for one, two in product(SHARES, SHARES)
    ]
    _, one, two = min(near)
    return min(found, _covered(limited, ends, low * one, high * two, error), key=lambda each: each.off_steps)


def _range(function: Function, places: Array) -> tuple[float, float]:
    """The range, 0 included, outside of which all results round to the same code on each side."""
    codes = np.rint(function(places))
    first, last = np.flatnonzero(codes != codes[0]), np.flatnonzero(codes != codes[-1])
    if not first.size or not last.size:
        return -1.0, 1.0
    return min(float(places[first[0] - 1]), 0.0), max(float(places[last[-1] + 1]), 0.0)


def _covered(function: Function, ends: tuple[int, int], low: float, high: float, error: float) -> Tabulated:
    """Make the table whose codes cover a range: each entry lies in the middle of all results of its code's interval."""
    scale = float(np.float32((high - low) / (ends[1] - ends[0])))
    zero_point = int(np.clip(ceil(ends[0] - low / scale - 0.5), *ends))
    half = 0.5 + SLACK + error / scale
    centres = np.arange(ends[0], ends[1] + 1) - zero_point
    places = (centres[:, None] + np.linspace(-half, half, WITHIN)) * scale
    values = function(places.reshape(-1)).reshape(places.shape)
    least, most = values.min(axis=1), values.max(axis=1)
    for index, beyond in ((0, PLACES[places[0, 0] > PLACES]), (-1, PLACES[places[-1, -1] < PLACES])):
        outside = function(beyond) if beyond.size else values[index]
        least[index], most[index] = min(least[index], outside.min()), max(most[index], outside.max())
    codes = np.rint((least + most) / 2)
    off = float(np.max(np.maximum(codes - least, most - codes))) - 0.5
    return Tabulated(scale, zero_point, codes.astype(np.int64), max(off, 0.0))


QUANTISE = "QuantizeLinear"
OPERATORS = ELEMENTWISE | {"Dropout", QUANTISE}
INT32_MOST = 2**31 - 1
COARSE = 0.25
"""Steps of the output from which on a bias is worth finer units of the sums."""
SMALLEST_RANGE, MOST_SUM = 127, 2**28
"""Elements of filters, and sums, that every dtype and every kernel holds."""
FINEST = 2.0**-8
"""The scale of a channel whose output is constant, where no other channel has one."""


@dataclass(frozen=True)
class Sums:
    """The int32 sums of a conv, and what they stand for.

    Attributes:
        source: the quantised image.
        filter: the quantised filter.
        channels: the number of output channels.
        bias: the bias in units of the sums, float64, [K].
        reach: gives the largest absolute value of each channel's sums without the bias, [K].
        elements: gives the largest absolute value of each channel's filter, zero point subtracted, [K].
    """

    source: Quantised
    filter: Quantised
    channels: int
    bias: Array
    reach: Callable[[], Array]
    elements: Callable[[], Array]

    @property
    def units(self) -> Array:
        """The real number that a unit of each channel's sums stands for, float64, [K]."""
        return np.broadcast_to(self.source.scales.astype(np.float64) * self.filter.scales, (self.channels,))


@dataclass(frozen=True)
class Tail:
    """The nodes behind a conv that fold into it.

    Attributes:
        result: the tensor that they end in.
        scaled: the requantisation; None where nothing folds and the sums are the result.
        factors: the integer by which each channel's filter and bias are multiplied; None where all are 1.
        shifts: what is added to the bias then, in units of the sums, float64, [K]; None where it is nothing.
        off_steps: by how much requantised values may be off before they are rounded, in steps.
        table: the table that requantised codes are looked up in; None where there is none.
        unfolded: why the quantiser behind the conv does not fold; empty where it does, or there is none.
    """

    result: str
    scaled: Scaled | None = None
    factors: Array | None = None
    shifts: Array | None = None
    off_steps: float = 0.0
    table: Tabulated | None = None
    unfolded: str = ""


@dataclass(frozen=True)
class Line:
    """`min(max(value * scale + shift, low), high)` of each channel: float64, [K] each."""

    scale: Array
    shift: Array
    low: Array
    high: Array

    @classmethod
    def identity(cls, channels: int) -> "Line":
        """The values themselves."""
        ones = np.ones(channels)
        return cls(ones, 0 * ones, -np.inf * ones, np.inf * ones)

    def scaled(self, scale: Array, shift: Array) -> "Line":
        """Scale and shift the results."""
        with np.errstate(all="ignore"):
            ends = [np.where(scale == 0, shift, scale * end + shift) for end in (self.low, self.high)]
        return Line(self.scale * scale, self.shift * scale + shift, np.minimum(*ends), np.maximum(*ends))

    def limited(self, low: Array, high: Array) -> "Line":
        """Limit the results: `min(max(result, low), high)`, as Clip does it."""
        ends = [np.minimum(np.maximum(end, low), high) for end in (self.low, self.high)]
        return replace(self, low=ends[0], high=ends[1])

    @property
    def has_limits(self) -> bool:
        """Whether any channel is limited."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def then(self, graph: Graph, node: Node, tensor: str) -> "Line | None":
        """Apply a node that reads the results; None if it does anything but scale, shift and limit them.

        Raises:
            Refused: a scale or a shift is no finite number, or a constant can't be read.
        """
        channels = len(self.scale)
        if node.inputs[0] == tensor and passes(graph, node):
            return self
        if node.op == "HardSigmoid":
            alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
            ones = np.ones(channels)
            return self.scaled(alpha * ones, beta * ones).limited(0 * ones, ones)
        if node.inputs[0] == tensor and (clamp := clamp_of(graph, node)):
            return self.limited(np.full(channels, clamp.low), np.full(channels, clamp.high))
        if limits := limits_of(graph, node, tensor, channels):
            return self.limited(*limits)
        affine = affine_of(graph, node, tensor, channels)
        if affine is None:
            return None
        with np.errstate(all="ignore"):
            scale, shift = affine.values(graph, channels)
        if lost := int(np.sum(~np.isfinite(scale) | ~np.isfinite(shift))):
            raise Refused(f"{_named(node)} behind it has {lost} channels with a scale or shift that is no number")
        return self.scaled(scale, shift)


def tail_of(graph: Graph, tensor: str, sums: Sums) -> Tail:
    """Follow a conv's result to its QuantizeLinear; without one, nothing folds and there is no requantisation.

    Args:
        graph: the graph of the model.
        tensor: the result of the conv, in real numbers.
        sums: what the conv's sums stand for.

    Raises:
        Refused: a constant can't be read or is no number, or no multipliers and shifts hold all scales together.
    """
    line = head = Line.identity(sums.channels)
    at = start = tensor
    stopped = f"{tensor} is read by {len(graph.readers(tensor))} nodes"
    while node := graph.only_reader(at):
        if node.op == QUANTISE and node.inputs[0] == at:
            folded = _quantised(graph, node, line, sums)
            if not folded.unfolded:
                return folded
            stopped = folded.unfolded
            break
        after = line.then(graph, node, at)
        stopped = f"{_named(node)} is no scale, shift or clamp of each channel"
        if after is None:
            break
        line, at = after, node.outputs[0]
        if not line.has_limits:
            head, start = line, at
    function = _function(graph, start)
    if not function or sums.source.dtype not in HAS_TABLE:
        why = _no_table(graph, start) if sums.source.dtype in HAS_TABLE else "a table is for codes of 8 bits"
        return Tail(tensor, unfolded=f"{stopped}, and {why}" if _is_quantised(graph, tensor) else "")
    return _looked_up(graph, start, head, function, sums)


def _quantised(graph: Graph, node: Node, line: Line, sums: Sums) -> Tail:
    """Fold scales, shifts and limits into a quantiser, and all of it into the conv."""
    output = _output(graph, node, sums.source.dtype)
    if isinstance(output, str):
        return Tail("", unfolded=output)
    step, (low, high) = output.scales[0], INTEGER_RANGE[output.dtype]
    with np.errstate(all="ignore"):
        ends, middle = (
            np.clip(np.rint(np.float32(values) / step) + output.zero_point, low, high)
            for values in (np.stack([line.low, line.high]), line.shift)
        )
    is_constant = (line.scale == 0) | (ends[0] == ends[1])
    constants = np.clip(middle, *ends)
    live = ends[:, ~is_constant]
    first, last = (int(live[0, 0]), int(live[1, 0])) if live.size else (low, high)
    if np.any(live != [[first], [last]]) or np.any((constants < first) | (constants > last), where=is_constant):
        return Tail("", unfolded=f"what lies before {_named(node)} limits each channel to a range of its own")
    clamp = None if (first, last) == (low, high) else (first, last)
    return _requantised(node.outputs[0], line, sums, output, clamp, np.where(is_constant, constants, np.nan))


def _requantised(
    result: str, line: Line, sums: Sums, output: Quantised, clamp: tuple[int, int] | None, constants: Array
) -> Tail:
    """Requantise sums that are scaled and shifted.

    A channel whose bias int32 doesn't hold, since its scale is next to nothing, becomes constant: its products come to
    less than half a step then, or its output is at an end of its range.

    Args:
        result: the tensor that is made.
        line: the scale and the shift of each channel.
        sums: the sums.
        output: the scale and zero point of the result.
        clamp: the range of its codes, where it is narrower than the dtype.
        constants: the code of each channel that has one code alone; nan for others.

    Raises:
        Refused: no int32 holds the bias of a channel, and its output isn't constant.
    """
    is_scaled = bool(np.any(line.scale != 1))
    step = float(output.scales[0])
    steps = np.abs(line.scale) * sums.units / step
    with np.errstate(all="ignore"):
        bias = np.sign(line.scale) * sums.bias + line.shift / (np.abs(line.scale) * sums.units)
    is_constant, off = ~np.isnan(constants), 0.0
    if (beyond := ~is_constant & ~(np.abs(bias) <= INT32_MOST)).any():
        low, high = INTEGER_RANGE[output.dtype]
        values = (line.scale * sums.units * sums.bias + line.shift) / step + output.zero_point
        reach = sums.reach() * steps
        at_end = (values + reach < low) | (values - reach > high)
        if np.any(reach > 0.5, where=beyond & ~at_end):
            raise Refused(
                f"its bias comes to {np.max(np.abs(bias[beyond])):g} units of its sums; int32 holds {INT32_MOST}"
            )
        constants = np.where(beyond, np.clip(np.rint(values), *(clamp or (low, high))), constants)
        off, is_constant = float(np.max(reach, where=beyond & ~at_end, initial=0.0)), is_constant | beyond
    bias = np.where(is_constant, 0.0, bias)
    live = steps[~is_constant]
    usual = float(live.min()) if live.size and FINEST**3 < live.min() < 1 else FINEST
    factors = np.where(is_constant, 0, np.sign(line.scale) * _finer(sums, bias, steps))
    steps = np.where(is_constant, usual, steps / np.maximum(np.abs(factors), 1))
    bias = bias * np.abs(factors)
    off = max(off, float(np.max(_lost(bias) * steps, initial=0.0)))
    bias = np.where(is_constant, (constants - output.zero_point) / usual, bias)
    shifts = bias - factors * sums.bias
    scales = scale_of(sums.source.scales, sums.filter.scales, output.scales)
    if is_scaled or np.any(np.abs(factors) != 1):
        scales = steps.astype(np.float32)
        scales = scales[:1] if np.unique(scales).size == 1 else scales
    return Tail(
        result,
        requantize(scales, output.zero_point, clamp, lambda: sums.reach() * np.abs(factors) + np.abs(bias)),
        None if np.all(factors == 1) else factors.astype(np.int64),
        shifts if np.any(shifts) else None,
        off,
    )


def _finer(sums: Sums, bias: Array, steps: Array) -> Array:
    """How often as large filters are stored, [K], so that biases that would lose much are rounded to finer units."""
    coarse = _lost(bias) * steps > COARSE
    if not coarse.any():
        return np.ones(sums.channels)
    room = SMALLEST_RANGE // np.maximum(sums.elements(), 1)
    room = np.minimum(room, MOST_SUM // (np.where(coarse, np.abs(bias), 0.0) + sums.reach() + 1))
    return np.where(coarse, np.maximum(room, 1), 1)


def _lost(bias: Array) -> Array:
    """What a bias loses by rounding to whole units of the sums."""
    return np.abs(bias - np.rint(bias))


def _looked_up(graph: Graph, tensor: str, head: Line, function: Sequence[Node], sums: Sums) -> Tail:
    """Requantise sums to codes of a scale that suits a function, and look the function of these codes up."""
    quantiser = function[-1]
    output = _output(graph, quantiser, sums.source.dtype)
    if isinstance(output, str):
        return Tail(tensor, unfolded=output)
    step, low_high = float(output.scales[0]), INTEGER_RANGE[output.dtype]

    def codes(places: Array) -> Array:
        values = {tensor: places.reshape(1, 1, 1, -1)}
        for node in function[:-1]:
            values |= computed(graph, node, values)
        return values[quantiser.inputs[0]].reshape(-1) / step + output.zero_point

    units = np.abs(head.scale) * sums.units
    with np.errstate(all="ignore"):
        bias = np.sign(head.scale) * sums.bias + head.shift / units
        error = np.max(np.where(units > 0, np.abs(bias - np.rint(bias)) * units, 0.0), initial=0.0)
    made = tabulated(codes, low_high, float(error))
    between = replace(output, scales=np.full(1, made.scale, np.float32), zero_points=np.array([made.zero_point]))
    constants = np.where(
        head.scale == 0, np.clip(np.rint(head.shift / made.scale) + made.zero_point, *low_high), np.nan
    )
    tail = _requantised(quantiser.outputs[0], head, sums, between, None, constants)
    what = " and ".join(_named(node) for node in function[:-1])
    return replace(tail, table=replace(made, zero_point_of_result=output.zero_point, what=what))


def _output(graph: Graph, node: Node, dtype: str) -> Quantised | str:
    """The quantised result of a quantiser; or why a chain of this dtype can't end in it."""
    try:
        found = quantised(graph, node.outputs[0], node.input(1), node.input(2), by=node)
    except Refused as refusal:
        return f"{_named(node)}: {refusal}"
    return found if found.dtype == dtype else f"{_named(node)} makes it {found.dtype}; a chain of {dtype} stays {dtype}"


def _function(graph: Graph, tensor: str) -> Sequence[Node]:
    """The elementwise nodes from a tensor to the nearest quantiser behind them that depends on it alone, last."""
    nodes: list[Node] = []
    for node in following(graph, tensor, OPERATORS):
        nodes.append(node)
        if node.op == QUANTISE and leads_on(graph, tensor, nodes):
            return nodes
    return ()


def _no_table(graph: Graph, tensor: str) -> str:
    """Why what lies between a tensor and the quantiser behind it is no table."""
    nodes = list(following(graph, tensor, OPERATORS))
    readers = (reader for name in (tensor, *(node.outputs[0] for node in nodes)) for reader in graph.readers(name))
    first = next((reader for reader in readers if reader not in nodes), None)
    return f"{_named(first)} is no function of one number" if first else "numbers before its quantiser are given back"


def _is_quantised(graph: Graph, tensor: str) -> bool:
    """Whether a quantiser follows within a few nodes that read no other tensor that changes."""
    waiting, seen = [tensor], {tensor}
    while waiting and len(seen) < MOST_NODES:
        for node in graph.readers(waiting.pop(0)):
            if node.op == QUANTISE:
                return True
            if all(name in seen or graph.is_constant(name) for name in node.inputs if name):
                waiting += [name for name in node.outputs if name not in seen]
                seen |= set(node.outputs)
    return False


def _named(node: Node) -> str:
    return f"{node.op} {node.name}"
