"""Verify a network in two passes: every chain and conv alone, then all together.

1. Alone. Every chain runs on its target, on ONNX Runtime's own input to it, and equals numpy. Every conv of it, by
   numpy, is held against the definition in the model and against ONNX Runtime.
2. Together. Chains that equal numpy are computed by numpy, and ONNX Runtime computes the rest out of their results, so
   that roundings travel to the outputs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.apart import Ending, Limits, Task, cores, do_all
from hexconv.model import Imported, import_model, write_network
from hexconv.model.chains import Run
from hexconv.model.graph import Graph
from hexconv.model.onnx_file import Shapes
from hexconv.run.given import weights_of
from hexconv.run.machine_parts import saturation
from hexconv.search.cuts import piece_of
from hexconv.spec import Case, Chain, Target
from hexconv.verify.definition import Definition
from hexconv.verify.job import JOB
from hexconv.verify.runtime import Array, Values, Whole, inputs_of, runtime
from hexconv.verify.verdict import (
    ChainVerdict,
    Comparison,
    ConvVerdict,
    NetworkVerdict,
    OutputVerdict,
    answer,
    in_model,
    judge,
    nhwc,
)
from hexconv.written import scratch

Done = Callable[[str, int, int], None]
LIMITS = Limits(seconds=86400.0, memory_bytes=16 << 30)
"""The limits of one chain's process; a run on the simulator has a time limit of its own."""
TOP, CLASSES_AT_LEAST = 5, 10
UNCOUNTED = ("QuantizeLinear", "DequantizeLinear", "Identity", "Constant")
"""Nodes outside of chains that are not named as such: they compute nothing of their own."""


@dataclass(frozen=True)
class Asked:
    """How to verify.

    Attributes:
        target: the target that the chains run on.
        vtcm_bytes: the VTCM that the caches of a chain may take.
        workers: how many processes run at a time.
        given: a file with the model's inputs; without one they are drawn.
        shapes: the shapes of inputs whose sizes the model leaves open.
        seed: the seed of the inputs that are drawn.
        isa: the instruction set of the code for the simulator, by default the newest that the simulator runs.
        seconds: the time limit of one run on the simulator.
    """

    target: Target
    vtcm_bytes: int
    workers: int = 1
    given: Path | None = None
    shapes: Shapes = field(default_factory=dict)
    seed: int = 0
    isa: str | None = None
    seconds: float = 1800.0


@dataclass(frozen=True)
class Member:
    """A chain, its weights as it runs with them, and its place in the model.

    Attributes:
        name: the name of its case.
        run: its nodes in the graph.
        chain: the chain as it runs.
        weights: its weights by a run's names.
        dtype: the dtype of its result in the model.
    """

    name: str
    run: Run
    chain: Chain
    weights: Mapping[str, Array]
    dtype: str

    @property
    def replaces(self) -> bool:
        """Whether its result can replace the model's tensor: the same elements, no sums in the place of reals."""
        made = self.chain.output_dtype(len(self.chain.conv) - 1)
        return self.dtype == made or (self.dtype, made) == ("uint16", "int16")

    @property
    def source(self) -> str:
        """The tensor that it reads."""
        return self.run.units[0].source

    @property
    def result(self) -> str:
        """The tensor that it writes."""
        return self.run.units[-1].result

    def answered(self, source: Array, shape: tuple[int, ...]) -> Array:
        """Compute its result in the model's shape with numpy, out of what it reads."""
        made = answer(self.chain, self.weights, nhwc(source, tuple(self.chain.input)))
        return in_model(made.astype(self.chain.output_dtype(len(self.chain.conv) - 1)), shape, self.dtype)


def verify_network(path: Path, asked: Asked, done: Done = lambda *_: None) -> NetworkVerdict:
    """Verify a network.

    Args:
        path: the `.onnx` file.
        asked: how to verify it.
        done: is called after each chain with its name, how many steps are done, and how many there are: the runs, and
            the convs of each chain.

    Raises:
        InputError: the model or its inputs can't be used, or ONNX Runtime refuses the model.
        ToolMissing: ONNX Runtime is not installed.
    """
    runtime()  # a missing ONNX Runtime is reported before anything that takes time
    imported, whole = import_model(path, asked.shapes), Whole.load(path, asked.shapes)
    inputs = inputs_of(whole.graph, whole.inputs, str(path), asked.given, asked.seed)
    found = {**inputs, **whole.tapped(inner_tensors(imported), inputs)}
    with scratch() as folder, cores(asked.workers) as executor:
        members = members_of(imported, folder, asked.target)
        runs = _runs(members, found, folder, asked, executor)
        steps = 2 * len(members)
        ran: dict[int, ChainVerdict] = {}
        for place, ending in runs:
            ran[place] = _ran(members[place].name, ending)
            done(members[place].name, len(ran), steps)
    chains = []
    for place, member in enumerate(members):
        chains.append(replace(ran[place], convs=tuple(judged(imported.graph, whole, member, found))))
        done(member.name, len(members) + place + 1, steps)
    chains, values = _together(whole, members, chains, inputs, found)
    plain = whole.run(inputs)
    outputs = tuple(
        _output(whole, members, chains, name, found[name], values[name], plain[name]) for name in whole.outputs
    )
    others = tuple((conv.node, conv.reason) for conv in imported.network.not_taken)
    return NetworkVerdict(path.name, asked.target, tuple(chains), outputs, others, _outside(imported), saturation())


def inner_tensors(imported: Imported) -> list[str]:
    """The inner tensors that are asked of ONNX Runtime: what each conv reads, its first codes, and its result."""
    units = [unit for run in imported.runs for unit in run.units]
    names = [(unit.source, Definition(imported.graph, unit).first_codes, unit.result) for unit in units]
    return [name for three in names for name in three if imported.graph.maker(name)]


def members_of(imported: Imported, folder: Path, target: Target) -> list[Member]:
    """Write all chains into a folder, and read them as they will run."""
    write_network(imported, folder, weights=True)
    members = []
    for case, run in zip(imported.cases, imported.runs, strict=True):
        chain = Case.load(folder / f"{case.name}.toml", target).chain
        with np.load(folder / f"{case.name}.npz", allow_pickle=False) as arrays:
            weights = dict(arrays)
        written = imported.graph.type_of(run.units[-1].result).dtype
        members.append(Member(case.name, run, chain, weights, written))
    return members


def _runs(
    members: Sequence[Member], found: Values, folder: Path, asked: Asked, executor: Executor
) -> Iterator[tuple[int, Ending]]:
    """Run every chain on ONNX Runtime's own input to it; yield its number and how it ended."""
    how = {name: getattr(asked, name) for name in ("target", "vtcm_bytes", "seconds", "isa")}
    tasks: list[Task] = []
    for member in members:
        image = folder / f"{member.name}.input.npy"
        np.save(image, nhwc(found[member.source], tuple(member.chain.input)), allow_pickle=False)
        case, weights = (str(folder / f"{member.name}.{ending}") for ending in ("toml", "npz"))
        tasks.append({**how, "case": case, "weights": weights, "image": str(image)})
    return do_all(JOB, LIMITS, tasks, executor)


def _ran(name: str, ending: Ending) -> ChainVerdict:
    """What a chain's process says of its run."""
    if ending.how != "answered":
        return ChainVerdict(name, reason=f"{ending.how}: {ending.reason}")
    told: dict[str, Any] = ending.answer
    if reason := told.get("reason", ""):
        return ChainVerdict(name, reason=reason)
    apart = Comparison(**{**told["run"], "at": None if told["run"]["at"] is None else tuple(told["run"]["at"])})
    return ChainVerdict(name, (), apart, "", told["kernels"], tuple(told["pieces"]), told["packets"])


def judged(graph: Graph, whole: Whole, member: Member, found: Values) -> Iterator[ConvVerdict]:
    """Judge every conv of a chain alone."""
    for index, unit in enumerate(member.run.units):
        own = weights_of(member.weights, index, 1)
        yield judge(Definition(graph, unit), piece_of(member.chain, index, index + 1), own, found, whole)


def _together(
    whole: Whole, members: Sequence[Member], chains: Sequence[ChainVerdict], inputs: Values, found: Values
) -> tuple[list[ChainVerdict], dict[str, Array]]:
    """Second pass: return the chains with their results in the network, and the outputs of the network by name."""
    known, verdicts = dict(inputs), []
    for member, verdict in zip(members, chains, strict=True):
        if member.replaces:
            known |= whole.computed([member.source], known)
            theirs = found[member.result]
            known[member.result] = member.answered(known[member.source], theirs.shape)
            verdict = replace(verdict, in_network=Comparison.of("ONNX Runtime", known[member.result], theirs))
        verdicts.append(verdict)
    return verdicts, {**known, **whole.computed(whole.outputs, known)}


def _output(
    whole: Whole,
    members: Sequence[Member],
    chains: Sequence[ChainVerdict],
    name: str,
    alone: Array,
    network: Array,
    plain: Array,
) -> OutputVerdict:
    """Compare one output of the model: ONNX Runtime's alone, and that of the network with its chains replaced."""
    nodes = whole.needed([name], ())
    made = {output for node in nodes for output in node.outputs}
    answers = {verdict.answer for member, verdict in zip(members, chains, strict=True) if member.result in made}
    one, other = alone.astype(np.float64), network.astype(np.float64)
    differs = ~((one == other) | (np.isnan(one) & np.isnan(other)))
    apart = np.where(differs, np.abs(one - other), 0.0)
    fails = differs.any() and "differs" in answers
    return OutputVerdict(
        name=name,
        answer="differs" if fails else "holds" if answers - {"not compared"} else "not compared",
        values=one.size,
        differing=int(np.count_nonzero(differs)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()) if one.size else 0.0,
        range=float(np.ptp(one)) if one.size else 0.0,
        top5_same=top_same(one, other),
        optimised_away=int(np.count_nonzero(~((alone == plain) | ((alone != alone) & (plain != plain))))),
    )


def top_same(one: Array, other: Array) -> bool | None:
    """Whether the largest values of each row belong to the same classes; None where there are no rows of classes."""
    if one.ndim != 2 or one.shape[1] < CLASSES_AT_LEAST:
        return None
    ranks = [np.argsort(-scores, axis=1, kind="stable")[:, :TOP] for scores in (one, other)]
    return bool(np.array_equal(ranks[0], ranks[1]))


@dataclass(frozen=True)
class Outputs:
    """How far the first output of a network is from ONNX Runtime's, over some inputs.

    Attributes:
        inputs: how many inputs there were.
        ranked_alike: how many of the inputs rank the same five classes first, in the same order; None where
            the output has no rows of classes.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        step: the least difference between two of ONNX Runtime's values; where the output is quantised, that of two
            codes.
        differing_share: the share of the values that differ, 0 to 1.
    """

    inputs: int
    ranked_alike: int | None
    largest: float
    mean: float
    step: float
    differing_share: float

    @property
    def largest_steps(self) -> float:
        """The largest difference, counted in steps."""
        return self.largest / self.step if self.step else 0.0


def on_many_inputs(path: Path, count: int) -> Outputs:
    """Compute a network on `count` random inputs, drawn with the seeds from 0 on, and compare its first output.

    Numpy computes the chains, since runs of a chain equal numpy's answer; ONNX Runtime computes all other nodes.

    Raises:
        InputError: the model or its inputs can't be used.
        ToolMissing: ONNX Runtime is not installed.
    """
    imported, whole = import_model(path), Whole.load(path, None)
    with scratch() as folder:
        members = [member for member in members_of(imported, folder, "llvm") if member.replaces]
    pairs: list[tuple[Array, Array]] = []
    for seed in range(count):
        known = inputs_of(whole.graph, whole.inputs, str(path), None, seed)
        theirs = whole.run(known)[whole.outputs[0]]
        for member in members:
            known |= whole.computed([member.source], known)
            shape = tuple(size for size in whole.graph.type_of(member.result).shape or () if isinstance(size, int))
            known[member.result] = member.answered(known[member.source], shape)
        pairs.append((theirs, {**known, **whole.computed(whole.outputs[:1], known)}[whole.outputs[0]]))
    return outputs_of(pairs)


def outputs_of(pairs: Sequence[tuple[Array, Array]]) -> Outputs:
    """Compare pairs of outputs: for each input, ONNX Runtime's and the network's."""
    one, other = (np.stack(values).astype(np.float64) for values in zip(*pairs, strict=True))
    apart, gaps = np.abs(one - other), np.diff(np.unique(one))
    alike = [top_same(*pair) for pair in zip(one, other, strict=True)]
    return Outputs(
        inputs=len(pairs),
        ranked_alike=None if None in alike else sum(map(bool, alike)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()),
        step=float(gaps.min(initial=np.inf)) if len(gaps) else 0.0,
        differing_share=float(np.count_nonzero(apart) / apart.size),
    )


def _outside(imported: Imported) -> dict[str, int]:
    """Count the nodes by operator that depend on the model's input and lie in no chain."""
    graph = imported.graph
    inside = {id(node) for run in imported.runs for unit in run.units for node in Definition(graph, unit).nodes}
    nodes = [node for node in graph.nodes if id(node) not in inside and node.op not in UNCOUNTED]
    return dict(Counter(node.op for node in nodes if not all(map(graph.is_constant, node.outputs))))
