"""Rates of kernels: those that runs reached, read from the tables that they wrote, and the limit of any kernel."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from hexconv.errors import InputError
from hexconv.spec import Chain
from hexconv.spec.case import check_regular

LIMIT = 256
"""MACs per packet: two vrmpy of 128, in the forms that every HVX from v60 on issues twice a packet.

A register pair's vrmpy of v65 and vrmpyz of v66 do more; no simulator that this project can use executes them.
"""


def limit(chain: Chain) -> float:
    """The MACs per packet of two vrmpy in every packet; an int16 product takes one MAC for each pair of bytes."""
    bytes_of = [np.dtype(dtype).itemsize for dtype in (chain.dtype, chain.dtype_of_filters)]
    return LIMIT / prod(bytes_of) if chain.is_integer else LIMIT


@dataclass(frozen=True)
class Rate:
    """The rate that one run reached.

    Attributes:
        case: the name of the case, or of the job of a tool that hexconv is compared with.
        tool: `hexconv`, or the tool that it is compared with.
        macs_per_packet: the needed MACs over the packets of the whole kernel.
        packets: the packets of the kernel; None where the table doesn't have them.
    """

    case: str
    tool: str
    macs_per_packet: float
    packets: int | None


COUNTED, PEERS = ("simulator.csv", "hvx.csv", "hvx_int16.csv"), "bench.csv"
NEEDED = ("case", "macs_per_packet")
WRITTEN_BY = "what 'hexconv run --target hexagon --csv FILE' writes"


def read_rates(folder: Path) -> tuple[Rate, ...]:
    """Read the rates of all tables in a folder; the last table counts for a case in several, and tables may be missing.

    `simulator.csv` is what `hexconv run --target hexagon --csv` writes, `hvx.csv` and `hvx_int16.csv` the kernels' own
    tables. `bench.csv` is the table of the tools compared with, with a column `tool`; rows without a count are
    left out.

    Raises:
        InputError: a table can't be read, or lacks a column.
    """
    rates: dict[tuple[str, str], Rate] = {}
    for path in (folder / name for name in (*COUNTED, PEERS)):
        if path.exists():
            rates |= {(rate.case, rate.tool): rate for rate in _read(path)}
    return tuple(rates.values())


def _read(path: Path) -> Sequence[Rate]:
    """Read the rows of one table that have a rate."""
    try:
        check_regular(path)
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            columns, rows = table.fieldnames or (), list(table)
        missing = [name for name in NEEDED if name not in columns]
        if missing and path.name == PEERS:
            return ()
        if not missing:
            return [_rate(row) for row in rows if row["macs_per_packet"]]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(str(path), f"a table that can't be read ({error})", WRITTEN_BY) from None
    raise InputError(str(path), f"no column {missing[0]}", WRITTEN_BY)


def _rate(row: dict[str, str]) -> Rate:
    """Return the rate of one row."""
    packets = row.get("packets")
    return Rate(
        case=row["case"],
        tool=row.get("tool") or "hexconv",
        macs_per_packet=float(row["macs_per_packet"]),
        packets=int(float(packets)) if packets else None,
    )
