"""Times chains on the host twice: in panels by the rule, and with all rows of a stripe as one panel.

    python -m hexconv.bench.panels

Both run on all threads, in turns. `rows` says how many rows a panel has, by conv. `fetched` is what the rule counts, as
a share of what one panel a stripe would fetch. `ratio` compares medians of the half of the rounds that was disturbed
least, `ratio_disturbed` those of the other half.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hexconv.bench.host import on_first_core, ready
from hexconv.bench.turns import Run, Turns, halves, in_turns, median
from hexconv.host.loops import chain_function
from hexconv.host.loops.panels import Panels
from hexconv.host.panels import Cycles, Reads, rows_of_panel
from hexconv.host.registers import sets_here
from hexconv.lower.function import lower_function
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.knobs import Simd

Row = dict[str, Any]
Sizes = tuple[int, int, int]
"""Two 1x1 convs each: rows and columns; channels of input and output; channels of the intermediate."""

CHAINS: Sequence[Sizes] = ((64, 128, 128), (56, 64, 256), (112, 16, 96), (28, 128, 512), (56, 32, 64))
ROUNDS = 60


def row(simd: Simd, sizes: Sizes, rounds: int = ROUNDS) -> Row:
    """Time one chain both ways."""
    chosen: list[tuple[Reads, int]] = []

    def rule(reads: Reads, cycles: Cycles) -> int:
        chosen.append((reads, rows_of_panel(reads, cycles)))
        return chosen[-1][1]

    runs = {"panels": _run(simd, sizes, rule), "one panel": _run(simd, sizes, lambda reads, _: reads.rows)}
    with on_first_core():
        quieter, disturbed = halves(in_turns(runs, rounds))
    one_panel = sum(reads.stripe_bytes(reads.rows) for reads, _ in chosen)
    return {
        "simd": simd,
        "chain": "{0}x{0}, {1} to {2} to {1}".format(*sizes),
        "rows": [rows for _, rows in chosen],
        "fetched": round(sum(reads.stripe_bytes(rows) for reads, rows in chosen) / one_panel, 2),
        "ratio": _ratio(quieter),
        "ratio_disturbed": _ratio(disturbed),
    }


def _run(simd: Simd, sizes: Sizes, panels: Panels) -> Run:
    """Build a chain; returns what runs it."""
    size, outer, inner = sizes
    chain = Chain(input=(1, size, size, outer), conv=(Conv2d(out_channels=inner), Conv2d(out_channels=outer)))
    function = chain_function(chain, Plan(kernel="host", simd=simd, threads=os.cpu_count() or 1), panels=panels)
    run, _ = ready(chain, lower_function(function).module, simd, random_tensors(chain))
    return run


def _ratio(turns: Turns) -> float:
    return round(median(turns["panels"]) / median(turns["one panel"]), 3)


def main() -> int:
    """Print a row for each chain and each instruction set of this machine."""
    table = pd.DataFrame([row(simd, sizes) for simd in sets_here() for sizes in CHAINS])
    print(table.to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
