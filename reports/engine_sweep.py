"""Random cases for the matrix engine, judged in every respect, one row a seed: reports/engine_sweep.csv.

python -m reports.engine_sweep --seeds 8001 8002 8003

Each case is lowered, and run on random tensors and on extremes, whatever the moment of its copies: caches and placed
bytes, bytes moved, MACs, and packets of the engine by kind are those of the closed form, results are numpy's. A seed
takes one to two hours of two cores, and goes on where it stopped: a journal lies beside the table of its cases.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from hexconv.cli.app import exit_code

SEEDS, CASES = (8001, 8002, 8003), 2000
TABLE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class Row:
    """The random cases of a seed.

    Attributes:
        seed: the seed of the draw.
        cases: how many cases were drawn.
        engine_cases: how many of them have all of their convs computed by the engine; another kernel serves the rest.
        double_cases: how many have asynchronous copies; they are performed early, late and at random.
        holding: the cases of which all figures and results are as predicted.
        refused: the cases that can't be lowered as stated, with a reason.
        wrong: the cases of which a figure or a result differs, or that failed.
    """

    seed: int
    cases: int
    engine_cases: int
    double_cases: int
    holding: int
    refused: int
    wrong: int

    @classmethod
    def of(cls, seed: int, table: pd.DataFrame) -> "Row":
        """Count the rows of a sweep's table."""
        holding, refused = (int((table["status"] == status).sum()) for status in ("holds", "refused"))
        engine, double = (table["kernel_used"] == "hmx").sum(), (table["buffering"] == "double").sum()
        return cls(seed, len(table), int(engine), int(double), holding, refused, len(table) - holding - refused)


def swept(seed: int, cases: int, workers: int, folder: Path) -> Row:
    """Sweep the cases of a seed, or what is left of them."""
    table = folder / f"engine-{seed}.csv"
    words = ["--kernel", "hmx", "--random", str(cases), "--seed", str(seed), "--workers", str(workers)]
    if (code := exit_code(["sweep", *words, "--out", str(table)])) > 1:  # interrupted, or a tool is missing
        sys.exit(code)
    return Row.of(seed, pd.read_csv(table))


def main(arguments: Sequence[str]) -> int:
    """Write the rows of some seeds beside those of others; exit 1 if a case is wrong."""
    parser = argparse.ArgumentParser(prog="reports.engine_sweep", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/sweeps"), help="where cases and journals lie")
    parser.add_argument("--csv", type=Path, default=TABLE, help="the table")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    known = pd.read_csv(options.csv).to_dict("records") if options.csv.exists() else []
    rows = {row["seed"]: row for row in known}
    for seed in options.seeds:
        rows[seed] = asdict(swept(seed, options.cases, options.workers, options.folder))
        pd.DataFrame([rows[each] for each in sorted(rows)]).to_csv(options.csv, index=False)
    return 1 if any(rows[seed]["wrong"] for seed in options.seeds) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
