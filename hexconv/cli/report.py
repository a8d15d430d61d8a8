"""`hexconv report`: the HTML page, and its plots as files."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.cases import Batch, print_json, write_bytes, write_text
from hexconv.cli.options import check_file, check_folder
from hexconv.cli.progress import counted, waiting
from hexconv.errors import InputError
from hexconv.spec import Target

Many = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative=())]
FOLDERS = (Path("schedules"), Path("schedules/hvx"))
PAGE = Path("reports/index.html")


def report(
    *cases: Path,
    target: Target = "hexagon",
    tables: Path = Path("reports"),
    sweep: Many = (),
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = PAGE,
    plots: Path | None = None,
    plot_format: Annotated[Literal["svg", "png"], Parameter(name="--format")] = "svg",
    json: bool = False,
) -> int:
    """Write one HTML page about cases: caches over VTCM and over time, what other plans would cost, loop nests.

    The page loads nothing and needs no server. The same cases and tables give the same bytes. A case that can't be used
    is left out, and told; the exit code is then 2.

    Args:
        cases: case files (TOML), folders of them, or patterns; without any, the folders `schedules` and
            `schedules/hvx` of the folder that you are in.
        target: where they are to run, which says what kernels they get.
        tables: folder of simulator.csv, hvx.csv and bench.csv; those that are missing are left out.
        sweep: tables that `hexconv sweep` wrote; what was measured of other splits goes beside the closed forms.
        output: the page.
        plots: also write each plot as a file into this folder.
        plot_format: of these files.
        json: print what was written as JSON.
    """
    # Here, since drawing takes a third of a second to load, which no other command should wait for.
    from hexconv.report.page import Page, anchor
    from hexconv.report.sweeps import read_sweeps
    from hexconv.report.tables import read_rates

    if output != PAGE:
        check_file("--output", output)
    check_folder("--plots", plots)
    batch = Batch.of(cases or _all_cases(), target)
    batch.say_fallbacks()
    if not batch.sources:
        return batch.code(False)
    with waiting("drawing"):
        page = Page.of(batch.cases, read_rates(tables), read_sweeps(sweep))
        write_text(output, page.html())
    written = [output]
    if plots:
        for plot in counted(page.plots, "writing", lambda plot: plot.name):
            written.append(plots / f"{anchor(plot.name)}.{plot_format}")
            write_bytes(written[-1], plot.file(plot_format))
    if json:
        print_json([{"file": str(path)} for path in written])
    else:
        print(output if len(written) == 1 else f"{output}, and {len(written) - 1} plots in {plots}")
    return batch.code(True)


def _all_cases() -> list[Path]:
    """The case files of this folder's schedules."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*.toml"))]
    if not found:
        raise InputError("CASE", "nothing, and there is no schedules/*.toml here", "one or more case files")
    return found
