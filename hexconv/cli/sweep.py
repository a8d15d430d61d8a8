"""`hexconv sweep`: checks many cases in parallel, those of a grid or random ones."""

import os
from pathlib import Path

from hexconv.cli.memory import memory_bytes
from hexconv.cli.options import Count, Seconds, Seed, check_file
from hexconv.errors import InputError


def sweep(
    grid: Path | None = None,
    *,
    out: Path | None = None,
    scheduler: str | None = None,
    seconds: Seconds = 1800,
    memory: str = "4GiB",
    fresh: bool = False,
    random: Count | None = None,
    seed: Seed = 0,
    workers: Count | None = None,
    json: bool = False,
) -> int:
    """Check every case of a grid and write one table, or check random cases over the whole scope.

    A grid file is a case file in which any field of [plan] may be a list. A table [grid] lists alternatives for input,
    dtype, filter_dtype, zero_point, input_layout and output_layout of the chain, and for fields of all convs;
    [[grid.conv]] tables vary single convs. `targets = ["cache", "llvm", "hexagon"]` says what to do with each case; the
    default is cache. Each combination is a row. A row that makes no case, or does not fit, has the reason.

    Each row is kept as it finishes, in a journal beside the table. After an interruption, a crash or a full disk, give
    the same command again: it goes on where it stopped. It exits with 1 if a row differs, failed, crashed, or took too
    much time or memory.

    Args:
        grid: name a grid file (TOML).
        out: write the table into this .csv file.
        scheduler: let the workers of this scheduler of dask.distributed do the rows, tcp://host:8786.
        seconds: stop a row after this time.
        memory: stop a row that takes more than this, such as 4GiB.
        fresh: do all rows again, even those that are done.
        random: draw this many cases instead of a grid; compare sizes with TVM and results with numpy, and print each
            case that disagrees as a case file.
        seed: start the random generator here; the n-th case of a seed is always the same.
        workers: use this many processes; the default is one per CPU.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM and pandas takes.
    from hexconv.cli.progress import starting

    processes = workers or os.cpu_count() or 1
    if random is not None:
        if grid or out or scheduler:
            raise InputError.because(
                "--random draws its cases and writes no table", "leave out the grid, --out and --scheduler"
            )
        with starting():
            from hexconv.cli.sweep_cases import sweep_random

        return sweep_random(random, seed, processes, json)
    if grid is None:
        raise InputError.because("no grid file given", "name one, or draw cases with --random 100")
    if out is None:
        raise InputError.because("no --out given", "name the table to write: --out sweep.csv")
    with starting():
        from hexconv.apart import Limits
        from hexconv.cli.sweep_cases import sweep_grid
        from hexconv.sweep.survey import Settings

    check_file("--out", out, ".csv")
    limits = Limits(seconds, memory_bytes(memory, "--memory"))
    return sweep_grid(grid, out, Settings(limits, seed, processes, scheduler, fresh), json)
