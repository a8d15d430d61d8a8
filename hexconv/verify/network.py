"""Verify a network: the program that `hexconv build` writes, run on its target, step by step, and every conv alone.

1. The program. Chains are planned and compiled, and `network.c` runs with the same operators and objects that `build`
   writes. Each step is held against numpy on what it read, and each operator against ONNX Runtime on its own inputs.
2. Each conv alone, by numpy, on ONNX Runtime's own input, against its definition in the model and ONNX Runtime.
3. The outputs of the run against ONNX Runtime's: roundings travel, and wrong steps would too.

What hexconv has no operator or no plan for takes ONNX Runtime's tensors in the run, and is not compared.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from math import log10
from pathlib import Path

import numpy as np

from hexconv.analyze.needed import needed_macs
from hexconv.apart import Ending, Task, cores
from hexconv.apart.parallel import do_apart
from hexconv.errors import RunFailed, Unsupported
from hexconv.model import Imported, import_model
from hexconv.model.graph import Graph
from hexconv.network.built_network import Wanted, compiled_network, write_compiled
from hexconv.network.compiled import CallRefused, Compiled
from hexconv.network.planned_model import PlannedModel, plan
from hexconv.network.program import Member
from hexconv.network.program_run import JOB, LIMITS, Ran, run_program
from hexconv.network.program_steps import Other, Program
from hexconv.run.given import drawn_inputs, weights_of
from hexconv.run.machine_parts import saturation
from hexconv.search.cuts import piece_of
from hexconv.spec.kernel_choice import kernel_words
from hexconv.verify import compared_steps
from hexconv.verify.compared_steps import Judge, given_to
from hexconv.verify.definition import Definition
from hexconv.verify.input_files import Pixels, files_of, read_inputs
from hexconv.verify.runtime import Array, Values, Whole, form_of, inputs_of, runtime
from hexconv.verify.verdict import (
    Answer,
    ChainVerdict,
    ConvVerdict,
    LeftOut,
    NetworkVerdict,
    Outputs,
    OutputVerdict,
    StepVerdict,
    judge,
    together,
)
from hexconv.working import tell
from hexconv.written import scratch

TOP, CLASSES_AT_LEAST = 5, 10
MOST_FLOAT_MACS = 10**8
"""Scalar code makes about one in two packets; the simulator executes some 10**7 packets a second."""


@dataclass(frozen=True)
class Asked:
    """How to verify.

    Attributes:
        wanted: what the network is built for, and on which inputs it runs.
        seconds: the time limit of one run on the simulator.
        workers: how many processes compile at a time; None for one on each core.
        folder: a folder of inputs on which the first output is compared, too; None for none.
        pixels: how the pixels of images in the folder become floats.
        draws: how many drawn inputs it is compared on besides.
    """

    wanted: Wanted
    seconds: float = 1800.0
    workers: int | None = None
    folder: Path | None = None
    pixels: Pixels = field(default_factory=Pixels)
    draws: int = 0


@dataclass(frozen=True)
class Running:
    """Runs of a built network, in a process apart."""

    folder: Path
    program: Program
    executor: Executor
    seconds: float

    def __call__(self, inputs: Values, given: Mapping[str, Array], keeps: bool) -> Ran | str:
        """Run it once; return what it gave, or why it gave nothing.

        Args:
            inputs: its inputs by name.
            given: what the steps write that hexconv has no operator for, by buffer.
            keeps: whether to keep what each step writes.
        """
        if not self.program.computed:
            return "there is no step that hexconv computes"
        return run_program(self.folder, self.program, inputs, list(given.values()), self._do, keeps, self.seconds)

    def _do(self, task: Task) -> Ending:
        return self.executor.submit(do_apart, JOB, LIMITS, task).result()


def _further(whole: Whole, asked: Asked) -> Iterator[Callable[[], Values]]:
    """Yield functions that make the inputs of further runs, from a folder or drawn."""
    forms = {name: form_of(whole.graph, name, whole.name) for name in whole.inputs}
    if asked.folder:
        yield from (partial(read_inputs, path, forms, asked.pixels) for path in files_of(asked.folder))
    yield from (partial(drawn_inputs, forms, whole.name, None, seed) for seed in range(asked.draws))


def _pair(whole: Whole, run: Running, inputs: Values) -> tuple[Array, Array]:
    """Run on further inputs; return the first output by ONNX Runtime, and that of the run.

    Raises:
        RunFailed: the run gave nothing.
    """
    program = run.program
    left = [compared_steps.tensors_of(program)[step.result.buffer] for step in program.others]
    theirs = {**inputs, **(whole.tapped(left, inputs) if left else whole.run(inputs))}
    ran = run(inputs, given_to(program, theirs), keeps=False)
    if isinstance(ran, str):
        raise RunFailed(f"{whole.name}: {ran}")
    return theirs[program.outputs[0].name], ran.outputs[0]


def verify_network(path: Path, asked: Asked) -> NetworkVerdict:
    """Verify a network.

    Args:
        path: the `.onnx` file.
        asked: how to verify it.

    Raises:
        InputError: the model or its inputs can't be used, or ONNX Runtime refuses the model.
        Unsupported: C gets no input and no output of the model, or ONNX Runtime's tensors have other sizes than the
            model's shapes say.
        ToolMissing: ONNX Runtime is not installed, or what compiles and runs the program.
    """
    runtime()  # a missing ONNX Runtime is reported before anything that takes time
    wanted = asked.wanted
    imported, whole = import_model(path, wanted.shapes), Whole.load(path, wanted.shapes)
    inputs = inputs_of(whole.graph, whole.inputs, str(path), wanted.given, wanted.seed)
    many = list(_further(whole, asked))
    steps = len(imported.cases) + len(many) + 3
    tell("planning", 0, steps)
    planned = simulable(plan(imported, wanted.question))
    imported = planned.imported
    check_ports(path.name, planned.open_program)
    tapped = [*inner_tensors(imported), *step_tensors(planned.open_program, imported.graph)]
    found = {**inputs, **whole.tapped(tapped, inputs)}
    compared_steps.check_given(path.name, planned.open_program, found)
    with scratch() as folder, cores(1) as executor:
        tell("compiling", 1, steps)
        planned, compiled = compiled_as_far(path, planned, asked)
        program = planned.open_program
        write_compiled(path, compiled, found, folder, wanted)
        run = Running(folder, program, executor, asked.seconds)
        tell("running", 2, steps)
        ran = run(inputs, given_to(program, found), keeps=True)
        pairs = []
        for number, draw in enumerate(many if program.outputs else ()):
            tell(f"running input {number + 1} of {len(many)}", 3 + number, steps)
            pairs.append(_pair(whole, run, draw()))
    reason, ran = (ran, None) if isinstance(ran, str) else ("", ran)
    verdicts = tuple(Judge(program, inputs, found, whole).verdicts(ran, reason))
    chains = []
    for place, member in enumerate(planned.members):
        tell(f"judging {member.case.name}", 3 + len(many) + place, steps)
        convs = tuple(judged(imported.graph, whole, member, found))
        chains.append(_chain(member, convs, verdicts, reason))
    plain = whole.run(inputs)
    given, ports = iter(ran.outputs if ran else ()), {port.name for port in program.outputs} if ran else ()
    made = [next(given) if name in ports else _why_none(program, name, reason) for name in whole.outputs]
    outputs = tuple(
        _output(whole, chains, verdicts, name, found[name], got, plain[name])
        for name, got in zip(whole.outputs, made, strict=True)
    )
    compared = {output.name for output in outputs if output.answer != "not compared"}
    is_compared = bool(pairs) and program.outputs[0].name in compared
    return NetworkVerdict(
        path.name,
        wanted.target,
        tuple(chains),
        outputs,
        tuple(LeftOut(conv.node, conv.reason) for conv in imported.network.not_taken),
        dict(Counter(step.told(Other).op for step in program.others if step.told(Other).op != "chain")),
        saturation(),
        verdicts,
        ran.packets if ran else None,
        ran.critical_packets if ran else None,
        reason,
        outputs_of(pairs) if is_compared else None,
        wanted.engine,
    )


def check_ports(model: str, program: Program) -> None:
    """Check that C gets an input or an output of a model, since a function needs a parameter.

    Raises:
        Unsupported: it gets none.
    """
    if not program.inputs and not program.outputs:
        raise Unsupported(f"{model}: {'; '.join(program.lost)}")


def inner_tensors(imported: Imported) -> list[str]:
    """The inner tensors that convs are judged by: what each conv reads, its first codes, and its result."""
    units = [unit for run in imported.runs for unit in run.units]
    names = [(unit.source, Definition(imported.graph, unit).first_codes, unit.result) for unit in units]
    names += [(unit.joined.other, unit.joined.result) for unit in units if unit.joined]
    return [name for several in names for name in several if imported.graph.maker(name)]


def step_tensors(program: Program, graph: Graph) -> list[str]:
    """The inner tensors that steps write, which ONNX Runtime is asked for."""
    return [name for name in compared_steps.tensors_of(program).values() if graph.maker(name)]


def simulable(planned: PlannedModel) -> PlannedModel:
    """Leave out chains of floats that would keep the simulator for hours, since Hexagon runs them in scalar code."""
    if planned.question.target != "hexagon":
        return planned
    reasons = {
        member.case.name: f"it is {chain.dtype}, scalar on Hexagon: it has {macs} multiply-accumulates, at most "
        f"{MOST_FLOAT_MACS} are simulated; --target llvm runs it"
        for member in planned.members
        if not (chain := member.case.chain).is_integer and (macs := needed_macs(chain)) > MOST_FLOAT_MACS
    }
    return planned.leaving(reasons)


def compiled_as_far(path: Path, planned: PlannedModel, asked: Asked) -> tuple[PlannedModel, Compiled]:
    """Compile all chains that can be; those that can't are left out of the program, each with its reason."""
    while True:
        try:
            return planned, compiled_network(path, planned.open_program, asked.wanted, asked.workers)
        except CallRefused as refusal:
            names = {case.name: member.case.name for member in planned.members for case, _ in member.pieces}
            planned = planned.leaving({names[refusal.case]: refusal.reason})


def judged(graph: Graph, whole: Whole, member: Member, found: Values) -> Iterator[ConvVerdict]:
    """Judge every conv of a chain alone, and what it adds."""
    for index, unit in enumerate(member.run.units):
        own, chain = weights_of(member.weights, index, 1), member.case.chain
        convs = (replace(conv, add=None) if number == index else conv for number, conv in enumerate(chain.conv))
        alone = piece_of(replace(chain, conv=tuple(convs)), index, index + 1)
        verdict = judge(Definition(graph, unit), alone, own, found, whole)
        if unit.joined:
            sums = compared_steps.of_add(chain, index, unit.result, unit.joined, found)
            verdict = replace(verdict, comparisons=(*verdict.comparisons, sums))
        yield verdict


def _chain(member: Member, convs: tuple[ConvVerdict, ...], steps: Sequence[StepVerdict], reason: str) -> ChainVerdict:
    """The verdict on a chain, out of those on the steps that call its pieces."""
    names = tuple(case.name for case, _ in member.pieces)
    calls = [step for step in steps if step.operator == "chain" and step.node in names]
    left = [step.reason for step in steps if step.operator == "chain" and step.node == member.case.name]
    runs = [step.run for step in calls if step.run]
    packets = [step.packets for step in calls if step.packets is not None]
    return ChainVerdict(
        case=member.case.name,
        convs=convs,
        run=together("run", runs) if runs else None,
        reason="" if runs else next(filter(None, (*left, member.refused, reason)), ""),
        kernels="; ".join(dict.fromkeys(kernel_words(case.kernels) for case, _ in member.pieces)),
        pieces=names,
        packets=sum(packets) if packets else None,
        in_network=calls[-1].in_network if calls else None,
    )


def _why_none(program: Program, name: str, reason: str) -> str:
    """Why the run gave no output of this name: it gave nothing, or C doesn't get the output."""
    own = (lost for lost in program.lost if lost.startswith(f"{name} "))
    return "the program was not run" if reason else next(own, "C doesn't get it")


def _output(
    whole: Whole,
    chains: Sequence[ChainVerdict],
    steps: Sequence[StepVerdict],
    name: str,
    alone: Array,
    network: Array | str,
    plain: Array,
) -> OutputVerdict:
    """Compare one output of the model: ONNX Runtime's, and that of the run, or why there was none."""
    made = {name, *(output for node in whole.needed([name], ()) for output in node.outputs)}
    calls = {piece: chain for chain in chains for piece in chain.pieces}
    on_the_way = [step for step in steps if not step.tensor or step.tensor in made]
    given = (
        f"{step.node}, which writes it, is ONNX Runtime's in the run: {step.reason}"
        for step in steps
        if step.tensor == name and step.run is None
    )
    missing = network if isinstance(network, str) else next(given, "")
    answers: set[Answer] = {calls[step.node].answer if step.node in calls else step.answer for step in on_the_way}
    if isinstance(network, str) or missing:
        return OutputVerdict(name, "not compared", 0, 0, 0.0, 0.0, 0.0, reason=missing)
    one, other = alone.astype(np.float64), network.astype(np.float64)
    differs = _differ(one, other)
    apart = np.where(differs, np.abs(one - other), 0.0)
    fails = differs.any() and "differs" in answers
    is_compared = bool(answers - {"not compared"})
    return OutputVerdict(
        name=name,
        answer="differs" if fails else "holds" if is_compared else "not compared",
        values=one.size,
        differing=int(np.count_nonzero(differs)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()) if one.size else 0.0,
        range=float(np.ptp(one)) if one.size else 0.0,
        top5_same=top_same(one, other),
        optimised_away=int(np.count_nonzero(_differ(alone, plain))),
        reason="" if is_compared else "no step on the way to it is compared",
    )


def _differ(one: Array, other: Array) -> Array:
    """Where two arrays differ; two that are no numbers are alike."""
    return ~((one == other) | ((one != one) & (other != other)))


def top_same(one: Array, other: Array, count: int = TOP) -> bool | None:
    """Whether the largest values of each row belong to the same classes; None where there are no rows of classes."""
    if one.ndim != 2 or one.shape[1] < CLASSES_AT_LEAST:
        return None
    ranks = [np.argsort(-scores, axis=1, kind="stable")[:, :count] for scores in (one, other)]
    return bool(np.array_equal(ranks[0], ranks[1]))


def outputs_of(pairs: Sequence[tuple[Array, Array]]) -> Outputs:
    """Compare pairs of outputs: for each input, ONNX Runtime's and the network's."""
    one, other = (np.stack(values).astype(np.float64) for values in zip(*pairs, strict=True))
    apart, gaps = np.abs(one - other), np.diff(np.unique(one))
    first, alike = ([top_same(*pair, count) for pair in zip(one, other, strict=True)] for count in (1, TOP))
    noise = float(np.mean(apart**2))
    return Outputs(
        inputs=len(pairs),
        top1_alike=None if None in first else sum(map(bool, first)),
        ranked_alike=None if None in alike else sum(map(bool, alike)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()),
        psnr_db=10 * log10(float(np.ptp(one)) ** 2 / noise) if noise and np.ptp(one) else None,
        step=float(gaps.min(initial=np.inf)) if len(gaps) else 0.0,
        differing_share=float(np.count_nonzero(apart) / apart.size),
    )
