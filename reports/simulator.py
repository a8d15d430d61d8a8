"""`python -m reports.simulator CASE...`: cases on the Hexagon simulator, on all cores (`make simulator`).

It writes what `hexconv run CASE... --target hexagon --csv` writes. The slowest cases of the last table start first, so
that no core waits for one of them at the end.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.checked import Trial, check
from hexconv.errors import HexconvError
from hexconv.report import run_csv, run_row
from hexconv.run.measure import runner_of
from hexconv.spec import Case

TABLE = Path("reports/simulator.csv")


def row(path: Path) -> dict[str, Any]:
    """Run a case on the simulator, on random tensors, and count.

    Raises:
        HexconvError: the case can't be read, lowered or run.
    """
    case = Case.load(path, "hexagon")
    [tried] = check(case, [Trial(runner_of(case, "hexagon"))]).runs
    return run_row(case, tried.answer())


def slowest_first(paths: Sequence[Path], table: Path) -> list[Path]:
    """Sort cases by their packets in a table that was written before; one that isn't in it comes first."""
    packets = pd.read_csv(table, index_col="case")["packets"].to_dict() if table.exists() else {}
    return sorted(paths, key=lambda path: packets.get(path.stem, float("inf")), reverse=True)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="reports.simulator", description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path, help="case files")
    parser.add_argument("--csv", type=Path, default=TABLE, help="the table")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="run so many cases at once")
    options = parser.parse_args(arguments)
    rows = {}
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        ran = {path: pool.submit(row, path) for path in slowest_first(options.cases, options.csv)}
        try:
            for path in options.cases:
                rows[path] = ran[path].result()
                print(path.stem, rows[path]["packets"], "right" if rows[path]["passed"] else "WRONG", flush=True)
        except HexconvError as error:
            pool.shutdown(cancel_futures=True)
            print(f"hexconv: {error}", file=sys.stderr)
            return error.exit_code
    options.csv.write_text(run_csv(list(rows.values())))
    return 0 if all(each["passed"] for each in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
