"""What `hexconv best` does: chains planned, their answers written, drawn and verified."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hexconv.cli.cases import MANIFEST, Batch, print_json, say_fallback, write_text
from hexconv.cli.memory import memory_bytes
from hexconv.cli.progress import counted, waiting
from hexconv.cli.show import show
from hexconv.errors import InputError
from hexconv.lower.vtcm import capacity_of
from hexconv.model import Manifest
from hexconv.report import (
    answer_table,
    cuts_lines,
    cuts_table,
    front_table,
    network_lines,
    network_row,
    network_table,
    proof_lines,
    shortfall_lines,
    verified_table,
    write_front_plot,
)
from hexconv.search import Planned, PlannedNetwork, Question, Verified, plan_all, verify
from hexconv.spec.kernel import Target, kernel_words
from hexconv.spec.knobs import Kernel
from hexconv.spec.objective import Objective

SPARE = ("MACs", "packets (model)", "saved")
"""What tables of plans do without in 80 columns."""
SPARE_OF_NETWORKS = ("pieces are", "plans", "saved bytes", "footprint bytes", "pieces")


@dataclass(frozen=True)
class Asked:
    """What to look for, and what to do with it.

    Attributes:
        vtcm: the limit; None for all that an architecture has.
        objective: what is to be least.
        kernel: instead of the cases' own.
        target: where the answers are to run.
        output: folder for the answers.
        plot: file for the front.
        verified: whether to lower, count and run the answers.
        seconds: that a run on the simulator has.
        is_wide: whether tables have all of their columns.
    """

    vtcm: str | None
    objective: Objective
    kernel: Kernel | None
    target: Target
    output: Path | None
    plot: Path | None
    verified: bool
    seconds: float
    is_wide: bool


def best_chains(paths: Sequence[Path], asked: Asked, json: bool) -> int:
    """Plan chains; returns 0 if all fit and hold, 1 if one doesn't, 2 if one can't be used."""
    batch, known = _chains(paths, asked.target)
    if not batch.sources:
        return batch.code(False)
    with waiting("planning"):
        network = _network(batch, asked, known)
    for planned in network.planned:
        say_fallback(planned.name, planned.kernels)
    if asked.plot:
        _plot(network, asked.plot)
    written = _write(network, asked.output) if asked.output else []
    checks = _checks(network, asked.seconds) if asked.verified else []
    if json:
        rows = [{**asdict(check), "holds": check.holds} for check in checks]
        print_json({**network_row(network), "verified": rows, "files": [str(path) for path in written]})
    else:
        _print(network, checks, written, _is_folder(paths), asked.is_wide)
    for line in _undone(network, checks):
        batch.tell(line)
    if network.refused:
        return 2
    fits = network.complete and (_is_folder(paths) or all(chain.found.best for chain in network.planned))
    holds = fits and all(check.holds for check in checks)
    return 2 if holds and any(check.missing for check in checks) else batch.code(holds)


def _undone(network: PlannedNetwork, checks: Sequence[Verified]) -> Iterator[str]:
    """What was asked and could not be done, a line each."""
    for chain in network.refused:
        yield f"{chain.name}: not planned: {chain.reason}"
    for check in checks:
        for run in check.missing:
            yield f"{check.case}: not verified on {run.target}: {run.said}"


def _is_folder(paths: Sequence[Path]) -> bool:
    return len(paths) == 1 and paths[0].is_dir()


def _chains(paths: Sequence[Path], target: Target) -> tuple[Batch, Manifest | None]:
    """The chains of case files; of a folder with a manifest those that it names, in its order."""
    if _is_folder(paths) and (paths[0] / MANIFEST).exists():
        known = Manifest.load(paths[0])
        return Batch.of([paths[0] / f"{chain.case}.toml" for chain in known.chain], target), known
    return Batch.of(paths, target), None


def _network(batch: Batch, asked: Asked, known: Manifest | None) -> PlannedNetwork:
    """All chains, planned; without a limit, one architecture's VTCM is it."""
    limit = _limit(batch, asked.vtcm)
    question = Question(limit, asked.objective, target=asked.target, threads=os.cpu_count() or 1)
    return plan_all(batch.cases, question, known, asked.kernel)


def _limit(batch: Batch, vtcm: str | None) -> int:
    """What the caches may take; where nothing is said, one architecture's VTCM."""
    if vtcm is not None:
        return memory_bytes(vtcm, "--vtcm")
    arches = {(case.plan.arch, case.plan.vtcm_bytes): case.plan for case in batch.cases}
    if len(arches) > 1:
        names = " and ".join(sorted({arch if size is None else f"{arch} of {size} bytes" for arch, size in arches}))
        raise InputError("--vtcm", f"nothing for cases of {names}", "an amount of memory: 4MiB")
    (plan,) = arches.values()
    return capacity_of(plan)


def _plot(network: PlannedNetwork, path: Path) -> None:
    """The front of the one chain."""
    if len(network.planned) != 1:
        raise InputError("--plot", f"{len(network.planned)} chains", "one chain, since one picture holds one front")
    write_front_plot(network.planned[0], path)


def _write(network: PlannedNetwork, folder: Path) -> list[Path]:
    """The case files of all answers."""
    written = []
    for planned in network.planned:
        for winner in planned.winners:
            path = folder / f"{winner.case.name}.toml"
            write_text(path, winner.case.to_toml())
            written.append(path)
    return written


def _checks(network: PlannedNetwork, seconds: float) -> list[Verified]:
    """Every answer, verified: of a chain the whole, and the pieces of its best cut."""
    winners = [winner for planned in network.planned for winner in planned.winners]
    return [verify(winner, seconds) for winner in counted(winners, "verifying", lambda winner: winner.case.name)]


def _print(
    network: PlannedNetwork, checks: Sequence[Verified], written: Iterable[Path], is_folder: bool, is_wide: bool
) -> None:
    """The whole result, to read."""
    if is_folder or len(network.planned) + len(network.refused) > 1:
        show(network_table(network), is_wide, SPARE_OF_NETWORKS)
        _lines(network_lines(network))
    else:
        for planned in network.planned:
            _print_chain(planned, is_wide)
    if checks:
        show(verified_table(checks), is_wide)
    _lines(f"wrote {path}" for path in written)


def _print_chain(planned: Planned, is_wide: bool) -> None:
    """One chain: the answer as a case file, the account of all other plans, the front, the cuts."""
    print(f"{planned.name}: kernel {kernel_words(planned.kernels)}")
    show(answer_table(planned), is_wide, SPARE)
    _lines(proof_lines(planned.found, planned.question))
    if planned.shortfall:
        _lines(shortfall_lines(planned.shortfall))
    show(front_table(planned.found, planned.question), is_wide, SPARE)
    if len(planned.chain.conv) > 1:
        show(cuts_table(planned.cuts), is_wide, SPARE)
        _lines(cuts_lines(planned.cuts, planned.question))
    for winner in planned.winners:
        print(f"# {winner.case.name}.toml", winner.case.to_toml(), sep="\n", end="")


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
