"""`hexconv best`: the best plan that fits, and the proof; for chains, and for whole networks."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from hexconv.cli.cases import load_cases, print_json, say_fallback, write_text
from hexconv.cli.memory import memory_bytes
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
from hexconv.search import Objective, Planned, PlannedNetwork, Question, Verified, folder_cases, plan_all, verify
from hexconv.spec import Case, Target
from hexconv.spec.kernel import kernel_words
from hexconv.spec.knobs import Kernel

Seconds = Annotated[float, Parameter(validator=Number(gt=0))]


def best(
    *chains: Path,
    vtcm: str | None = None,
    objective: Objective = "traffic",
    kernel: Kernel | None = None,
    target: Target = "hexagon",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    plot: Path | None = None,
    verified: Annotated[bool, Parameter(name="--verify")] = False,
    seconds: Seconds = 60.0,
    json: bool = False,
) -> int:
    """Find the best plan of a chain that fits VTCM, and prove that there is none better; or plan a whole network.

    Every plan that the knobs allow is looked at, and so is every way to cut the chain. Of a case file the chain counts,
    and of its plan the kernel and the architecture. A folder is a network: each of its case files is a chain.

    Exits 1 if nothing fits (in a folder: not even in pieces), or if a figure does not hold when it is verified.

    Args:
        chains: case files (TOML, with or without a plan), or one folder of them.
        vtcm: what the caches may take, such as 4MiB; by default all that the case's architecture has. The host kernel
            has no VTCM: what the filters and the caches of one thread may take.
        objective: what is to be least.
        kernel: instead of the cases' own.
        target: where the answers are to run, which says what kernels chains get that ask for none.
        output: folder for the case files of the answers.
        plot: draw the front of footprint against traffic there (.svg, for one chain).
        verified: lower, count and run the answers, on this machine and on the simulator.
        seconds: the time that a verifying run on the simulator has.
        json: print JSON instead.
    """
    cases, known = _chains(chains, target)
    limit = _limit(cases, vtcm)
    question = Question(limit, objective, target=target, threads=os.cpu_count() or 1)
    network = plan_all(cases, question, known, kernel)
    _say_fallbacks(network)
    if plot:
        _plot(network, plot)
    written = _write(network, output) if output else []
    checks = _checks(network, seconds) if verified else []
    if json:
        rows = [{**asdict(check), "holds": check.holds} for check in checks]
        print_json({**network_row(network), "verified": rows, "files": [str(path) for path in written]})
    else:
        _print(network, checks, written, is_folder=_is_folder(chains))
    fits = network.complete and (_is_folder(chains) or all(chain.found.best for chain in network.planned))
    return 0 if fits and all(check.holds for check in checks) else 1


def _is_folder(paths: Sequence[Path]) -> bool:
    return len(paths) == 1 and paths[0].is_dir()


def _chains(paths: Sequence[Path], target: Target) -> tuple[list[Case], Manifest | None]:
    """The chains of case files, or of a folder."""
    if _is_folder(paths):
        return folder_cases(paths[0])
    if folders := [path for path in paths if path.is_dir()]:
        raise InputError(str(folders[0]), "a folder among other paths", "case files, or one folder")
    return load_cases(paths, target), None


def _limit(cases: list[Case], vtcm: str | None) -> int:
    """What the caches may take; without a limit, one architecture's VTCM is it."""
    if vtcm is not None:
        return memory_bytes(vtcm, "--vtcm")
    arches = {(case.plan.arch, case.plan.vtcm_bytes): case.plan for case in cases}
    if len(arches) > 1:
        names = " and ".join(sorted({arch if size is None else f"{arch} of {size} bytes" for arch, size in arches}))
        raise InputError("--vtcm", f"nothing for cases of {names}", "an amount of memory: 4MiB")
    (plan,) = arches.values()
    return capacity_of(plan)


def _say_fallbacks(network: PlannedNetwork) -> None:
    """Tell, in a line each, which chains get another kernel than was asked for."""
    for planned in network.planned:
        say_fallback(planned.name, planned.kernels)


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
    return [verify(winner, seconds) for planned in network.planned for winner in planned.winners]


def _print(network: PlannedNetwork, checks: Sequence[Verified], written: Iterable[Path], is_folder: bool) -> None:
    """The whole result, to read."""
    if is_folder or len(network.planned) + len(network.refused) > 1:
        show(network_table(network))
        _lines(network_lines(network))
    else:
        for planned in network.planned:
            _print_chain(planned)
        _lines(f"{chain.name}: not planned: {chain.reason}" for chain in network.refused)
    if checks:
        show(verified_table(checks))
    _lines(f"wrote {path}" for path in written)


def _print_chain(planned: Planned) -> None:
    """One chain: the answer as a case file, the account of all other plans, the front, the cuts."""
    print(f"{planned.name}: kernel {kernel_words(planned.kernels)}")
    show(answer_table(planned))
    _lines(proof_lines(planned.found, planned.question))
    if planned.shortfall:
        _lines(shortfall_lines(planned.shortfall))
    show(front_table(planned.found, planned.question))
    if len(planned.chain.conv) > 1:
        show(cuts_table(planned.cuts))
        _lines(cuts_lines(planned.cuts, planned.question))
    for winner in planned.winners:
        print(f"# {winner.case.name}.toml", winner.case.to_toml(), sep="\n", end="")


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
