"""`hexconv run`: build, run, compare with numpy."""

from pathlib import Path
from typing import Literal

from hexconv.cli.options import Count, Seconds, Seed, check_file
from hexconv.spec import Target


def run(
    *cases: Path,
    target: Target = "llvm",
    seed: Seed = 0,
    seeds: Count = 1,
    copies: Literal["early", "late", "random"] = "random",
    save: Path | None = None,
    csv: Path | None = None,
    seconds: Seconds = 1800.0,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run cases on seeded random tensors and compare the results with numpy.

    Exits 1 if a result is wrong or a plan does not fit VTCM, 2 if a case could not be run; the other cases run all the
    same.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        target: where: this machine through LLVM, or the Hexagon simulator.
        seed: of the random tensors, and of the moments of asynchronous copies.
        seeds: how many runs, each with the next seed.
        copies: when asynchronous copies are performed between their start and the wait for them: as early as possible,
            as late as possible, or at random.
        save: keep what went in and came out, logical, in this .npz file (for one case).
        csv: also write what was counted there: the same in every run.
        seconds: the time that one run on the simulator has.
        wide: show all columns of tables, however wide they become.
        json: print JSON instead of a table.
    """
    from hexconv.cli.run_cases import Asked, run_cases  # TVM takes seconds that `--help` doesn't have to wait for

    check_file("--save", save, ".npz")
    check_file("--csv", csv)
    return run_cases(cases, Asked(target, range(seed, seed + seeds), copies, seconds, save), csv, wide, json)
