"""`python -m hexconv.bench.fits`: plans chains of networks in less and less VTCM; lowers, counts and runs each answer.

Every chain is planned, fused or in its best cut, in 4, 2 and 1 MiB of VTCM for `hvx` kernels. Each case of an answer is
verified: the search's figures are what TVM allocates, what the run uses, and what the loops move and multiply, and the
result is numpy's. An answer that a smaller limit gives again is run once. Images stay whole if a run takes less than
five minutes; else they are cut, and the row says to which size.
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
"""How many packets the simulator runs in a second, at least."""
MACS_PER_PACKET = 200
"""How many MACs the kernels do in a packet, at least, if the image is large."""
MOST_MACS = SECONDS * PACKETS_PER_SECOND * MACS_PER_PACKET


@dataclass(frozen=True)
class Row:
    """One case of an answer.

    Attributes:
        limit_bytes: the bytes of VTCM that the answer may take.
        case: the chain, or a piece of it.
        image: the rows by columns of the image that was run.
        plan: the plan that the search chose.
        holds: whether all figures agree and the result is right.
        predicted_bytes: the bytes of VTCM that the search predicts.
        allocated_bytes: the bytes of VTCM that TVM allocates.
        used_bytes: the bytes of VTCM that the run uses; None if it was not run.
        packets: the packets of the run; None if it was not run.
        macs_per_packet: the needed MACs per packet; None if it was not run.
        said: what the run reported.
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
    """Every answer for every limit; an answer that a smaller limit gives again is not run again."""
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
    """Run and verify one case of an answer."""
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
