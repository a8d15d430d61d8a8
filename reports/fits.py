"""`python -m reports.fits`: lowers, counts and runs the answers that stand on the board of bytes.

Every chain is planned as on the board, fused or in its best cut, in 8, 4, 2 and 1 MiB of VTCM. Each case of an answer
is verified: the search's figures are what TVM allocates, what the run uses, and what the loops move and multiply, and
the result is numpy's. An answer that another limit gives too is run once. Images stay whole if a run takes less than
five minutes; else they are cut, and the row says to which size.

Random filters of uint8 have sums so large that every result of these nets is 255, whatever a kernel reads. So each
output channel has one tap, of 255, and convs are scaled to keep what it multiplies: a result tells which element of the
input it came from, through all convs.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hexconv.analyze import needed_macs
from hexconv.run.fills import Fills, tensor_names
from hexconv.search import Winner, verify
from hexconv.spec import Chain, Plan, Requantize
from hexconv.spec.names import INPUT
from reports.board import LIMITS_MIB, NETS, planned, write_rows
from reports.network_shapes import small

SECONDS = 300
PACKETS_PER_SECOND = 500_000
"""How many packets the simulator runs in a second, at least."""
MACS_PER_PACKET = 200
"""How many MACs the kernels do in a packet, at least, if the image is large."""
KEEPS = Requantize(multiplier=round(2**38 / 255), shift=-7)
MOST_MACS = SECONDS * PACKETS_PER_SECOND * MACS_PER_PACKET


@dataclass(frozen=True)
class Row:
    """One case of an answer.

    Attributes:
        net: the network that the chain is part of.
        vtcm_mib: the MiB of VTCM that the answer may take.
        case: the chain, or a piece of it.
        image: the rows by columns of the image that was run.
        plan: the plan that the search chose.
        holds: whether all figures agree and the result is right.
        predicted_bytes: the bytes of VTCM that the search predicts.
        allocated_bytes: the bytes of VTCM that TVM allocates.
        used_bytes: the bytes of VTCM that the run uses; None if it was not run.
        traffic_bytes: the bytes that the search predicts to move, and that the loops move.
        packets: the packets of the run; None if it was not run.
        macs_per_packet: the needed MACs per packet; None if it was not run.
        said: what the run reported.
    """

    net: str
    vtcm_mib: int
    case: str
    image: str
    plan: str
    holds: bool
    predicted_bytes: int
    allocated_bytes: int
    used_bytes: int | None
    traffic_bytes: int
    packets: int | None
    macs_per_packet: float | None
    said: str


def rows(net: str) -> Iterator[Row]:
    """Return every answer for every chain of a net and every limit, the largest first."""
    known: dict[tuple[Chain, Plan], Row] = {}
    for name, whole in NETS[net].items():
        chain = small(whole, MOST_MACS)
        for limit in reversed(LIMITS_MIB):
            answers = planned(name, chain, limit)
            if answers.cuts.best is None:
                yield Row(net, limit, name, _image(chain), "", False, 0, 0, None, 0, None, None, "nothing fits")
                continue
            for winner in answers.pieces(answers.cuts.best):
                key = (winner.case.chain, winner.case.plan)
                known[key] = known.get(key) or _verified(winner, net, limit)
                yield replace(known[key], vtcm_mib=limit, case=winner.case.name)


def _verified(winner: Winner, net: str, limit: int) -> Row:
    """Run and verify one case of an answer."""
    case = winner.case
    chain = keeping(case.chain)
    found = verify(replace(winner, case=replace(case, chain=chain)), SECONDS, taps_of(chain))
    run = found.runs[0]
    is_whole = run.vtcm_bytes == winner.figures.footprint_bytes
    return Row(
        net=net,
        vtcm_mib=limit,
        case=case.name,
        image=_image(case.chain),
        plan=case.settled.slug,
        holds=found.holds and not found.missing and is_whole,
        predicted_bytes=winner.figures.footprint_bytes,
        allocated_bytes=found.footprint_bytes,
        used_bytes=run.vtcm_bytes,
        traffic_bytes=found.traffic_bytes,
        packets=run.packets,
        macs_per_packet=round(needed_macs(case.chain) / run.packets, 2) if run.packets else None,
        said=run.said,
    )


def keeping(chain: Chain) -> Chain:
    """Scale convs so that a tap of 255 keeps what it multiplies; their code is the same, but for a number."""
    return replace(chain, conv=tuple(replace(conv, requantize=KEEPS) for conv in chain.conv))


def taps_of(chain: Chain) -> Fills:
    """Fill the input at random, and each output channel with one tap."""
    return tuple("random" if name == INPUT else "one_hot" for name in tensor_names(chain))


def _image(chain: Chain) -> str:
    return f"{chain.input[1]}x{chain.input[2]}"


def main(arguments: Sequence[str]) -> int:
    """Write the table, a net at a time; exit 1 if something doesn't fit or doesn't hold."""
    parser = argparse.ArgumentParser(prog="reports.fits", description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=tuple(NETS), default=list(NETS))
    parser.add_argument("--csv", type=Path, default=Path("reports/fits.csv"), help="the table")
    options = parser.parse_args(arguments)
    held = [_net(net, options.csv) for net in options.nets]
    return 0 if all(held) else 1


def _net(net: str, path: Path) -> bool:
    """Verify the answers of one net; return whether all of them hold."""
    found: list[Row] = []
    for row in rows(net):
        found.append(row)
        per_packet = "" if row.macs_per_packet is None else f", {row.macs_per_packet} MACs per packet"
        verdict = "holds" if row.holds else "does NOT hold"
        what = f"{net} {row.case} {row.image} {row.plan}"
        print(f"{row.vtcm_mib} MiB: {what}: {verdict}, {row.said}{per_packet}", flush=True)
    write_rows(path, [net], [asdict(row) for row in found])
    held = sum(row.holds for row in found)
    print(f"{net}: {held} of {len(found)} hold; {path}", flush=True)
    return held == len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
