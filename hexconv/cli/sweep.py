"""`hexconv sweep`: many cases, checked in parallel: those of a grid, or random ones."""

import os
from pathlib import Path

from hexconv.apart import Limits
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

    A grid file is a case file in which any field of [plan] may be a list of values, and a table [grid] lists
    alternatives: for input, dtype, filter_dtype and zero_point of the chain, and for fields of a conv, which then hold
    for all convs at once; [[grid.conv]] tables vary single convs. `targets = ["cache", "llvm", "hexagon"]` says what to
    do with every case; cache is the default. All combinations are rows; those that make no case, or don't fit, have the
    reason.

    Rows are kept as they finish, in a journal beside the table: after an interruption, a crash or a full disk the same
    command goes on where it stopped. Exits 1 if a row differs, failed, crashed, overran its time or its memory.

    Args:
        grid: a grid file (TOML).
        out: the table to write, .csv or .parquet.
        scheduler: of dask.distributed, tcp://host:8786; its workers do the rows instead of this machine.
        seconds: the time that one row has.
        memory: what one row may take, 4GiB.
        fresh: do all rows again, those of earlier runs too.
        random: instead of a grid, how many cases to draw: cache sizes and sharing against TVM, results against numpy.
            Each case that disagrees is printed as a case file.
        seed: of the tensors of a grid's cases, or of the draw, whose case i is the same whatever the number of cases.
        workers: processes at a time; by default one per CPU.
        json: print JSON instead.
    """
    processes = workers or os.cpu_count() or 1
    if random is not None:
        if grid or out or scheduler:
            raise InputError("sweep", "--random with a grid", "one of the two; --random writes no table")
        from hexconv.cli.sweep_random import sweep_random  # TVM takes seconds that `--help` doesn't have to wait for

        return sweep_random(random, seed, processes, json)
    if grid is None:
        raise InputError("sweep", "nothing", "a grid file, or --random N")
    if out is None:
        raise InputError("--out", "nothing", "the table to write, such as reports/sweep.csv")
    from hexconv.cli.sweep_grid import sweep_grid  # and so does pandas
    from hexconv.sweep.survey import Settings

    check_file("--out", out, ".csv", ".parquet")
    limits = Limits(seconds, memory_bytes(memory, "--memory"))
    return sweep_grid(grid, out, Settings(limits, seed, processes, scheduler, fresh), json)
