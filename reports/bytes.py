"""`python -m reports.bytes`: the bytes that the best plans of known networks move, beside QNN's planner.

Every chain is planned in 1, 2, 4 and 8 MiB of VTCM, in its best cut, with every cache in VTCM. The bytes are those of
the closed form, which `hexconv best` prints; a plan moves the same on every Hexagon whose VTCM holds it. Nothing runs
here: `python -m reports.fits` runs the answers.

QNN's bytes are the sum of the read and written bytes in `reports/qnn.csv` (`reports.qnn`). QNN plans
for the least time, not for the fewest bytes, and pads channels as it stores them. Both accounts have the biases; QNN
reads some for every conv, also where a chain has none. DeFiNES' nets have none.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from hexconv.analyze import needed_work
from hexconv.spec import Chain
from reports.board import LIMITS_MIB, NETS, planned, write_rows
from reports.qnn import ARCHITECTURES

ACCOUNTS = Path("reports/qnn.csv")

DEFINES_BYTES = {("mc-cnn", 2): 30_480_000, ("fsrcnn", 2): 8_850_000, ("dmcnn-vd", 2): 60_750_000}
"""What the model of DeFiNES states for its best plan, in 1 MiB + 64 KiB for maps and 1 MiB + 32 KiB for filters."""

Accounts = dict[tuple[str, str, str, int], int]
"""The bytes that QNN's planner states, by net, chain, Hexagon and MiB of VTCM."""


@dataclass(frozen=True)
class Row:
    """One chain under one limit.

    Attributes:
        net: the network that the chain is part of.
        chain: the chain.
        vtcm_mib: the MiB of VTCM that the caches may take.
        needed_bytes: the lower bound of the bytes that any plan moves, biases included; input and output are NHWC.
        traffic_bytes: the bytes that the best cut moves, biases included; None if nothing fits.
        pieces: how many pieces the best cut has.
        qnn_v73_bytes: the bytes that QNN's planner states for an HTP v73, biases included; None if it gives no graph.
        qnn_v75_bytes: the same for v75.
        defines_bytes: the bytes that the model of DeFiNES states, for nets without biases; its memories hold 2.09 MiB
            together.
    """

    net: str
    chain: str
    vtcm_mib: int
    needed_bytes: int
    traffic_bytes: int | None
    pieces: int | None
    qnn_v73_bytes: int | None
    qnn_v75_bytes: int | None
    defines_bytes: int | None


def rows(nets: Sequence[str], accounts: Accounts) -> Iterator[Row]:
    """Return every chain of some nets under every limit; a chain that several nets have is planned once."""
    for net in nets:
        for name, chain in NETS[net].items():
            for limit in LIMITS_MIB:
                traffic, pieces = _moved(chain, limit)
                v73, v75 = (accounts.get((net, name, isa, limit)) for isa in ARCHITECTURES)
                yield Row(
                    net=net,
                    chain=name,
                    vtcm_mib=limit,
                    needed_bytes=sum(needed_work(chain).traffic_bytes.values()),
                    traffic_bytes=traffic,
                    pieces=pieces,
                    qnn_v73_bytes=v73,
                    qnn_v75_bytes=v75,
                    defines_bytes=DEFINES_BYTES.get((net, limit)),
                )


@cache
def _moved(chain: Chain, limit_mib: int) -> tuple[int | None, int | None]:
    """Return the bytes and the pieces of the best cut."""
    best = planned("chain", chain, limit_mib).cuts.best
    return (best.traffic_bytes, len(best.pieces)) if best else (None, None)


def accounts_of(path: Path) -> Accounts:
    """Return read and written bytes together, as the table of accounts states them; what has no graph is left out."""
    with path.open() as file:
        stated = [row for row in csv.DictReader(file) if row["read_bytes"]]
    return {_key(row): int(row["read_bytes"]) + int(row["write_bytes"]) for row in stated}


def _key(row: dict[str, str]) -> tuple[str, str, str, int]:
    return row["net"], row["chain"], row["isa"], int(row["vtcm_mib"])


def main(arguments: Sequence[str]) -> int:
    """Write the table, a row as soon as it is there; rows of other nets than those asked for stay as they are."""
    parser = argparse.ArgumentParser(prog="reports.bytes", description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=tuple(NETS), default=list(NETS))
    parser.add_argument("--csv", type=Path, default=Path("reports/bytes.csv"), help="the table")
    options = parser.parse_args(arguments)
    found: list[Row] = []
    for row in rows(options.nets, accounts_of(ACCOUNTS)):
        found.append(row)
        print(
            f"{row.net} {row.chain} in {row.vtcm_mib} MiB: {row.traffic_bytes}, needed {row.needed_bytes}", flush=True
        )
        write_rows(options.csv, options.nets, [asdict(each) for each in found])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
