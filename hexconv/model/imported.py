"""Import a model as cases: one per chain, with the manifest that says what became of every conv."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

import numpy as np

from hexconv.errors import InputError
from hexconv.model.chains import Run, adds_of, find_runs
from hexconv.model.constants import Array
from hexconv.model.graph import Graph
from hexconv.model.integer import settled_weights
from hexconv.model.manifest import MANIFEST, ChainEntry, Manifest
from hexconv.model.multipliers import ROUNDING
from hexconv.model.onnx_file import Shapes, load_model
from hexconv.model.refused import Refused
from hexconv.model.unfused import unfused_operators
from hexconv.model.units import Convs, convs_inside, convs_of
from hexconv.spec import Case
from hexconv.spec.names import bias_name, filter_name
from hexconv.whitelist import slug
from hexconv.written import whole_folder

SHOWN_NAMES = 3


@dataclass(frozen=True)
class Imported:
    """The chains that were found in a model, as cases.

    Attributes:
        network: the manifest.
        cases: the cases of its chains, in the manifest's order, none with a plan.
        runs: the same chains as parts of the graph.
        graph: the graph of the model.
        convs: the convs of the model.
    """

    network: Manifest
    cases: tuple[Case, ...]
    runs: tuple[Run, ...] = field(repr=False)
    graph: Graph = field(repr=False)
    convs: Convs = field(repr=False)

    def joining(self, apart: Collection[str] = ()) -> "Imported":
        """Return the same model with Adds in the epilogues of convs, wherever a chain has both tensors.

        Args:
            apart: the results of the convs whose Adds stay operators.
        """
        adds = {result: joined for result, joined in adds_of(self.graph, self.convs).items() if result not in apart}
        runs = find_runs(self.graph, self.convs, adds)
        is_same = [run.tensors for run in runs] == [run.tensors for run in self.runs]
        return self if is_same else _imported(self.network, self.graph, self.convs, runs)

    def weights(self, index: int) -> dict[str, Array]:
        """Weights of a chain by a run's names: `filter1` (OIHW), `bias1` ([K]) where there is one, `filter2`, ...

        Where requantisations have one value for each channel, `multiplier1`, `shift1`, ... ([K]) are there too.

        Raises:
            InputError: the model's data can't be read.
        """
        arrays: dict[str, Array] = {}
        for number, unit in enumerate(self.runs[index].units, 1):
            try:
                folded = settled_weights(self.graph, unit)
            except Refused as refusal:
                what = f"{self.network.model}: {unit.node.name}: {refusal}"
                raise InputError.because(what, "give it finite, readable weights") from None
            arrays[filter_name(number)] = np.ascontiguousarray(folded.filter)
            if folded.bias is not None:
                arrays[bias_name(number)] = folded.bias
            arrays |= {f"{what}{number}": vector for what, vector in folded.vectors.items()}
        return arrays


def import_model(path: Path, shapes: Shapes | None = None, blocks: bool = False) -> Imported:
    """Find the chains of an ONNX model.

    Args:
        path: the `.onnx` file; external data lies beside it.
        shapes: the shapes of the model's inputs, by name, where the model leaves sizes open.
        blocks: whether Adds are parts of chains (`Imported.joining`).

    Raises:
        InputError: the file can't be used.
    """
    model = load_model(path, shapes)
    graph = Graph.of(model, path.parent)
    convs = convs_of(graph)
    known = Manifest(model=path.name, not_taken=(*convs.not_taken, *convs_inside(model)))
    imported = _imported(known, graph, convs, find_runs(graph, convs, {}))
    return imported.joining() if blocks else imported


def _imported(known: Manifest, graph: Graph, convs: Convs, runs: tuple[Run, ...]) -> Imported:
    """Name the chains, and write them and what lies outside of them into the manifest that is known."""
    digits = max(2, len(str(len(runs))))
    names = [f"{number:0{digits}d}-{slug(run.units[0].node.name)}" for number, run in enumerate(runs, 1)]
    makers = {run.result: name for name, run in zip(names, runs, strict=True)}
    network = replace(
        known,
        notes=_notes(runs),
        chain=tuple(_entry(name, run, _befores(run, makers, graph)) for name, run in zip(names, runs, strict=True)),
        operator=unfused_operators(graph, runs),
    )
    cases = tuple(Case(name, run.chain, states_plan=False) for name, run in zip(names, runs, strict=True))
    return Imported(network, cases, runs, graph, convs)


def _entry(name: str, run: Run, after: tuple[str, ...]) -> ChainEntry:
    """The entry of a chain in the manifest."""
    return ChainEntry(
        case=name,
        convs=tuple(unit.node.name for unit in run.units),
        input=run.units[0].source,
        output=run.result,
        ended_by=run.ending.op,
        reason=run.ending.reason,
        after=after,
    )


def _befores(run: Run, makers: Mapping[str, str], graph: Graph) -> tuple[str, ...]:
    """The names of the chains whose results reach the tensor that a chain reads, sorted."""
    found, seen, todo = set[str](), set[str](), [run.units[0].source]
    while todo:
        tensor = todo.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor in makers:
            found.add(makers[tensor])
        elif maker := graph.maker(tensor):
            todo += [name for name in (*maker.inputs, *maker.captured) if name]
    return tuple(sorted(found))


def _notes(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Notes on what chains do differently from the model, and by how much at most."""
    units = [unit for run in runs for unit in run.units]
    rounds = any(unit.conv.requantize for unit in units)
    causes: dict[str, list[tuple[float, str]]] = {}
    said: dict[str, list[str]] = {}
    for unit in units:
        for each in unit.inexact:
            causes.setdefault(each.what, []).append(
                (-1.0 if each.off_steps is None else each.off_steps, unit.node.name)
            )
        for note in unit.notes:
            said.setdefault(note, []).append(unit.node.name)
    inexact = [f"{what}{_most(*max(found))}" for what, found in causes.items()]
    return (*([ROUNDING] if rounds else []), *inexact, *(f"{some(names)}: {note}" for note, names in said.items()))


def _most(off_steps: float, name: str) -> str:
    """The most by which results are off, as the end of a sentence; where they are sums, that is half a unit of them."""
    if off_steps < 0:
        return f", off by at most half a unit ({name})"
    codes = max(ceil(off_steps), 1)
    return f", off by at most {off_steps:.2g} steps of the output before rounding, by {codes} after ({name})"


def some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are.

    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def write_network(imported: Imported, folder: Path, weights: bool = False) -> list[Path]:
    """Write all files into `folder`, which is made if need be; return their paths.

    Files of an earlier import that this one doesn't have are removed: the old manifest names them. Nothing
    else in the folder is touched, and nothing outside of it. If weights can't be read, nothing is written at all.

    Args:
        imported: the imported model.
        folder: where to write.
        weights: whether to write `CASE.npz` too.

    Raises:
        NotWritten: the folder can't be written to.
        InputError: weights can't be read.
    """
    texts = {f"{case.name}.toml": case.to_toml() for case in imported.cases}
    texts[MANIFEST] = imported.network.to_toml()
    arrays = {f"{case.name}.npz": index for index, case in enumerate(imported.cases)} if weights else {}
    with whole_folder(folder) as made:
        for name, index in arrays.items():
            np.savez(made / name, allow_pickle=False, **imported.weights(index))
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        stale = _earlier(folder) - texts.keys() - arrays.keys()
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    return [folder / name for name in (*texts, *arrays)]


def _earlier(folder: Path) -> set[str]:
    """The names of the files that an earlier import wrote into the folder."""
    if not (folder / MANIFEST).exists():
        return set()
    cases = [chain.case for chain in Manifest.load(folder).chain]
    return {f"{case}.{ending}" for case in cases for ending in ("toml", "npz")}
