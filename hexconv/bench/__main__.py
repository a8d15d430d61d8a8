"""`python -m hexconv.bench`: measures HVX kernels and Halide's in one run, and prints their tables (`make bench`)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hexconv.bench import hexagon
from hexconv.errors import HexconvError
from hexconv.report.packets import LIMIT, limit
from hexconv.spec import Case

HIDDEN = (  # these columns are in the file, and too wide to print
    *("chain", "kernel", "passed", "packets", "hvx_instructions", "macs", "halide_packets", "halide_published"),
    *("issue_slots", "stalls", "vector_loads", "copies", "halide_issue_slots"),
)


def main(arguments: Sequence[str]) -> int:
    """Print the tables and write them; exit 1 if a result is wrong or Halide isn't measured at its best."""
    parser = argparse.ArgumentParser(prog="hexconv.bench", description="HVX kernels beside Halide's.")
    parser.add_argument("--hvx", nargs="+", type=Path, required=True, help="cases for Hexagon")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="where hvx.csv and hvx_int16.csv go")
    parser.add_argument(
        "--builds",
        type=int,
        default=0,
        help="measure kernels of Halide that differ from build to build in so many builds, and take the best; "
        "0: what the table has of them stays",
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except HexconvError as error:
        print(f"hexconv: {error}", file=sys.stderr)
        return error.exit_code


def hvx_table(rows: Sequence[hexagon.Row]) -> pd.DataFrame:
    """Return the table of the cases on Hexagon; counts stay whole numbers where Halide has no figure."""
    return pd.DataFrame(rows).astype({"halide_packets": "Int64", "halide_issue_slots": "Int64"})


def _known(table: Path) -> dict[str, hexagon.Row]:
    """Return the rows of an earlier table, by case."""
    return pd.read_csv(table).set_index("case").to_dict("index") if table.exists() else {}


def _shown(table: pd.DataFrame) -> str:
    """Return a table as people read it, without columns that are empty throughout."""
    return table.drop(columns=list(HIDDEN), errors="ignore").dropna(axis=1, how="all").to_string(index=False, na_rep="")


def _run(options: argparse.Namespace) -> int:
    known = _known(options.reports / "hvx.csv")
    packets = [hexagon.row(path, known, options.builds) for path in options.hvx]
    hvx = hvx_table(packets)
    of_bytes = [limit(Case.load(path).chain) == LIMIT for path in options.hvx]
    narrow, wide = hvx.loc[of_bytes], hvx.loc[[not each for each in of_bytes]]
    print(
        f"Hexagon, MACs per packet ({LIMIT} is two vrmpy in every packet) and issue slot; the ratio is of MACs per slot"
    )
    print(_shown(narrow))
    print(f"\nint16 (two vrmpy in every packet: {LIMIT // 2}, {LIMIT // 4} with int16 filters)\n{_shown(wide)}")
    options.reports.mkdir(parents=True, exist_ok=True)
    narrow.to_csv(options.reports / "hvx.csv", index=False)
    wide.to_csv(options.reports / "hvx_int16.csv", index=False)
    complaints = hexagon.unfair(packets)
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 0 if hvx["passed"].all() and not complaints else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
