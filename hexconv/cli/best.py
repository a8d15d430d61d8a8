"""`hexconv best`: the best plan that fits, and the proof; for chains, and for whole networks."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hexconv.cli.options import Count, Rate, Seconds, check_file, check_folder, memory_bytes, model_of, stated_shapes
from hexconv.cli.progress import counted, starting, waiting
from hexconv.errors import InputError
from hexconv.spec.choices import DEFAULT_OBJECTIVE, Engine, Kernel, Objective, Target
from hexconv.spec.places import Caches

if TYPE_CHECKING:
    from hexconv.cli.cases import Batch
    from hexconv.network.call_costs import CallCost
    from hexconv.network.planned_model import PlannedModel
    from hexconv.search import Answer, PlannedNetwork, Question, Verified

SPARE = ("MACs", "packets (model)", "saved")
"""The columns that tables of plans leave out to fit 80 columns."""
SPARE_OF_NETWORKS = ("pieces are", "plans", "saved bytes", "footprint bytes", "pieces")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What to look for, and what to do with it.

    Attributes:
        vtcm: let the caches take this much, such as 4MiB or 4MB; the default is all that the case's architecture has.
        objective: choose what the best plan has least of. time: packets of a thread and copies, by a model; traffic:
            bytes moved, then packets; latency: packets, then bytes of plans that are as quick; footprint: memory.
        bytes_per_packet: the bytes that copies move in the time of a packet, for --objective time; by default what
            published figures of the case's architecture say.
        machine: for --objective time, tell times by this file of a device, which `hexconv calibrate` wrote.
        threads: plan for so many Hexagon threads.
        kernel: plan for this kernel instead of the cases' own; of a model, hmx for the pieces that cost no more by the
            objective on it than on hvx.
        engine: for a model, let the matrix engine requantise exactly, by HVX, or by its own convert (fast), for
            --kernel hmx.
        target: plan for Hexagon, or for this machine (llvm).
        caches: keep all caches in VTCM; or let the search put some outside (anywhere), where all that a kernel reads
            and writes counts as traffic; or only where nothing fits, or much is moved, and it helps (as-needed); or put
            outside whatever HVX kernels read by scalar loads, which are slow on VTCM (no-vtcm-scalar-loads).
        output: write the answers into this folder, with the weights that lie beside the cases, and a network's
            `network.toml`.
        plot: draw the fronts of footprint and of packets against traffic into this .svg file (for one chain).
        run: for --objective latency, and of chains for --objective traffic, run the plans that the model can't part,
            and what a run takes without a plan, on the simulator, if it is here; they decide.
        verified: lower, count and run the answers, wherever their kernel runs, and compare them with the search.
        seconds: stop a run on the simulator after this time.
        wide: show all columns of tables.
        account: of one chain, also show why each other plan was not chosen, the front of footprint against traffic,
            and the cuts.
        shape: for a model, state sizes of an input that it leaves open, `NAME=1,3,224,224`; may be given many times.
    """

    vtcm: str | None = None
    objective: Objective = DEFAULT_OBJECTIVE
    bytes_per_packet: Rate | None = None
    machine: Path | None = None
    threads: Count = 1
    kernel: Kernel | None = None
    engine: Engine = "exact"
    target: Target = "hexagon"
    caches: Caches = "as-needed"
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    plot: Path | None = None
    run: bool = True
    verified: Annotated[bool, Parameter(name="--verify")] = False
    seconds: Seconds = 60.0
    wide: bool = False
    account: Annotated[bool, Parameter(negative=())] = False
    shape: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = ()


DEFAULTS = Options()


def best(*chains: Path, options: Options = DEFAULTS, json: bool = False) -> int:
    """Find the best plan of a chain that fits VTCM, and prove that no searched one is better; or plan a whole network.

    It looks at every way to cut the chain into pieces, and for each piece at the values of all knobs: of stripes and of
    strips of columns, the least that give each number of them. --account lists what was searched. From a case file it
    takes the chain, and from its plan the kernel and the architecture. A folder is a network: each of its case files is
    a chain. The `network.toml` of an import stands for its folder, by itself or among the case files of all of its
    chains.

    It exits with 1 if some chain does not fit even in pieces, or if --verify finds a wrong figure. It exits with 2 if a
    case can't be used, or if a run for --verify could not be made; the other cases are done all the same.

    Args:
        chains: name case files (TOML, with or without a plan), folders of them, or patterns.
        options: what to look for, and what to do with it.
        json: print JSON instead.
    """
    with starting():
        from hexconv.cli.cases import Batch, network_of
        from hexconv.run.machine_parts import check_plots
        from hexconv.search import plan_all

    check_file("--plot", options.plot, ".svg")
    if options.plot:
        check_plots("--plot")
    check_folder("--output", options.output)
    if model := model_of(chains):
        return _best_model(model, options, json)
    if options.engine != "exact":
        raise InputError.because("--engine is for a model (MODEL.onnx)", "leave it out: cases state requantize.engine")
    if options.shape:
        raise InputError.because("--shape is for a model (MODEL.onnx)", "leave it out: cases state their shape")
    known, files = network_of(chains) or (None, chains)
    batch = Batch.of(files, options.target)
    if not batch.sources:
        return batch.code(False)
    question = _question(_limit(batch, options.vtcm), options)
    with waiting("planning"):
        network = _raced(plan_all(batch.cases, question, known, options.kernel), options)
    batch.say_notes()
    return _told(network, batch, options, json)


def _best_model(model: Path, options: Options, json: bool) -> int:
    """Plan a model, and tell what a whole call costs; returns as `best`."""
    from hexconv.cli.cases import Batch, limit_bytes
    from hexconv.model import import_model
    from hexconv.network.call_costs import call_cost
    from hexconv.network.planned_model import plan
    from hexconv.search.question import of_pieces

    with waiting("planning"):
        imported = import_model(model, stated_shapes("best", options.shape))
        asked = of_pieces(options.threads, options.kernel, options.engine)
        question = replace(_question(limit_bytes(options.vtcm), options), **asked)
        # For the least traffic, a model's answer is what build ships: runs of all of its chains would take minutes.
        decided = replace(options, run=options.run and options.objective == "latency")
        planned, batch = plan(imported, question, lambda network: _raced(network, decided)), Batch([])
    for member in planned.members:
        if member.refused and member.case.name not in {each.name for each in planned.network.refused}:
            batch.tell(f"{member.case.name}: not planned: {member.refused}")
    return _told(planned.account, batch, options, json, planned, call_cost(planned))


def _told(
    network: PlannedNetwork,
    batch: Batch,
    options: Options,
    json: bool,
    model: PlannedModel | None = None,
    cost: CallCost | None = None,
) -> int:
    """Draw, write and verify answers where that was asked for, print all, and return the exit code."""
    from hexconv import report
    from hexconv.cli.answers import print_json
    from hexconv.cli.cases import say_fallback

    for answer in network.planned:
        say_fallback(answer.name, answer.kernels)
    if options.plot:
        _plot(network, options.plot)
    written = _write(network, batch, model, options.output) if options.output else []
    checks = _checks(network, options.seconds) if options.verified else []
    if json:
        told = {"verified": checks, "files": [str(path) for path in written]}
        print_json({**report.network_row(network, cost), **told})
    else:
        _print(network, checks, written, options)
        _lines(report.call_lines(cost) if cost else ())
    for line in _undone(network, checks):
        batch.tell(line)
    if network.refused:
        return 2
    holds = network.complete and all(check.holds for check in checks)
    return 2 if holds and any(check.missing for check in checks) else batch.code(holds)


def _undone(network: PlannedNetwork, checks: Sequence[Verified]) -> Iterator[str]:
    """Yield a line for each thing that was asked for and could not be done."""
    for chain in network.refused:
        yield f"{chain.name}: not planned: {chain.reason}"
    for check in checks:
        for run in check.missing:
            yield f"{check.case}: not verified on {run.target}: {run.said}"


def _question(limit: int, options: Options) -> Question:
    from hexconv.search import Question
    from hexconv.search.machine import read_machine
    from hexconv.search.question import in_bands

    for option, given in (("--machine", options.machine), ("--bytes-per-packet", options.bytes_per_packet)):
        if given and options.objective != "time":
            what = f"{option} {given} with --objective {options.objective}, which asks for no time"
            raise InputError.because(what, "leave it out, or take --objective time")
    machine = read_machine(options.machine) if options.machine else None
    how = (options.objective, in_bands(options.threads), options.target, options.caches)
    return Question(limit, *how, bytes_per_packet=options.bytes_per_packet, machine=machine)


def _raced(network: PlannedNetwork, options: Options) -> PlannedNetwork:
    """Decide chains by runs of the plans that the model can't part, where the objective is latency or traffic."""
    if not options.run or options.objective not in ("latency", "traffic"):
        return network
    from hexconv.search.plan_runs import Races, counts_of

    races, counts = Races.of(network.planned), {}
    if races.cases:
        with waiting("running plans"):
            counts = dict(counts_of(races.cases, options.seconds))
    return replace(network, planned=races.decided(counts))


def _limit(batch: Batch, vtcm: str | None) -> int:
    """Return how many bytes the caches may take: as stated, or else the VTCM of the cases' architecture."""
    from hexconv.spec.capacities import capacity_of

    if vtcm is not None:
        return memory_bytes(vtcm, "--vtcm")
    arches = {(case.plan.arch, case.plan.vtcm_bytes): case.plan for case in batch.cases}
    if len(arches) > 1:
        names = " and ".join(sorted({arch if size is None else f"{arch} of {size} bytes" for arch, size in arches}))
        raise InputError.because(f"no --vtcm given for cases of {names}", "give an amount of memory: --vtcm 4MiB")
    (plan,) = arches.values()
    return capacity_of(plan)


def _plot(network: PlannedNetwork, path: Path) -> None:
    """Draw the front of footprint against traffic of the only chain."""
    from hexconv.report.plots.cost_plots import write_front_plot
    from hexconv.report.words import counted as counted_of

    if len(network.planned) != 1:
        raise InputError(
            "--plot", counted_of(len(network.planned), "chain"), "one chain, since one picture holds one front"
        )
    write_front_plot(network.planned[0], path)


def _write(network: PlannedNetwork, batch: Batch, model: PlannedModel | None, folder: Path) -> list[Path]:
    """Write the case files of all answers, their weights where there are some, and a model's manifest."""
    from hexconv.cli.answers import utf8
    from hexconv.model import MANIFEST
    from hexconv.search import planned_manifest
    from hexconv.written import write_folder

    own = {member.case.name: member.weights for member in model.members} if model else None
    files = dict(_files(network, {case.name: path for path, case in batch.sources}, own, folder))
    if manifest := planned_manifest(network):
        files[MANIFEST] = utf8(manifest.to_toml())
    return write_folder(folder, files)


def _files(
    network: PlannedNetwork, sources: Mapping[str, Path], own: Mapping[str, Mapping[str, Any]] | None, folder: Path
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each answer's case file, and of its weights if there are some.

    Args:
        network: the planned chains.
        sources: the case file of each chain; weights may lie beside it.
        own: the weights of each chain of a model; None for case files.
        folder: the folder of the answers.

    Raises:
        InputError: the weights don't belong to the chain.
    """
    from hexconv.cli.answers import utf8
    from hexconv.run.given import given, weights_beside, weights_of

    for answer in network.planned:
        beside = weights_beside(sources[answer.name]) if own is None else None
        weights = own[answer.name] if own else given(answer.chain, beside, None).weights if beside else None
        first = 0
        for winner in answer.winners:
            name, convs = winner.case.name, len(winner.case.chain.conv)
            yield f"{name}.toml", utf8(winner.case.to_toml())
            is_there = beside is not None and (folder / f"{name}.npz").resolve() == beside.resolve()
            if weights and not is_there:
                yield f"{name}.npz", _npz(weights_of(weights, first, convs))
            first += convs


def _npz(arrays: Mapping[str, Any]) -> bytes:
    import numpy as np

    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _checks(network: PlannedNetwork, seconds: float) -> list[Verified]:
    """Verify every answer: of each chain the fused plan, or the pieces of its best cut."""
    from hexconv.search import verify

    winners = [winner for answer in network.planned for winner in answer.winners]
    return [verify(winner, seconds) for winner in counted(winners, "verifying", lambda winner: winner.case.name)]


def _print(network: PlannedNetwork, checks: Sequence[Verified], written: Sequence[Path], options: Options) -> None:
    """Print the whole result for people."""
    from hexconv import report
    from hexconv.cli.answers import show

    if network.manifest or len(network.planned) + len(network.refused) > 1:
        show(report.network_table(network), options.wide, SPARE_OF_NETWORKS)
        _lines(report.network_lines(network))
    else:
        for answer in network.planned:
            _print_chain(answer, options)
    if checks:
        show(report.verified_table(checks), options.wide)
    if written:
        print(f"wrote {len(written)} files into {written[0].parent}" if len(written) > 1 else f"wrote {written[0]}")


def _print_chain(answer: Answer, options: Options) -> None:
    """Print one chain: verdict, the plan of each piece, what it is held against, and the case files."""
    from hexconv import report
    from hexconv.cli.answers import print_text, show
    from hexconv.spec.kernel_choice import kernel_words

    print(report.verdict_line(answer))
    _lines(report.plan_lines(answer))
    print(f"{answer.name}: kernel {kernel_words(answer.kernels)}")
    if answer.race:
        if answer.race.runs:
            show(report.race_table(answer.race), options.wide, ("model off by",))
        _lines(report.race_lines(answer.race))
    _lines(report.beside_lines(answer))
    if len(answer.cuts.quick) > 1:
        show(report.quick_table(answer), options.wide)
    is_of_whole = options.account or not answer.is_cut
    _lines(report.bound_lines(answer.found, answer.question) if is_of_whole else ())
    _lines(report.outside_lines(answer))
    if answer.shortfall:
        missing = list(report.shortfall_lines(answer.shortfall, answer.is_cut))
        _lines(missing if is_of_whole else missing[:1])
    is_chain = len(answer.chain.conv) > 1
    _lines(report.cuts_lines(answer.cuts, answer.question) if is_chain else ())
    if options.account:
        _account(answer, options, is_chain)
    else:
        print(f"--account tells of all {answer.found.proof.plans} plans, the front of footprint, and the cuts")
    for winner in answer.winners:
        print_text(f"# {winner.case.name}.toml\n{winner.case.to_toml()}")


def _account(answer: Answer, options: Options, is_chain: bool) -> None:
    """Print why each other plan was not chosen, the front of footprint against traffic, and the cuts."""
    from hexconv import report
    from hexconv.cli.answers import show

    show(report.answer_table(answer), options.wide, SPARE)
    _lines(report.proof_lines(answer.found))
    show(report.front_table(answer.found, answer.question), options.wide, SPARE)
    if is_chain:
        show(report.cuts_table(answer), options.wide, SPARE)


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
