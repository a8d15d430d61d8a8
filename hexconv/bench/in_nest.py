"""What the planned nest would cost the host kernel, beside the kernel as it is and oneDNN.

    python -m hexconv.bench.in_nest schedules/host/*.toml --threads 4

The planned nest copies each stripe of the input to a cache, makes each stripe of the output in a cache, and copies it
from there; these are the copies of its cheapest plan, with `h_outer`, `roll` and `resident`. Its threads compute all
rows that they read, so rows at a seam are computed twice. All else is as in the host kernel, tiles and filters too.

`ratio` is the time in the nest over the time as it is, by the quickest runs, `ratio_of_medians` by the medians of the
rounds that were disturbed least. `macs` is the same ratio of multiply-accumulates, which is exact. The times are lower
bounds but for one thing: the host kernel moves rows that two stripes read to the top of its caches, which a ring would
leave in place. `moved` has these bytes of a run, and `copied` those of the nest's copies.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.bench.host import OURS, STAGED, in_process, peers
from hexconv.bench.turns import halves, least, median, together
from hexconv.host.edges import even_edges
from hexconv.host.planned import PlannedBands
from hexconv.host.registers import ELEMENT_BYTES, sets_here
from hexconv.host.sizes import line_elements
from hexconv.host.stripes import stripes_of
from hexconv.host.work import host_macs
from hexconv.spec import Case, Chain
from hexconv.spec.knobs import Simd

Row = dict[str, Any]
PROCESSES = 3


def row(path: Path, threads: int, simd: Simd) -> Row:
    """Measure one case.

    Raises:
        RunFailed: a process failed.
    """
    case = Case.load(path)
    parts = [in_process(path, threads, simd, "--staged") for _ in range(PROCESSES)]
    turns = together([part["milliseconds"] for part in parts])
    quieter = together([halves(part["milliseconds"])[0] for part in parts])
    ours, nested, peer = least(turns[OURS]), least(turns[STAGED]), min(least(turns[name]) for name in peers(turns))
    planned = PlannedBands(case.chain, replace(case.plan, threads=threads, simd=simd))
    return {
        "case": case.name,
        "simd": simd,
        "threads": threads,
        "hexconv_ms": round(ours, 3),
        "in_nest_ms": round(nested, 3),
        "onednn_ms": round(peer, 3),
        "ratio": round(nested / ours, 3),
        "ratio_of_medians": round(median(quieter[STAGED]) / median(quieter[OURS]), 3),
        "to_onednn": round(ours / peer, 3),
        "in_nest_to_onednn": round(nested / peer, 3),
        "macs": round(macs_in_nest(planned) / sum(host_macs(planned).values()), 3),
        "copied": copied_bytes(case.chain),
        "moved": moved_bytes(planned),
        "passed": all(part["passed"] for part in parts),
    }


def copied_bytes(chain: Chain) -> int:
    """Return the bytes of the nest's copies: the input once, and the output once.

    >>> from hexconv.spec import Conv2d
    >>> copied_bytes(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))) == (8 * 8 * 4 + 8 * 8 * 2) * 4
    True
    """
    return (prod(chain.input) + prod(chain.shapes[-1])) * ELEMENT_BYTES


def moved_bytes(planned: PlannedBands) -> int:
    """The bytes that the host kernel moves within the caches of its intermediates, over all stripes of all bands."""
    chain, elements = planned.chain, 0
    for band in planned.edges.all:
        for stripe in list(stripes_of(chain, planned.stripe_rows, band))[1:]:
            for tensor in range(1, len(chain.conv)):
                elements += (stripe[tensor].begin - stripe[tensor].above) * line_elements(chain, tensor)
    return chain.input[0] * elements * ELEMENT_BYTES


def macs_in_nest(planned: PlannedBands) -> float:
    """Return the multiply-accumulates where every band computes all rows that it reads."""
    chain, rows = planned.chain, [0] * len(planned.chain.shapes)
    for band in even_edges(chain, planned.edges.bands).all:
        for stripe in stripes_of(chain, planned.stripe_rows, band):
            rows = [made + tensor.new for made, tensor in zip(rows, stripe, strict=True)]
    of_convs = zip(host_macs(planned).values(), rows[1:], planned.computed_rows[1:], strict=True)
    return sum(macs * in_nest / as_is for macs, in_nest, as_is in of_convs)


def main(arguments: Sequence[str]) -> int:
    """Print a row for each case and each instruction set of this machine; exit 1 if a result is wrong."""
    parser = argparse.ArgumentParser(
        prog="hexconv.bench.in_nest", description="The host kernel with the nest's copies."
    )
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    table = pd.DataFrame([row(path, options.threads, simd) for simd in sets_here() for path in options.cases])
    print(table.to_string(index=False))
    return 0 if table["passed"].all() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
