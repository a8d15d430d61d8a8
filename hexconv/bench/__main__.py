"""`python -m hexconv.bench`: both tables, the peers beside ours, in one run. Called by `make bench`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hexconv.bench import hexagon, host
from hexconv.errors import HexconvError
from hexconv.spec.registers import registers_of

HIDDEN = ["chain", "passed", "packets", "hvx_instructions", "macs", "halide_packets"]  # in the file, too wide to print


def main(arguments: Sequence[str]) -> int:
    """Print the tables and write them; exit 1 if a result is wrong or Halide isn't measured at its best."""
    parser = argparse.ArgumentParser(prog="hexconv.bench", description="Our kernels beside Halide's and oneDNN's.")
    parser.add_argument("--hvx", nargs="+", type=Path, required=True, help="cases for Hexagon")
    parser.add_argument("--host", nargs="+", type=Path, required=True, help="cases for this machine")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of this machine")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="where hvx.csv and bench.csv go")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except HexconvError as error:
        print(f"hexconv: {error}", file=sys.stderr)
        return error.exit_code


def hvx_table(rows: Sequence[hexagon.Row]) -> pd.DataFrame:
    """The cases on Hexagon; packets stay whole numbers where Halide has none."""
    return pd.DataFrame(rows).astype({"halide_packets": "Int64"})


def _run(options: argparse.Namespace) -> int:
    packets = [hexagon.row(path) for path in options.hvx]
    hvx = hvx_table(packets)
    print("Hexagon, MACs per packet (256 is the limit)")
    print(hvx.drop(columns=HIDDEN, errors="ignore").to_string(index=False, na_rep=""))
    sets = ("avx512", "avx2") if registers_of("auto") == registers_of("avx512") else ("avx2",)
    times = pd.DataFrame([host.measured(path, options.threads, simd) for simd in sets for path in options.host])
    print(f"\nthis machine, float32, medians of {host.ROUNDS} turns of {host.TIMED_RUNS} runs")
    print(times.drop(columns=["passed"]).to_string(index=False))
    options.reports.mkdir(parents=True, exist_ok=True)
    hvx.to_csv(options.reports / "hvx.csv", index=False)
    named = [hvx.assign(table="hexagon"), times.assign(table="host")]
    pd.concat(named, ignore_index=True).set_index("table").to_csv(options.reports / "bench.csv")
    complaints = hexagon.unfair(packets)
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 0 if hvx["passed"].all() and times["passed"].all() and not complaints else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
