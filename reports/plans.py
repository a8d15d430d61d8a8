"""`python -m reports.plans [CHAIN ...]`: holds the answers of the search against brute force; writes reports/plans.csv.

Brute force looks at all heights of stripes and all widths of strips, beside all words, splits and cuts: what a search
leaves out, by the same closed forms. Each chain is asked for in 130 amounts of VTCM from 32 KiB to 4 MiB, with outputs
in rows and in blocks, for the fewest bytes, and for the least time with three speeds of memory. A chain's rows replace
those that the table has of it as soon as they are known.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from hexconv.analyze.exact import Integers
from hexconv.errors import Unsupported
from hexconv.search import Question, Space, best_cuts, evaluate
from hexconv.search.cuts import best_ways, piece_of
from hexconv.search.grid import Grid
from hexconv.search.machine import rates
from hexconv.search.question import Objective
from hexconv.search.space import Strip
from hexconv.spec import Chain, Conv2d, Padding, Requantize, tensor_extents
from hexconv.spec.chain import IN_BLOCKS, PIXELS, EdgeLayout
from hexconv.spec.strips import strip_count, why_no_strips
from reports.kept import keep

KIB = 1 << 10
LIMITS = tuple(KIB * size for size in (*range(32, 1025, 8), 1280, 1536, 2048, 3072, 4096))
ASKED: tuple[tuple[Objective, float], ...] = (("traffic", 8), ("time", 2), ("time", 8), ("time", 32))
"""Objectives, each with the bytes that copies move in the time of a packet."""
SCALED = Requantize(multiplier=1 << 17, shift=-4)
WORSE = 0.01


def _conv(channels: int, kernel: int = 3, stride: int = 1, dilation: int = 1, groups: int = 1) -> Conv2d:
    side = (kernel - 1) * dilation // 2
    return Conv2d(
        out_channels=channels,
        kernel=(kernel, kernel),
        padding=Padding(top=side, left=side, bottom=side, right=side),
        stride=(stride, stride),
        dilation=(dilation, dilation),
        groups=groups,
        requantize=SCALED,
    )


def _chain(rows: int, columns: int, channels: int, *convs: Conv2d) -> Chain:
    return Chain(input=(1, rows, columns, channels), dtype="uint8", conv=convs)


CHAINS = {
    "resnet-56": _chain(56, 56, 64, _conv(64), _conv(64)),
    "resnet-28": _chain(28, 28, 128, _conv(128), _conv(128)),
    "resnet-14": _chain(14, 14, 256, _conv(256), _conv(256)),
    "resnet-7": _chain(7, 7, 512, _conv(512), _conv(512)),
    "resnet-down-56": _chain(56, 56, 64, _conv(128, stride=2), _conv(128)),
    "bottleneck-56": _chain(56, 56, 256, _conv(64, 1), _conv(64), _conv(256, 1)),
    "bottleneck-14": _chain(14, 14, 1024, _conv(256, 1), _conv(256), _conv(1024, 1)),
    "stem-224": _chain(224, 224, 3, _conv(64, 7, stride=2)),
    "vgg-224": _chain(224, 224, 3, _conv(64), _conv(64)),
    "vgg-112": _chain(112, 112, 64, _conv(128), _conv(128)),
    "vgg-56": _chain(56, 56, 128, _conv(256), _conv(256), _conv(256)),
    "vgg-14": _chain(14, 14, 512, _conv(512), _conv(512), _conv(512)),
    "mobilenetv1-112": _chain(112, 112, 32, _conv(32, groups=32), _conv(64, 1)),
    "mobilenetv2-56": _chain(56, 56, 24, _conv(144, 1), _conv(144, groups=144), _conv(24, 1)),
    "mobilenetv2-14": _chain(14, 14, 96, _conv(576, 1), _conv(576, groups=576), _conv(96, 1)),
    "fsrcnn-120": _chain(120, 160, 1, _conv(56, 5), _conv(12, 1), *[_conv(12)] * 4, _conv(56, 1)),
    "unet-128": _chain(128, 128, 64, _conv(64), _conv(64)),
    "5x5-32": _chain(32, 32, 64, _conv(64, 5), _conv(64, 5)),
    "7x7-28": _chain(28, 28, 64, _conv(64, 7), _conv(64, 7)),
    "dilated-64": _chain(64, 64, 64, _conv(64, dilation=2), _conv(64, dilation=4)),
}
LAYOUTS: tuple[EdgeLayout, ...] = (PIXELS, IN_BLOCKS)


@dataclass(frozen=True)
class BruteForceRow:
    """Answers of one chain for one objective, held against brute force.

    Attributes:
        chain: the name of the chain.
        output: the layout of its output.
        objective: what is to be least.
        bytes_per_packet: the speed of memory, for the objective time.
        limits: the number of limits, one answer each.
        without_plan: for how many of them nothing fits with all caches in VTCM, not even by brute force.
        outside: how many of these have a plan with some caches outside of VTCM, as `hexconv best` answers then.
        unanswered: for how many of them brute force alone has a plan.
        worse: how many answers are worse than brute force's by more than 1 %.
        worst: the largest share by which one is worse.
        at_bytes: the limit where that is.
    """

    chain: str
    output: str
    objective: str
    bytes_per_packet: float
    limits: int
    without_plan: int
    outside: int
    unanswered: int
    worse: int
    worst: float
    at_bytes: int


def every_strip(chain: Chain) -> Iterator[Strip | None]:
    """Yield whole rows, and strips of all widths."""
    yield None
    if why_no_strips(chain, 1):
        return
    for width in range(tensor_extents(chain)[-1].column_blocks, 0, -1):
        for halo in ("recompute", "keep"):
            if strip_count(chain, width, halo) > 1 and not why_no_strips(chain, width, halo):
                yield Strip(width, halo)


def every_grid(chain: Chain, question: Question) -> Iterator[Grid]:
    """Yield the figures of all plans of all heights, by kinds of strips."""
    settled = question.settled(chain)
    space, outputs = Space.of(chain, settled.plan), tensor_extents(chain)[1:]
    heights = np.arange(1, max(output.row_blocks for output in outputs) + 1)
    rows = space.rows if chain.output_layout == IN_BLOCKS else tuple(range(1, outputs[-1].rows + 1))
    for strip in every_strip(chain):
        yield evaluate(chain, replace(space, h_splits=heights, rows=rows, strips=(strip,)), rates(settled.plan.arch))


def least_of_piece(chain: Chain, question: Question) -> dict[tuple[Objective, float], Integers]:
    """Return the least of each objective in each limit, [L], by brute force; infinite where nothing fits."""
    least = {asked: np.full(len(LIMITS), np.inf) for asked in ASKED}
    try:
        for grid in every_grid(chain, question):
            order = np.argsort(grid.footprint_bytes, kind="stable")
            fitting = np.searchsorted(grid.footprint_bytes[order].astype(float), LIMITS, side="right")
            for (objective, speed), known in least.items():
                values = grid.time_packets(speed) if objective == "time" else grid.traffic_bytes.astype(float)
                lowest = np.concatenate([[np.inf], np.minimum.accumulate(values[order])])
                np.minimum(known, lowest[fitting], out=known)
    except Unsupported:
        pass
    return least


def brute_force(chain: Chain, question: Question) -> dict[tuple[Objective, float], Integers]:
    """Return the least of each objective in each limit, [L], over all plans and cuts."""
    count = len(chain.conv)
    pieces = {ends: least_of_piece(piece_of(chain, *ends), question) for ends in combinations(range(count + 1), 2)}

    def least(asked: tuple[Objective, float], at: int) -> float:
        return best_ways(count, 0.0, lambda before, start, end: [before + pieces[start, end][asked][at]])[count]

    return {asked: np.array([least(asked, at) for at in range(len(LIMITS))]) for asked in ASKED}


def held(name: str, chain: Chain) -> Iterator[BruteForceRow]:
    """Hold the answers for one chain against brute force."""
    question = Question(LIMITS[-1], target="hexagon")
    least = brute_force(chain, question)
    for objective, speed in ASKED:
        asked = replace(question, objective=objective, bytes_per_packet=speed)
        found = np.full(len(LIMITS), np.inf)
        for at, limit in enumerate(LIMITS):
            if best := best_cuts(chain, replace(asked, vtcm_bytes=limit)).best:
                found[at] = best.time_packets(speed) if objective == "time" else best.traffic_bytes
        possible = np.isfinite(least[objective, speed])
        outside = [
            best_cuts(chain, replace(asked, vtcm_bytes=limit, caches="anywhere")).best
            for limit in np.array(LIMITS)[~possible].tolist()
        ]
        over = np.where(np.isfinite(found) & possible, found, 0) / np.where(possible, least[objective, speed], 1) - 1
        yield BruteForceRow(
            chain=name,
            output=chain.output_layout,
            objective=objective,
            bytes_per_packet=speed,
            limits=len(LIMITS),
            without_plan=int((~possible).sum()),
            outside=sum(cut is not None for cut in outside),
            unanswered=int((possible & ~np.isfinite(found)).sum()),
            worse=int((over > WORSE).sum()),
            worst=round(max(float(over.max()), 0.0), 4),
            at_bytes=LIMITS[int(over.argmax())],
        )


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if an answer is worse than brute force's by more than 1 %, or is missing."""
    parser = argparse.ArgumentParser(prog="reports.plans", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CHAIN", help="one of the twenty chains; all where none is named")
    parser.add_argument("--csv", type=Path, default=Path("reports/plans.csv"), help="the table")
    asked = parser.parse_args(arguments)
    for name, layout in product(asked.names or CHAINS, LAYOUTS):
        rows = [*held(name, replace(CHAINS[name], output_layout=layout))]
        print(*(f"{row}\n" for row in rows), end="", flush=True)
        keep(asked.csv, rows, ("chain", "output"))
    table = pd.read_csv(asked.csv)
    points, worse = (table["limits"] - table["without_plan"]).sum(), table["worse"].sum()
    missing = (table["unanswered"] + table["without_plan"] - table["outside"]).sum()
    print(f"{points} answers, {worse} worse than brute force's by more than 1 %, {missing} missing")
    return int(worse > 0 or missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
