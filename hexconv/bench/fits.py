"""`python -m hexconv.bench.fits`: chains of networks in ever less VTCM: planned, lowered, counted and run.

Every chain, fused or in its best cut, in 4, 2 and 1 MiB of VTCM on hvx. Each case of an answer is verified: what the
search predicts is what TVM allocates, what the run uses, and what the loops move and multiply; the result is numpy's.
An answer that a smaller limit gives again is run once. Images stay whole where a run takes less than five minutes; else
they are cut, and the row says to what.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.bench.networks import NETWORKS, chains_of, small
from hexconv.search import Question, Winner, plan_chain, verify
from hexconv.search.objective import OBJECTIVES, Objective
from hexconv.spec import Case, Chain, Plan

MIB = 1 << 20
LIMITS_BYTES = (4 * MIB, 2 * MIB, 1 * MIB)
SECONDS = 300
PACKETS_PER_SECOND = 500_000
"""Of the simulator, at least."""
MACS_PER_PACKET = 200
"""Of the kernels, at least, where the image is large."""
MOST_MACS = SECONDS * PACKETS_PER_SECOND * MACS_PER_PACKET


@dataclass(frozen=True)
class Row:
    """One case of an answer.

    Attributes:
        limit_bytes: of VTCM.
        case: the chain, or its piece.
        image: rows by columns, as run.
        plan: the answer.
        holds: whether everything agrees and the result is right.
        predicted_bytes: of VTCM, by the search.
        allocated_bytes: by TVM.
        used_bytes: by the run.
        packets: of the run; None where there was none.
        macs_per_packet: needed ones.
        said: of the run.
    """

    limit_bytes: int
    case: str
    image: str
    plan: str
    holds: bool
    predicted_bytes: int
    allocated_bytes: int
    used_bytes: int | None
    packets: int | None
    macs_per_packet: float | None
    said: str


def rows(chains: dict[str, Chain], objective: Objective) -> Iterator[Row]:
    """Every answer for every limit; those for a larger limit that fit a smaller one are not run again."""
    known: dict[tuple[Chain, Plan], Row] = {}
    for name, whole in chains.items():
        chain = small(whole, MOST_MACS)
        for limit in LIMITS_BYTES:
            question = Question(limit, objective, Plan(kernel="hvx", storage="vtcm"), target="hexagon")
            planned = plan_chain(Case(name, chain, Plan(kernel="hvx")), question)
            if planned.cuts.best is None:
                yield Row(limit, name, _image(chain), "", False, 0, 0, None, None, None, "nothing fits")
                continue
            for winner in planned.pieces(planned.cuts.best):
                key = (winner.case.chain, winner.case.plan)
                row = known[key] if key in known else _verified(winner, limit)
                known[key] = row
                yield Row(**{**asdict(row), "limit_bytes": limit, "case": winner.case.name})


def _verified(winner: Winner, limit: int) -> Row:
    """One case of an answer, run."""
    case, found = winner.case, verify(winner, SECONDS)
    run = found.runs[0]
    is_whole = run.vtcm_bytes == winner.figures.footprint_bytes
    return Row(
        limit_bytes=limit,
        case=case.name,
        image=_image(case.chain),
        plan=case.settled.slug,
        holds=found.holds and not found.missing and is_whole,
        predicted_bytes=winner.figures.footprint_bytes,
        allocated_bytes=found.footprint_bytes,
        used_bytes=run.vtcm_bytes,
        packets=run.packets,
        macs_per_packet=round(needed_macs(case.chain) / run.packets, 2) if run.packets else None,
        said=run.said,
    )


def _image(chain: Chain) -> str:
    return f"{chain.input[1]}x{chain.input[2]}"


def main(arguments: Sequence[str]) -> int:
    """Write the table, a row as soon as it is there; exit 1 if something doesn't fit or doesn't hold."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.fits", description=__doc__)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=["vgg16", "resnet50"])
    parser.add_argument("--objective", choices=OBJECTIVES, default="traffic", help="what answers have the least of")
    parser.add_argument("--csv", type=Path, default=Path("reports/fits.csv"), help="the table")
    options = parser.parse_args(arguments)
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    found: list[Row] = []
    for row in rows(chains_of(*options.networks), options.objective):
        found.append(row)
        per_packet = "" if row.macs_per_packet is None else f", {row.macs_per_packet} MACs per packet"
        verdict = "holds" if row.holds else "does NOT hold"
        print(f"{row.limit_bytes} bytes: {row.case} {row.image} {row.plan}: {verdict}, {row.said}{per_packet}")
        pd.DataFrame([asdict(each) for each in found]).to_csv(options.csv, index=False)
    held = sum(row.holds for row in found)
    print(f"{held} of {len(found)} hold; {options.csv}")
    return 0 if held == len(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
