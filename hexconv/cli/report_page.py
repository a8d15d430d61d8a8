"""What `hexconv report` does: it reads cases or plans a network, runs them if asked to, and draws the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hexconv.cli.answers import print_json, write_text
from hexconv.cli.cases import Batch, network_of
from hexconv.cli.memory import memory_bytes
from hexconv.cli.progress import counted, waiting
from hexconv.errors import InputError
from hexconv.lower import lower_case
from hexconv.lower.vtcm import capacity_of
from hexconv.model import Manifest, import_model
from hexconv.network.call_costs import CallCost, call_cost
from hexconv.network.planned_model import plan, question_of
from hexconv.report.costs import read_sweeps
from hexconv.report.page import Page, anchor
from hexconv.report.page.network_view import cases_of, network_view
from hexconv.report.plots import Format
from hexconv.report.tables import read_rates
from hexconv.run.copy_engine import Copies
from hexconv.run.given import Given, bounded, given, named_weights, weights_beside
from hexconv.run.profile import Profile, profile
from hexconv.search import PlannedNetwork, plan_all
from hexconv.spec import Case, Plan, Target
from hexconv.written import write_folder

MODEL_ENDING = ".onnx"
FOLDERS = (Path("schedules"), Path("schedules/hvx"))
COPIES = Copies("early", 0)
"""The page says the same each time."""


@dataclass(frozen=True)
class Asked:
    """What the page is to show, and where it goes.

    Attributes:
        target: the target that kernels are chosen for.
        vtcm: the VTCM that the plans of a network may take; None for all that an architecture has.
        run: whether to run the cases on the simulator.
        seconds: the time that one run may take.
        tables: the folder with the tables of counted and measured figures.
        sweep: the tables with figures that a sweep measured for other splits.
        output: the file of the page.
        plots: the folder for the plots of the page.
        plot_format: the format of these plots.
    """

    target: Target
    vtcm: str | None
    run: bool
    seconds: float
    tables: Path
    sweep: tuple[Path, ...]
    output: Path
    plots: Path | None
    plot_format: Format


@dataclass(frozen=True)
class Weighed:
    """A case with the weights that it is run on."""

    case: Case
    given: Given


def report_page(paths: Sequence[Path], asked: Asked, json: bool) -> int:
    """Write the page; returns 0, or 2 if a case could not be used."""
    if asked.run and asked.target != "hexagon":
        what = f"--run shows the simulator's runs, and the target is {asked.target}"
        raise InputError.because(what, "give --target hexagon, or leave --run out")
    if any(path.suffix == MODEL_ENDING for path in paths):
        return _model_page(paths, asked, json)
    known, named = network_of(paths) or (None, paths or _all_cases())
    if known is None and asked.vtcm is not None:
        what = "--vtcm is for the folder of a network, and case files were given"
        raise InputError.because(
            what, "name one folder that hexconv import wrote, or leave it out: cases state their plans"
        )
    batch = Batch.of(named, asked.target)
    batch.say_fallbacks()
    if not batch.sources:
        return batch.code(False)
    network = _planned(batch, asked, known) if known else None
    runs = list(_weighed(cases_of(network) if network else batch.cases, batch))
    shown = _Shown(network, network_name(known, paths)) if network and known else None
    return _drawn(runs, batch, asked, json, shown)


def _model_page(paths: Sequence[Path], asked: Asked, json: bool) -> int:
    """Write the page of a model, planned as `hexconv build` plans it."""
    if len(paths) > 1:
        raise InputError("CASE", f"{len(paths)} files, one of them a model", "one model, or case files alone")
    limit = memory_bytes(asked.vtcm, "--vtcm") if asked.vtcm is not None else capacity_of(Plan())
    batch = Batch([])
    with waiting("planning"):
        planned = plan(import_model(paths[0]), question_of(limit, target=asked.target))
    weights = {case.name: (case, tensors) for member in planned.members for case, tensors in member.pieces}
    for member in planned.members:
        if member.refused:
            batch.tell(f"{member.case.name}: {member.refused}")
    runs = []
    for case in cases_of(planned.network):
        tensors = weights[case.name][1]
        runs.append(Weighed(case, Given(named_weights(tensors), None, str(paths[0]))))
    return _drawn(runs, batch, asked, json, _Shown(planned.network, paths[0].name, call_cost(planned)))


@dataclass(frozen=True)
class _Shown:
    """A planned network that the page shows."""

    network: PlannedNetwork
    name: str
    cost: CallCost | None = None


def _drawn(runs: Sequence[Weighed], batch: Batch, asked: Asked, json: bool, of: _Shown | None) -> int:
    """Run cases where that was asked for, and draw the page; returns as `report_page`."""
    profiles = _profiles(runs, batch, asked.seconds) if asked.run else {}
    with waiting("drawing"):
        shown = network_view(of.network, of.name, profiles, of.cost) if of else None
        cases = [run.case for run in runs]
        page = Page.of(cases, read_rates(asked.tables), read_sweeps(asked.sweep), profiles, shown)
        html = page.html()
    plots = _plots(page, asked.plot_format) if asked.plots else {}
    write_text(asked.output, html)
    written = write_folder(asked.plots, plots) if asked.plots else []
    _say([asked.output, *written], asked, json)
    return batch.code(True)


def network_name(known: Manifest, paths: Sequence[Path]) -> str:
    """Return the name of a network: that of its model, or else of its folder."""
    return known.model or paths[0].name


def _all_cases() -> list[Path]:
    """Return the case files in `schedules` and `schedules/hvx` of the current folder."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*.toml"))]
    if not found:
        raise InputError.because(
            "no case file given, and none found as schedules/*.toml", "name one or more case files"
        )
    return found


def _planned(batch: Batch, asked: Asked, known: Manifest) -> PlannedNetwork:
    """Plan every chain of a network for the fewest bytes moved."""
    limit = memory_bytes(asked.vtcm, "--vtcm") if asked.vtcm is not None else capacity_of(batch.cases[0].plan)
    with waiting("planning"):
        network = plan_all(batch.cases, question_of(limit, target=asked.target), known)
    for refused in network.refused:
        batch.tell(f"{refused.name}: {refused.reason}")
    return network


def _weighed(cases: Sequence[Case], batch: Batch) -> Iterator[Weighed]:
    """Cases with the weights that lie beside them, as `hexconv run` takes them; pieces of chains get random ones.

    Weights say how far sums go, and so which code a kernel has.
    """
    for case in cases:
        path = next((path for path, source in batch.sources if source.name == case.name), None)
        with batch.telling(case.name):
            tensors = given(case.chain, weights_beside(path) if path else None, None)
            yield Weighed(replace(case, chain=bounded(case.chain, tensors.weights)), tensors)


def _profiles(runs: Sequence[Weighed], batch: Batch, seconds: float) -> dict[str, Profile]:
    """Run and profile every case; if a case can't be run, a line says why, and the page shows it without a run."""
    found: dict[str, Profile] = {}
    for run in counted(runs, "running", lambda run: run.case.name):
        with batch.telling(run.case.name):
            found[run.case.name] = profile(run.case, lower_case(run.case), COPIES, seconds, run.given)
    return found


def _plots(page: Page, kind: Format) -> dict[str, bytes]:
    """Draw the page's plots as files, by their names."""
    plots = counted(page.plots, "drawing", lambda plot: plot.name)
    return {f"{anchor(plot.name)}.{kind}": plot.file(kind) for plot in plots}


def _say(written: Sequence[Path], asked: Asked, json: bool) -> None:
    """Print the names of the files that were written."""
    if json:
        print_json([{"file": str(path)} for path in written])
    else:
        print(written[0] if len(written) == 1 else f"{written[0]}, and {len(written) - 1} plots in {asked.plots}")
