"""What `hexconv best` does: it plans chains, and writes, draws and verifies the answers, with their weights."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from hexconv.cli.answers import print_json, utf8
from hexconv.cli.cases import Batch, network_of, say_fallback
from hexconv.cli.memory import memory_bytes
from hexconv.cli.progress import counted, tenths, waiting
from hexconv.cli.shapes import stated_shapes
from hexconv.cli.show import show
from hexconv.errors import InputError
from hexconv.lower.vtcm import capacity_of
from hexconv.model import MANIFEST, Manifest, import_model
from hexconv.network.call_costs import CallCost, call_cost
from hexconv.network.planned_model import PlannedModel, plan
from hexconv.report import (
    answer_table,
    beside_lines,
    bound_lines,
    call_lines,
    cuts_lines,
    cuts_table,
    front_table,
    network_lines,
    network_row,
    network_table,
    outside_lines,
    plan_lines,
    proof_lines,
    quick_table,
    race_lines,
    race_table,
    shortfall_lines,
    verdict_line,
    verified_table,
    write_front_plot,
)
from hexconv.report.words import counted as counted_of
from hexconv.run.given import given, weights_beside, weights_of
from hexconv.search import (
    Answer,
    PlannedNetwork,
    Question,
    Verified,
    plan_all,
    planned_manifest,
    verify,
)
from hexconv.search.plan_runs import cases_to_run, counts_of, raced
from hexconv.search.question import in_bands
from hexconv.spec import Plan
from hexconv.spec.choices import Objective
from hexconv.spec.kernel_choice import Target, kernel_words
from hexconv.spec.kernels import Kernel
from hexconv.spec.places import Caches
from hexconv.written import write_folder


def weights_files(answer: Answer, source: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of `NAME.npz` for every answer of a chain, if `NAME.npz` lies beside its case file.

    Args:
        answer: what was found for the chain.
        source: the case file of the chain.
        folder: the folder of the answers.

    Raises:
        InputError: the weights don't belong to the chain.
    """
    beside = weights_beside(source)
    weights = given(answer.chain, beside, None).weights if beside else None
    if not beside or not weights:
        return
    for name, first, convs in _answers(answer):
        path = folder / f"{name}.npz"
        if path.resolve() != beside.resolve():
            yield path.name, _npz(weights_of(weights, first, convs))


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _answers(answer: Answer) -> Iterator[tuple[str, int, int]]:
    """Yield the name of every answer, the number of convs of the chain before its own, and how many convs it has."""
    pieces = answer.cuts.best.pieces if answer.cuts.best else ()
    for piece, winner in zip(pieces, answer.winners, strict=True):
        yield winner.case.name, piece.first - 1, len(piece.chain.conv)


MODEL_ENDING = ".onnx"
SPARE = ("MACs", "packets (model)", "saved")
"""The columns that tables of plans leave out to fit 80 columns."""
SPARE_OF_NETWORKS = ("pieces are", "plans", "saved bytes", "footprint bytes", "pieces")


@dataclass(frozen=True)
class Asked:
    """What to look for, and what to do with it.

    Attributes:
        vtcm: the most VTCM that the caches may take, as text; None for all that an architecture has.
        objective: what the best plan has least of.
        bytes_per_packet: the bytes that copies move in the time of a packet; None for those of the architecture.
        threads: the Hexagon threads that a plan is to have.
        kernel: the kernel to plan for instead of the cases' own.
        target: where the answers are to run.
        caches: which caches may lie outside of VTCM.
        output: the folder for the answers.
        plot: the file for the front of footprint against traffic.
        run: whether to run the best plans by the model of latency, so that the fastest one is the answer.
        verified: whether to lower, count and run the answers.
        seconds: the time that one run on the simulator may take.
        is_wide: whether tables have all of their columns.
        account: whether to tell of all other plans too.
        shapes: the sizes of a model's inputs that it leaves open, as texts.
    """

    vtcm: str | None
    objective: Objective
    bytes_per_packet: float | None
    threads: int
    kernel: Kernel | None
    target: Target
    caches: Caches
    output: Path | None
    plot: Path | None
    run: bool
    verified: bool
    seconds: float
    is_wide: bool
    account: bool
    shapes: Sequence[str] = ()


def best_chains(paths: Sequence[Path], asked: Asked, json: bool) -> int:
    """Plan chains, or a model; returns 0 if all fit and hold, 1 if one doesn't, 2 if a case can't be used or run."""
    if any(path.suffix == MODEL_ENDING for path in paths):
        return best_model(paths, asked, json)
    if asked.shapes:
        raise InputError.because("--shape is for a model (MODEL.onnx)", "leave it out: cases state their shape")
    batch, known = _chains(paths, asked.target)
    if not batch.sources:
        return batch.code(False)
    network = _network(batch, asked, known)
    if asked.run:
        network = _raced(network, asked.seconds)
    for answer in network.planned:
        say_fallback(answer.name, answer.kernels)
    batch.say_notes()
    if asked.plot:
        _plot(network, asked.plot)
    written = _write(network, batch, asked.output) if asked.output else []
    return _told(network, batch, written, asked, json)


def best_model(paths: Sequence[Path], asked: Asked, json: bool) -> int:
    """Plan a model, and tell what a whole call costs; returns as `best_chains`."""
    if len(paths) > 1:
        raise InputError("CHAIN", f"{len(paths)} files, one of them a model", "one model, or case files alone")
    with waiting("planning"):
        imported = import_model(paths[0], stated_shapes("best", asked.shapes))
        limit = memory_bytes(asked.vtcm, "--vtcm") if asked.vtcm is not None else capacity_of(Plan())
        question = replace(_question(limit, asked), plan=in_bands(asked.threads, asked.kernel))
    planned = plan(imported, question, lambda network: _raced(network, asked.seconds) if asked.run else network)
    network, batch = planned.network, Batch([])
    for member in planned.members:
        if member.refused and member.case.name not in {each.name for each in network.refused}:
            batch.tell(f"{member.case.name}: not planned: {member.refused}")
    for answer in network.planned:
        say_fallback(answer.name, answer.kernels)
    if asked.plot:
        _plot(network, asked.plot)
    written = _write_model(planned, asked.output) if asked.output else []
    return _told(network, batch, written, asked, json, call_cost(planned))


def _write_model(planned: PlannedModel, folder: Path) -> list[Path]:
    """Write the case files of all pieces, each with its weights, and the model's manifest."""
    files = dict[str, bytes]()
    for member in planned.members:
        first = 0
        for case, _ in member.pieces:
            convs = len(case.chain.conv)
            files[f"{case.name}.toml"] = utf8(case.to_toml())
            files[f"{case.name}.npz"] = _npz(weights_of(member.weights, first, convs))
            first += convs
    if manifest := planned_manifest(planned.network):
        files[MANIFEST] = utf8(manifest.to_toml())
    return write_folder(folder, files)


def _told(
    network: PlannedNetwork,
    batch: Batch,
    written: Sequence[Path],
    asked: Asked,
    json: bool,
    cost: CallCost | None = None,
) -> int:
    """Verify answers where that was asked for, print all, and return the exit code."""
    checks = _checks(network, asked.seconds) if asked.verified else []
    if json:
        rows = [{**asdict(check), "holds": check.holds} for check in checks]
        told = {"verified": rows, "files": [str(path) for path in written]}
        print_json({**network_row(network, cost), **told})
    else:
        _print(network, checks, written, asked)
        _lines(call_lines(cost) if cost else ())
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


def _chains(paths: Sequence[Path], target: Target) -> tuple[Batch, Manifest | None]:
    """The chains of case files; of a network, those that its manifest names, in its order."""
    if named := network_of(paths):
        known, files = named
        return Batch.of(files, target), known
    return Batch.of(paths, target), None


def _network(batch: Batch, asked: Asked, known: Manifest | None) -> PlannedNetwork:
    """Plan all chains; without a given limit, the VTCM of the cases' architecture is the limit."""
    cases = counted(batch.cases, "planning", attrgetter("name"))
    return plan_all(cases, _question(_limit(batch, asked.vtcm), asked), known, asked.kernel)


def _question(limit: int, asked: Asked) -> Question:
    speed = asked.bytes_per_packet
    return Question(limit, asked.objective, in_bands(asked.threads), asked.target, asked.caches, bytes_per_packet=speed)


def _raced(network: PlannedNetwork, seconds: float) -> PlannedNetwork:
    """Decide chains by runs of the plans that the model can't part, where the objective is latency."""
    cases = cases_to_run(network.planned)
    if not cases:
        return network
    counts = dict(each for each in tenths(counts_of(cases, seconds), "running", len(cases)))
    return replace(network, planned=raced(network.planned, counts))


def _limit(batch: Batch, vtcm: str | None) -> int:
    """Return how many bytes the caches may take: as stated, or else the VTCM of the cases' architecture."""
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
    if len(network.planned) != 1:
        raise InputError(
            "--plot", counted_of(len(network.planned), "chain"), "one chain, since one picture holds one front"
        )
    write_front_plot(network.planned[0], path)


def _write(network: PlannedNetwork, batch: Batch, folder: Path) -> list[Path]:
    """Write the case files of all answers, their weights if weights lie beside the cases, and a model's manifest."""
    sources, files = {case.name: path for path, case in batch.sources}, dict[str, bytes]()
    for answer in network.planned:
        files |= {f"{winner.case.name}.toml": utf8(winner.case.to_toml()) for winner in answer.winners}
        files |= weights_files(answer, sources[answer.name], folder)
    if manifest := planned_manifest(network):
        files[MANIFEST] = utf8(manifest.to_toml())
    return write_folder(folder, files)


def _checks(network: PlannedNetwork, seconds: float) -> list[Verified]:
    """Verify every answer: of each chain the fused plan, or the pieces of its best cut."""
    winners = [winner for answer in network.planned for winner in answer.winners]
    return [verify(winner, seconds) for winner in counted(winners, "verifying", lambda winner: winner.case.name)]


def _print(network: PlannedNetwork, checks: Sequence[Verified], written: Sequence[Path], asked: Asked) -> None:
    """Print the whole result for people."""
    if network.manifest or len(network.planned) + len(network.refused) > 1:
        show(network_table(network), asked.is_wide, SPARE_OF_NETWORKS)
        _lines(network_lines(network))
    else:
        for answer in network.planned:
            _print_chain(answer, asked)
    if checks:
        show(verified_table(checks), asked.is_wide)
    if written:
        print(f"wrote {len(written)} files into {written[0].parent}" if len(written) > 1 else f"wrote {written[0]}")


def _print_chain(answer: Answer, asked: Asked) -> None:
    """Print one chain: verdict, the plan of each piece, what it is held against, and the case files."""
    print(verdict_line(answer))
    _lines(plan_lines(answer))
    print(f"{answer.name}: kernel {kernel_words(answer.kernels)}")
    if answer.race:
        show(race_table(answer.race), asked.is_wide)
        _lines(race_lines(answer.race))
    _lines(beside_lines(answer))
    if len(answer.cuts.quick) > 1:
        show(quick_table(answer), asked.is_wide)
    is_of_whole = asked.account or not answer.is_cut
    _lines(bound_lines(answer.found, answer.question) if is_of_whole else ())
    _lines(outside_lines(answer))
    if answer.shortfall:
        missing = list(shortfall_lines(answer.shortfall, answer.is_cut))
        _lines(missing if is_of_whole else missing[:1])
    is_chain = len(answer.chain.conv) > 1
    _lines(cuts_lines(answer.cuts, answer.question) if is_chain else ())
    if asked.account:
        _account(answer, asked, is_chain)
    else:
        print(f"--account tells of all {answer.found.proof.plans} plans, the front of footprint, and the cuts")
    for winner in answer.winners:
        print(f"# {winner.case.name}.toml", winner.case.to_toml(), sep="\n", end="")


def _account(answer: Answer, asked: Asked, is_chain: bool) -> None:
    """Print why each other plan was not chosen, the front of footprint against traffic, and the cuts."""
    show(answer_table(answer), asked.is_wide, SPARE)
    _lines(proof_lines(answer.found))
    show(front_table(answer.found, answer.question), asked.is_wide, SPARE)
    if is_chain:
        show(cuts_table(answer.cuts), asked.is_wide, SPARE)


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
