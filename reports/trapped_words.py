"""`python -m reports.trapped_words CASE.toml ...`: runs cases by the matrix engine's own words, and by calls.

Writes `reports/trapped_words.csv`. It takes QEMU 11 or newer, where words trap; a handler has the model perform each.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import pandas as pd

from hexconv.errors import HexconvError
from hexconv.spec import Case
from hexconv.spec.requantize import Engine
from hexconv.written import whole_file
from reports.hmx import requantised, run_of

TABLE = Path("reports/trapped_words.csv")
SAME = ("check", "engine", "vtcm_bytes", "copies", "from_exact")
"""What of a run doesn't depend on how the engine's packets are done."""


@dataclass(frozen=True)
class Row:
    """One case.

    Attributes:
        case: the name of the case.
        requantisation: how sums become results: `exact`, as stated, by HVX, or `fast`, by the engine's own convert.
        packets: the packets of one thread where it calls the model for each packet of the engine.
        words_packets: the same where packets of the engine are its own words, as on a device.
        words_agree: whether every element and all counts of the engine, copies and memory are those of calls.
    """

    case: str
    requantisation: str
    packets: int
    words_packets: int
    words_agree: bool


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    """Yield two rows for each case, one for each requantisation.

    Raises:
        ToolMissing: the simulator doesn't let the words trap.
        RunFailed: a result is wrong.
    """
    for case in cases:
        for engine in get_args(Engine):
            by_words, by_calls = (run_of(requantised(case, engine), words) for words in (True, False))
            assert by_words.counts, "the simulator counts"
            assert by_calls.counts, "the simulator counts"
            agree = all(getattr(by_calls, each) == getattr(by_words, each) for each in SAME)
            yield Row(case.name, engine, by_calls.counts.packets, by_words.counts.packets, agree)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of some cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", metavar="CASE.toml")
    asked = parser.parse_args(arguments)
    try:
        found = list(rows([Case.load(path, "hexagon") for path in asked.cases]))
    except HexconvError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with whole_file(TABLE) as made:
        pd.DataFrame([asdict(row) for row in found]).to_csv(made, index=False)
    differing = [row for row in found if not row.words_agree]
    sys.stdout.write(f"{len(found)} rows, {len(differing)} of them differ from calls\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
