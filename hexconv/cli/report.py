"""`hexconv report`: the HTML page, and its plots as files."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.cases import load_cases, print_json, say_fallbacks, write_bytes, write_text
from hexconv.errors import InputError
from hexconv.spec import Target

Many = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative=())]
FOLDERS = (Path("schedules"), Path("schedules/hvx"))


def report(
    *cases: Path,
    target: Target = "hexagon",
    tables: Path = Path("reports"),
    sweep: Many = (),
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("reports/index.html"),
    plots: Path | None = None,
    plot_format: Annotated[Literal["svg", "png"], Parameter(name="--format")] = "svg",
    json: bool = False,
) -> int:
    """Write one HTML page about cases: caches over VTCM and over time, what other plans would cost, loop nests.

    The page loads nothing and needs no server. The same cases and tables give the same bytes.

    Args:
        cases: case files (TOML); without any, those of ./schedules and ./schedules/hvx.
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

    loaded = load_cases(cases or _all_cases(), target)
    say_fallbacks(loaded)
    page = Page.of(loaded, read_rates(tables), read_sweeps(sweep))
    write_text(output, page.html())
    written = [output]
    if plots:
        for plot in page.plots:
            written.append(plots / f"{anchor(plot.name)}.{plot_format}")
            write_bytes(written[-1], plot.file(plot_format))
    if json:
        print_json([{"file": str(path)} for path in written])
    else:
        print(output if len(written) == 1 else f"{output}, and {len(written) - 1} plots in {plots}")
    return 0


def _all_cases() -> list[Path]:
    """The case files of this folder's schedules."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*.toml"))]
    if not found:
        raise InputError("CASE", "nothing, and there is no schedules/*.toml here", "one or more case files")
    return found
