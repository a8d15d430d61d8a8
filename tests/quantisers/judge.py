"""Judge what hexconv makes of a quantised model: every conv gives ONNX's numbers, or says why it doesn't.

A code may differ from ONNX's where the real number before a rounding lies next to a half, since the scale of a chain
is a float32 and its bias whole; elsewhere by what a note of the import says.
"""

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from hexconv.compute import reference
from hexconv.compute.reference import of_conv
from hexconv.errors import HexconvError
from hexconv.model import Imported, import_model, write_network
from hexconv.model.conv_unit import Unit
from hexconv.model.onnx_file import load_model
from hexconv.run.given import bounded, given
from hexconv.spec import Case, choose_kernels
from tests.model.drawn import Drawn
from tests.quantisers.definition import in_double, meaning
from tests.quantisers.tensors import RANGES

Array = np.ndarray
Loaded = tuple[Case, dict[str, Array]]
Kind = Literal["wrong", "float", "unfolded", "cause", "refused", "later", "scalar", "traceback", "verify"]
NEXT_TO_A_HALF = 2.0**-20
"""How far float32 scales move a product, relatively; and how far sums in float64 are from exact."""
NEAR_FLOATS = 2e-5
FIGURE = re.compile(r", by (\d+) after")
MOVES_NOTHING = ("Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Pad")
FOLDS = ("BatchNormalization", "Relu", "Clip", "Max", "Min", "Add", "Sub", "Mul", "Div", "Identity", "Dropout")
FALSE_CAUSES = ("open sizes", "fix the model's input")
"""Of models whose inputs have fixed sizes."""


@dataclass(frozen=True)
class Finding:
    """What is wrong.

    Attributes:
        kind: `wrong`: values differ, and no note says so; `float`: a quantised conv computes in floats, which no note
            says; `unfolded`: what folds into a conv doesn't, though a quantiser is behind it; `cause`: a reason that is
            empty or not true; `refused`: a valid model is refused whole; `later`: a command refuses what import took;
            `scalar`: scalar code on Hexagon without a reason; `traceback`: a fault of hexconv's own; `verify`: a right
            network that does not hold.
        told: what is wrong, in words.
    """

    kind: Kind
    told: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.told}"


@dataclass(frozen=True)
class Judgement:
    """What is wrong with the import of a model, how many of its convs are taken, and why the others aren't."""

    findings: list[Finding]
    taken: int = 0
    not_taken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Graph:
    """Who makes a tensor of a model and who reads it."""

    makers: Mapping[str, onnx.NodeProto]
    readers: Mapping[str, list[onnx.NodeProto]]

    @classmethod
    def of(cls, model: onnx.ModelProto) -> "Graph":
        readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        return cls({name: node for node in model.graph.node for name in node.output}, readers)

    def quantisers(self, result: str, conv: str) -> list[onnx.NodeProto]:
        """The QuantizeLinear nodes between a conv and its result."""
        found, seen, waiting = [], set[str](), [result]
        while waiting:
            node = self.makers.get(waiting.pop())
            if node is None or node.output[0] in seen or node.name == conv:
                continue
            seen.add(node.output[0])
            found += [node] if node.op_type == "QuantizeLinear" else []
            waiting += node.input
        return found

    def is_quantised(self, name: str) -> bool:
        """Whether DequantizeLinear makes a tensor, perhaps with nodes behind it that move no value."""
        node = self.makers.get(name)
        while node is not None and node.op_type in MOVES_NOTHING and node.input:
            node = self.makers.get(node.input[0])
        return node is not None and node.op_type == "DequantizeLinear"

    def folds_until_quantised(self, name: str) -> bool:
        """Whether only what folds is between a conv's result and the one quantiser that follows."""
        while len(readers := self.readers.get(name, [])) == 1:
            if readers[0].op_type == "QuantizeLinear":
                return True
            others = [other for other in readers[0].input if other and other != name]
            if readers[0].op_type not in FOLDS or any(other in self.makers for other in others):
                return False
            name = readers[0].output[0]
        return False


def findings(drawn: Drawn, folder: Path) -> list[Finding]:
    """All that is wrong with hexconv's import of a model; empty if nothing is."""
    return judgement(drawn, folder).findings


def judgement(drawn: Drawn, folder: Path) -> Judgement:
    """What hexconv's import makes of a model; the folder gets the model and its files."""
    path = folder / "model.onnx"
    onnx.save(drawn.model, path)
    try:
        found = import_model(path)
        write_network(found, folder / "out", weights=True)
        network, cases = found.network, _loaded(found, folder / "out")
        later, values = _taken_later(found, folder / "out", cases), _values(drawn, path, found, cases)
        wrong = [*_told(drawn, found), *later, *values]
        return Judgement(wrong, network.taken, [conv.reason for conv in network.not_taken])
    except HexconvError as refusal:
        return Judgement([Finding("refused", str(refusal))])
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Judgement(
            [Finding("traceback", f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")]
        )


def _told(drawn: Drawn, found: Imported) -> Iterator[Finding]:
    """What the manifest says of convs, and what it should."""
    network, graph = found.network, Graph.of(drawn.model)
    named = sorted([*(name for entry in network.chain for name in entry.convs), *(n.node for n in network.not_taken)])
    convs = sorted(node.name for node in drawn.model.graph.node if "Conv" in node.op_type)
    if named != convs:
        yield Finding("cause", f"convs {convs} are {named} in the manifest")
    words = set(re.split(r"[\s,;:()]+", " ".join(network.notes)))
    for conv in network.not_taken:
        if not conv.reason.strip() or any(cause in conv.reason for cause in FALSE_CAUSES):
            yield Finding("cause", f"{conv.node}: {conv.reason}")
    for run, entry in zip(found.runs, network.chain, strict=True):
        for unit in run.units:
            yield from _noted(unit, network.notes)
            node = graph.makers[unit.node.outputs[0]]
            is_quantised = node.op_type == "Conv" and all(graph.is_quantised(name) for name in node.input[:2])
            if unit.dtype.startswith("float") and is_quantised and unit.node.name not in words:
                yield Finding("float", f"{unit.node.name} is a chain of {unit.dtype}; ends: {entry.reason}")
            has_sums = unit.node.op == "Conv" and unit.conv.requantize is None and not unit.dtype.startswith("float")
            if has_sums and graph.folds_until_quantised(node.output[0]) and not unit.unfolded:
                yield Finding("unfolded", f"{unit.node.name}: {entry.reason}")


def _noted(unit: Unit, notes: tuple[str, ...]) -> Iterator[Finding]:
    """What a conv does otherwise than the model, and no note says by how much."""
    for each in unit.inexact:
        figures = [int(figure) for note in notes if each.what in note for figure in FIGURE.findall(note)]
        if (not figures and each.off_steps is not None) or any(figure < (each.off_steps or 0) for figure in figures):
            yield Finding("cause", f"{unit.node.name}: {each}; the notes are {notes}")


def _loaded(found: Imported, folder: Path) -> dict[str, Loaded]:
    """The files of an import: each case with its weights."""
    cases = {}
    for entry in found.network.chain:
        with np.load(folder / f"{entry.case}.npz", allow_pickle=False) as file:
            cases[entry.case] = (Case.load(folder / f"{entry.case}.toml"), dict(file))
    return cases


def _taken_later(found: Imported, folder: Path, cases: Mapping[str, Loaded]) -> Iterator[Finding]:
    """What commands say that read the files of an import."""
    for entry in found.network.chain:
        case, _ = cases[entry.case]
        try:
            chain = bounded(case.chain, given(case.chain, folder / f"{entry.case}.npz", None).weights)
        except HexconvError as refusal:
            yield Finding("later", f"{entry.case}: {refusal}")
            continue
        for name, choice in zip(entry.convs, choose_kernels(chain, None, "hexagon"), strict=True):
            if chain.is_integer and choice.used == "plain" and not choice.why.strip():
                yield Finding("scalar", f"{name} is on scalar code")


def _values(drawn: Drawn, path: Path, found: Imported, cases: Mapping[str, Loaded]) -> Iterator[Finding]:
    """Where chains give other numbers than ONNX, or the model as it is read others than the model."""
    if not found.runs:
        return
    double = in_double(load_model(path))
    graph = Graph.of(double)
    outputs = [output.name for output in drawn.model.graph.output]
    written, read = (meaning(model, drawn.feed, outputs) for model in (in_double(drawn.model), double))
    if not all(np.allclose(written[name], read[name], rtol=1e-12, equal_nan=True) for name in outputs):
        yield Finding("wrong", "the model as it is read has other outputs than the model")
    units = [unit for run in found.runs for unit in run.units]
    behind = {unit.result: graph.quantisers(unit.result, unit.node.name) for unit in units}
    names = {name for unit in units for name in (unit.source, unit.result)}
    names |= {name for nodes in behind.values() for node in nodes for name in (*node.input, *node.output) if name}
    names |= {name for unit in units for name in _scales(graph, unit)}
    tensors = meaning(double, drawn.feed, names)
    for index, entry in enumerate(found.network.chain):
        yield from _chain(found, index, cases[entry.case], tensors, behind, graph)


def _chain(
    found: Imported,
    index: int,
    loaded: Loaded,
    tensors: Mapping[str, Array],
    behind: Mapping[str, list[onnx.NodeProto]],
    graph: Graph,
) -> Iterator[Finding]:
    """Judge the convs of a chain one by one, each on ONNX's own input, and that the chain is these convs in a row."""
    units, (case, weights) = found.runs[index].units, loaded
    filters = [weights[f"filter{number}"] for number in range(1, len(units) + 1)]
    biases = [weights.get(f"bias{number}") for number in range(1, len(units) + 1)]
    image = answer = stored(tensors[units[0].source], case.chain.dtype)
    for number, unit in enumerate(units, 1):
        own = {f"{what}1": vector for what, vector in of_conv(weights, number).items()}
        pair = (filters[number - 1], biases[number - 1])
        judged = Judged(unit, case.chain.conv[number - 1], *pair, own, tensors, graph, found.network.notes)
        source, image = stored(tensors[unit.source], unit.dtype), answer
        given = judged.answer(source)
        yield from judged.findings(given, behind[unit.result])
        answer = given if np.array_equal(source, image) else judged.answer(image)
        answer = answer.astype(unit.alone.output_dtype(0))
    whole = reference(case.chain, stored(tensors[units[0].source], case.chain.dtype), filters, biases, weights)
    if not np.array_equal(whole.astype(answer.dtype), answer):
        yield Finding("wrong", f"{case.name} is not its convs one after the other")


def _scales(graph: Graph, unit: Unit) -> list[str]:
    """The scales of a conv's input and filter, where it is a Conv between quantisers."""
    node = graph.makers.get(unit.node.outputs[0])
    if node is None or unit.conv.requantize is not None or unit.dtype.startswith("float") or node.op_type != "Conv":
        return []
    found = []
    for name in node.input[:2]:
        maker = graph.makers.get(name)
        while maker is not None and maker.op_type != "DequantizeLinear":
            maker = graph.makers.get(maker.input[0])
        found += [maker.input[1]] if maker is not None else []
    return found


def stored(tensor: Array, dtype: str) -> Array:
    """A tensor of a model as a chain has it: NHWC, one axis of space as a row; uint16 about 32768 as int16."""
    moved = np.moveaxis(tensor if tensor.ndim == 4 else tensor[:, :, None], 1, 3)
    return (
        (moved.astype(np.int64) - 32768).astype(dtype) if (str(tensor.dtype), dtype) == ("uint16", "int16") else moved
    )


@dataclass(frozen=True)
class Judged:
    """One conv, with its files' weights, beside the model's tensors."""

    unit: Unit
    conv: object
    filter: Array
    bias: Array | None
    vectors: Mapping[str, Array]
    tensors: Mapping[str, Array]
    graph: Graph
    notes: tuple[str, ...]

    def answer(self, image: Array) -> Array:
        """The conv's output by hexconv's own definition."""
        chain = replace(self.unit.alone, conv=(self.conv,))  # pyright: ignore[reportArgumentType]
        return reference(chain, image, [self.filter], [self.bias], self.vectors)

    def findings(self, answer: Array, quantisers: list[onnx.NodeProto]) -> Iterator[Finding]:
        """Where its output on ONNX's input is neither ONNX's nor as far from it as is said."""
        name, unit = self.unit.node.name, self.unit
        expected = stored(self.tensors[unit.result], unit.alone.output_dtype(0))
        if answer.shape != expected.shape:
            yield Finding("wrong", f"{name}: {answer.shape}, where the model has {expected.shape}")
            return
        if unit.conv.requantize is None:
            yield from self._reals(answer, expected)
            return
        apart = np.abs(answer.astype(np.int64) - expected.astype(np.int64))
        right = apart == 0
        for node in quantisers:
            right |= self._is_near(node, answer if len(quantisers) == 1 else None, apart.shape)
        right |= (apart <= np.ceil(self.off_steps)) & (len(quantisers) > 1)
        if not right.all():
            told = f"{int((~right).sum())} of {right.size} values differ by up to {int(apart[~right].max())}"
            yield Finding("wrong", f"{name}: {told}, where {self.off_steps:.3g} steps are documented")

    @property
    def off_steps(self) -> float:
        """How many steps beyond half of one the notes say that results are off, before they are rounded."""
        return sum(each.off_steps or 0.0 for each in self.unit.inexact)

    def _is_near(self, node: onnx.NodeProto, answer: Array | None, shape: tuple[int, ...]) -> Array:
        """Where the answer is the real number before a quantiser, rounded, but for what is documented.

        Without an answer, since another quantiser comes behind: where the real number is so near to a half.
        """
        bits = RANGES[str(self.tensors[node.output[0]].dtype)]
        zero = self.tensors[node.input[2]].reshape(-1)[0].astype(np.float64) if len(node.input) > 2 else 0.0
        offset = 32768 if (bits[0], self.unit.dtype) == (0, "int16") else 0
        if (real := self.tensors[node.input[0]]).ndim < 3 or (real := stored(real, "float64")).shape != shape:
            return np.zeros(shape, bool)  # a constant that the conv's result meets
        steps = real / self.tensors[node.input[1]].reshape(-1)[0]
        near = NEXT_TO_A_HALF * (np.abs(steps) + 1) + self.off_steps
        by = self.unit.conv.requantize
        assert by
        near = near + (2.0 ** -(by.fraction_bits + 1) if by.fraction_bits is not None else 0)
        if answer is None:
            return np.abs(steps - np.floor(steps) - 0.5) <= near
        return np.abs(np.clip(steps + zero, *bits) - offset - answer) <= 0.5 + near

    def _reals(self, answer: Array, expected: Array) -> Iterator[Finding]:
        """Judge sums, or floats, beside the model's real numbers."""
        answer, expected, unit = answer.astype(np.float64), expected.astype(np.float64), 1.0
        allowed = NEAR_FLOATS * max(float(np.abs(expected).max(initial=0)), 1.0)
        if not self.unit.dtype.startswith("float") and self.unit.node.op == "Conv":
            for name in _scales(self.graph, self.unit):
                scale = self.tensors[name].astype(np.float64)
                unit = unit * (scale.reshape(-1) if scale.size in (1, answer.shape[-1]) else scale.reshape(-1)[:1])
            allowed = allowed + (unit / 2 * (1 + 1e-6) if self.bias is not None else 0)
        apart = np.abs(answer * unit - expected)
        if (wrong := apart > allowed).any():
            told = f"{int(wrong.sum())} of {wrong.size} reals differ by up to {apart.max():g}"
            yield Finding("wrong", f"{self.unit.node.name}: {told}, where {np.max(allowed):g} is documented")
