"""`python -m reports.mlir CASE.toml ...`: compiles the linalg of cases by MLIR's tools, and runs it on this machine.

Writes `reports/mlir.csv`.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.lower import lower_case
from hexconv.mlir.linalg_chain import TILED, WHOLE
from hexconv.run.measure import run_case
from hexconv.run.mlir_host import MlirHost
from hexconv.spec import Case
from hexconv.written import whole_file

TABLE = Path("reports/mlir.csv")


@dataclass(frozen=True)
class Row:
    """One function of a case.

    Attributes:
        case: the case.
        function: `tiled` has the loops of the plan, `whole` none.
        dtypes: the dtypes of activations and filters.
        convs: how many convs the chain has.
        macs: the multiply-accumulates that are needed, each output once.
        values: how many values were compared with numpy's.
        is_right: whether all are numpy's, integers in every bit, floats to their tolerance, and the fringe is zero.
    """

    case: str
    function: str
    dtypes: str
    convs: int
    macs: int
    values: int
    is_right: bool


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    """Yield a row for each function of each case."""
    for case in cases:
        chain, lowered = case.chain, lower_case(case)
        for function in (TILED, WHOLE):
            right = run_case(case, lowered, MlirHost(case, function)).check.passed
            figures = (chain.dtypes, len(chain.conv), needed_macs(chain), prod(chain.shapes[-1]))
            yield Row(case.name, function, *figures, right)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of some cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", metavar="CASE.toml")
    asked = parser.parse_args(arguments)
    found = list(rows([Case.load(path, "llvm") for path in asked.cases]))
    with whole_file(TABLE) as made:
        pd.DataFrame([asdict(row) for row in found]).to_csv(made, index=False)
    right = sum(row.is_right for row in found)
    sys.stdout.write(f"{right} of {len(found)} functions right, {sum(row.values for row in found)} values compared\n")
    return int(right < len(found))


if __name__ == "__main__":
    sys.exit(main())
