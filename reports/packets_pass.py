"""`python -m reports.packets_pass schedules/hvx/*.toml`: the pass over LLVM's packets, with it and without it.

The pass (`hexconv.lower.fewer_stalls`) moves loads up and exchanges products where that removes stalls. Each case is
compiled both ways and run on the simulator; both results are compared with numpy's.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from hexconv.checked import Trial, check
from hexconv.errors import HexconvError
from hexconv.lower import object_file
from hexconv.run.measure import Run, runner_of
from hexconv.run.simulator.slots import Slots
from hexconv.spec import Case


@dataclass(frozen=True)
class Row:
    """A case with the pass and without it.

    Attributes:
        case: the name of the case.
        passed: whether both outputs are numpy's answer.
        packets: the packets that the kernel executes with the pass.
        packets_without: the same without it.
        issue_slots: packets plus stalls with the pass.
        issue_slots_without: the same without it.
        saved_share: the share of the slots without the pass that it saves.
    """

    case: str
    passed: bool
    packets: int
    packets_without: int
    issue_slots: int
    issue_slots_without: int
    saved_share: float


def row(path: Path) -> Row:
    """Run a case both ways.

    Raises:
        HexconvError: a run gave no answer.
    """
    case = Case.load(path)
    ours, own = _run(case), _without(case)
    slots, slots_without = _slots(ours), _slots(own)
    return Row(
        case=case.name,
        passed=ours.check.passed and own.check.passed,
        packets=slots.packets,
        packets_without=slots_without.packets,
        issue_slots=slots.issue_slots,
        issue_slots_without=slots_without.issue_slots,
        saved_share=round(1 - slots.issue_slots / slots_without.issue_slots, 4),
    )


def _run(case: Case) -> Run:
    [tried] = check(case, [Trial(runner_of(case, "hexagon"))]).runs
    return tried.answer()


def _without(case: Case) -> Run:
    with patch.object(object_file, "with_fewer_stalls", lambda text, _: text):
        return _run(case)


def _slots(run: Run) -> Slots:
    assert run.slots, "the simulator counts slots"
    return run.slots


def main(arguments: Sequence[str]) -> int:
    """Print the table and write it; exit 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="reports.packets_pass", description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path, default=Path("reports/packets_pass.csv"), help="the table")
    options = parser.parse_args(arguments)
    rows = []
    try:
        for path in options.cases:
            rows.append(row(path))
            print(*asdict(rows[-1]).values(), flush=True)
    except HexconvError as error:
        print(f"hexconv: {error}", file=sys.stderr)
        return error.exit_code
    table = pd.DataFrame([asdict(each) for each in rows])
    table.to_csv(options.csv, index=False)
    return 0 if table["passed"].all() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
