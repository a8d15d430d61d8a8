"""`hexconv report`: writes the HTML page, and its plots as files."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.options import Seconds, check_file, check_folder
from hexconv.spec.choices import Target

Many = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative=())]
PAGE = Path("reports/index.html")


def report(
    *cases: Path,
    target: Target = "hexagon",
    vtcm: str | None = None,
    run: Annotated[bool, Parameter(negative=())] = False,
    seconds: Seconds = 60.0,
    tables: Path = Path("reports"),
    sweep: Many = (),
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = PAGE,
    plots: Path | None = None,
    plot_format: Annotated[Literal["svg", "png"], Parameter(name="--format")] = "svg",
    json: bool = False,
) -> int:
    """Write one HTML page about cases or about a network: memory, traffic, other plans, the loops and what limits them.

    A folder that `hexconv import` wrote is a network. The page plans it, and shows the graph of its chains, what the
    plans save and where the most bytes are left; then every chain by its best plan.

    With --run it runs each case on the simulator, and also shows what the thread and the copy engine do over issue
    slots, how near the kernel comes to its limit, and the packets of the inner loops with their stalls.

    The page loads nothing and needs no server. The same cases and tables give the same bytes. If a case can't be used,
    a line says so, the page leaves it out, and the exit code is 2.

    Args:
        cases: name case files (TOML), folders of them, or patterns; or one folder that is a network. The default is
            `schedules` and `schedules/hvx` of the current folder.
        target: choose kernels for Hexagon, or for this machine (llvm).
        vtcm: plan a network with this much VTCM, such as 4MiB; the default is all that its architecture has.
        run: run each case on the simulator.
        seconds: stop a run on the simulator after this time.
        tables: take simulator.csv, hvx.csv and bench.csv from this folder, if they are there.
        sweep: take what was measured of other splits from these tables, which `hexconv sweep` wrote.
        output: write the page into this file.
        plots: also write each plot as a file into this folder.
        plot_format: write plots in this format.
        json: print the names of the written files as JSON.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting
    from hexconv.run.machine_parts import check_plots

    check_plots("report")

    with starting():
        from hexconv.cli.report_page import Asked, report_page

    if output != PAGE:
        check_file("--output", output)
    check_folder("--plots", plots)
    asked = Asked(target, vtcm, run, seconds, tables, sweep, output, plots, plot_format)
    return report_page(cases, asked, json)
