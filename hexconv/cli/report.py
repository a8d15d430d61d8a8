"""`hexconv report`: reads cases or plans a network, runs them if asked to, and writes the HTML page and its plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, check_file, check_folder, model_of
from hexconv.cli.progress import counted, starting, waiting
from hexconv.errors import InputError
from hexconv.spec.choices import Kernel, Objective, Target

if TYPE_CHECKING:
    from hexconv.cli.cases import Batch
    from hexconv.cli.wanted_model import ModelOptions
    from hexconv.model import Manifest
    from hexconv.network.call_costs import CallCost
    from hexconv.report.page.page import Page
    from hexconv.report.plots import Format
    from hexconv.run.given import Given
    from hexconv.run.profile import Profile
    from hexconv.search import PlannedNetwork
    from hexconv.spec import Case

Many = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative=(), show_default=False)]
PAGE = Path("reports/index.html")
FOLDERS = (Path("schedules"), Path("schedules/hvx"))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What the page is to show, and where it goes.

    Attributes:
        target: choose kernels for Hexagon, or for this machine (llvm).
        vtcm: plan a network with this much VTCM, such as 4MiB; the default is all that its architecture has.
        objective: plan a network for the least of this; the default is that of `hexconv best`.
        threads: plan a network for so many threads; the default is one.
        kernel: give every piece of a network this kernel where it serves, and hmx where it costs no more by the
            objective than hvx does; the others get the fastest.
        shape: for a model, state sizes of an input that it leaves open, `NAME=1,3,224,224`; may be given many times.
        run: run each case on the simulator.
        seconds: stop a run on the simulator after this time.
        tables: take simulator.csv, hvx.csv and bench.csv from this folder, if they are there.
        sweep: take what was measured of other splits from these tables, which `hexconv sweep` wrote.
        output: write the page into this file.
        plots: also write each plot as a file into this folder.
        plot_format: write plots in this format.
    """

    target: Target = "hexagon"
    vtcm: str | None = None
    objective: Objective | None = None
    threads: Count | None = None
    kernel: Kernel | None = None
    shape: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = ()
    run: Annotated[bool, Parameter(negative=())] = False
    seconds: Seconds = 60.0
    tables: Path = Path("reports")
    sweep: Many = ()
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = PAGE
    plots: Path | None = None
    plot_format: Annotated[Literal["svg", "png"], Parameter(name="--format")] = "svg"

    @property
    def of_model(self) -> ModelOptions:
        """The options that `hexconv build` and `verify` have too."""
        from hexconv.build.library import DEFAULT_ISA
        from hexconv.cli.wanted_model import Code, ModelOptions

        code = Code(self.target, DEFAULT_ISA)
        return ModelOptions(code, self.vtcm, self.objective, self.threads, self.shape, kernel=self.kernel)


DEFAULTS = Options()


def report(*cases: Path, options: Options = DEFAULTS, json: bool = False) -> int:
    """Write one HTML page about cases or about a network: memory, traffic, other plans, the loops and what limits them.

    A model, or a folder that `hexconv import` wrote, is a network. The page plans it, and shows the graph of its
    chains, what the plans save and where the most bytes are left; then every chain by its best plan.

    With --run it runs each case on the simulator, and also shows what the thread and the copy engine do over issue
    slots, how near the kernel comes to its limit, and the packets of the inner loops with their stalls.

    The page loads nothing and needs no server. The same cases and tables give the same bytes. If a case can't be used,
    a line says so, the page leaves it out, and the exit code is 2.

    Args:
        cases: name case files (TOML), folders of them, or patterns; or one model (MODEL.onnx), or one folder that is a
            network. The default is `schedules` and `schedules/hvx` of the current folder.
        options: what the page is to show, and where it goes.
        json: print the names of the written files as JSON.
    """
    with starting():
        from hexconv.cli.cases import Batch, network_of
        from hexconv.report.page.network_view import cases_of
        from hexconv.run.machine_parts import check_plots

    check_plots("report")
    if options.output != PAGE:
        check_file("--output", options.output)
    check_folder("--plots", options.plots)
    if options.run and options.target != "hexagon":
        what = f"--run shows the simulator's runs, and the target is {options.target}"
        raise InputError.because(what, "give --target hexagon, or leave --run out")
    if model := model_of(cases):
        return _model_page(model, options, json)
    known, named = network_of(cases) or (None, cases or _all_cases())
    _check_planned(options, is_network=known is not None)
    batch = Batch.of(named, options.target)
    batch.say_fallbacks()
    if not batch.sources:
        return batch.code(False)
    network = _planned(batch, options, known) if known else None
    runs = list(_weighed(cases_of(network) if network else batch.cases, batch))
    shown = _Shown(network, known.model or cases[0].name) if network and known else None
    return _drawn(runs, batch, options, json, shown)


def _check_planned(options: Options, *, is_network: bool) -> None:
    """Refuse what no plan is made for: cases state theirs, and chains of a folder their shapes.

    Raises:
        InputError: an option that plans a network was given with case files, or `--shape` without a model.
    """
    if options.shape:
        raise InputError.because("--shape is for a model (MODEL.onnx)", "leave it out: cases state their shape")
    asked = {"--vtcm": options.vtcm, "--objective": options.objective, "--threads": options.threads}
    asked["--kernel"] = options.kernel
    for option, value in asked.items():
        if value is not None and not is_network:
            raise InputError.because(
                f"{option} is for a network, and case files were given",
                "name a model, or one folder that hexconv import wrote, or leave it out: cases state their plans",
            )


def _model_page(model: Path, options: Options, json: bool) -> int:
    """Write the page of a model, planned as `hexconv build` plans it."""
    from hexconv.cli.cases import Batch
    from hexconv.model import import_model
    from hexconv.network.call_costs import call_cost
    from hexconv.network.planned_model import plan
    from hexconv.report.page.network_view import cases_of
    from hexconv.run.given import Given, named_weights

    batch, wanted = Batch([]), options.of_model.wanted("report")
    with waiting("planning"):
        planned = plan(import_model(model, wanted.shapes), wanted.question)
    weights = {case.name: tensors for member in planned.members for case, tensors in member.pieces}
    for member in planned.members:
        if member.refused:
            batch.tell(f"{member.case.name}: {member.refused}")
    runs = [
        Weighed(case, Given(named_weights(weights[case.name]), None, str(model))) for case in cases_of(planned.account)
    ]
    return _drawn(runs, batch, options, json, _Shown(planned.account, model.name, call_cost(planned)))


@dataclass(frozen=True)
class Weighed:
    """A case with the weights that it is run on."""

    case: Case
    given: Given


@dataclass(frozen=True)
class _Shown:
    """A planned network that the page shows."""

    network: PlannedNetwork
    name: str
    cost: CallCost | None = None


def _drawn(runs: Sequence[Weighed], batch: Batch, options: Options, json: bool, of: _Shown | None) -> int:
    """Run cases where that was asked for, and draw the page; returns as `report`."""
    from hexconv.cli.answers import write_text
    from hexconv.report.costs import read_sweeps
    from hexconv.report.page.network_view import network_view
    from hexconv.report.page.page import Page
    from hexconv.report.tables import read_rates
    from hexconv.written import write_folder

    profiles = _profiles(runs, batch, options.seconds) if options.run else {}
    with waiting("drawing"):
        shown = network_view(of.network, of.name, profiles, of.cost) if of else None
        cases = [run.case for run in runs]
        tables = read_rates(options.tables), read_sweeps(options.sweep)
        page = Page.of(cases, *tables, profiles, shown, batch.telling)
        if not page.cases:
            return batch.code(False)
        html = page.html()
    plots = _plots(page, options.plot_format) if options.plots else {}
    write_text(options.output, html)
    written = write_folder(options.plots, plots) if options.plots else []
    _say([options.output, *written], options, json)
    return batch.code(True)


def _all_cases() -> list[Path]:
    """Return the case files in `schedules` and `schedules/hvx` of the current folder."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*.toml"))]
    if not found:
        raise InputError.because(
            "no case file given, and none found as schedules/*.toml", "name one or more case files"
        )
    return found


def _planned(batch: Batch, options: Options, known: Manifest) -> PlannedNetwork:
    """Plan every chain of a network."""
    from hexconv.cli.cases import limit_bytes
    from hexconv.search import plan_all

    limit = limit_bytes(options.vtcm, batch.cases[0].plan)
    question = replace(options.of_model.wanted("report").question, vtcm_bytes=limit)
    with waiting("planning"):
        network = plan_all(batch.cases, question, known, question.plan.kernel)
    for refused in network.refused:
        batch.tell(f"{refused.name}: {refused.reason}")
    return network


def _weighed(cases: Sequence[Case], batch: Batch) -> Iterator[Weighed]:
    """Cases with the weights that lie beside them, as `hexconv run` takes them; pieces of chains get random ones.

    Weights say how far sums go, and so which code a kernel has.
    """
    from hexconv.run.given import bounded, given, weights_beside

    for case in cases:
        path = next((path for path, source in batch.sources if source.name == case.name), None)
        with batch.telling(case.name):
            tensors = given(case.chain, weights_beside(path) if path else None, None)
            yield Weighed(replace(case, chain=bounded(case.chain, tensors.weights)), tensors)


def _profiles(runs: Sequence[Weighed], batch: Batch, seconds: float) -> dict[str, Profile]:
    """Run and profile every case; if a case can't be run, a line says why, and the page shows it without a run."""
    from hexconv.lower import lower_case
    from hexconv.run.copy_engine import Copies
    from hexconv.run.profile import profile

    copies = Copies("early", 0)  # the page says the same each time
    found: dict[str, Profile] = {}
    for run in counted(runs, "running", lambda run: run.case.name):
        with batch.telling(run.case.name):
            found[run.case.name] = profile(run.case, lower_case(run.case), copies, seconds, run.given)
    return found


def _plots(page: Page, kind: Format) -> dict[str, bytes]:
    """Draw the page's plots as files, by their names."""
    from hexconv.report.page.page import anchor

    plots = counted(page.plots, "drawing", lambda plot: plot.name)
    return {f"{anchor(plot.name)}.{kind}": plot.file(kind) for plot in plots}


def _say(written: Sequence[Path], options: Options, json: bool) -> None:
    """Print the names of the files that were written."""
    from hexconv.cli.answers import print_json

    if json:
        print_json([{"file": str(path)} for path in written])
    else:
        print(written[0] if len(written) == 1 else f"{written[0]}, and {len(written) - 1} plots in {options.plots}")
