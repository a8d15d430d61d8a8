"""`hexconv best`: the best plan that fits, and the proof; for chains, and for whole networks."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Seconds, check_file, check_folder
from hexconv.spec.kernel import Target
from hexconv.spec.knobs import Kernel
from hexconv.spec.objective import Objective


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
    wide: bool = False,
    json: bool = False,
) -> int:
    """Find the best plan of a chain that fits VTCM, and prove that there is none better; or plan a whole network.

    Every plan that the knobs allow is looked at, and so is every way to cut the chain. Of a case file the chain counts,
    and of its plan the kernel and the architecture. A folder is a network: each of its case files is a chain.

    Exits 1 if nothing fits (in a folder: not even in pieces), or if a figure does not hold when it is verified; 2 if a
    case can't be used or planned, which leaves the others alone, or if a run that should verify an answer could not
    be made.

    Args:
        chains: case files (TOML, with or without a plan), folders of them, or patterns.
        vtcm: what the caches may take, such as 4MiB or 4MB; by default all that the case's architecture has. The host
            kernel has no VTCM: what the filters and the caches of one thread may take.
        objective: what is to be least.
        kernel: instead of the cases' own.
        target: where the answers are to run, which says what kernels chains get that ask for none.
        output: folder for the case files of the answers.
        plot: draw the front of footprint against traffic there (.svg, for one chain).
        verified: lower, count and run the answers, on this machine and on the simulator, wherever their kernel runs.
        seconds: the time that a verifying run on the simulator has.
        wide: show all columns of tables, however wide they become.
        json: print JSON instead.
    """
    # Here, since TVM takes seconds that `--help` doesn't have to wait for.
    from hexconv.cli.best_chains import Asked, best_chains

    check_file("--plot", plot, ".svg")
    check_folder("--output", output)
    return best_chains(chains, Asked(vtcm, objective, kernel, target, output, plot, verified, seconds, wide), json)
