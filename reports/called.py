"""`python -m reports.called CASE...`: packets of a call through a library's C functions, and of `hexconv run`.

Both read the caller's tensors and end when the last byte is written. `run` calls the kernel itself; the library is
entered by `NAME_run`, and asks the platform for every copy and for its threads. The adversarial platform of the
simulator serves both. Each row is written as soon as it is measured.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexconv.build import build
from hexconv.build.called_library import simulated_chain
from hexconv.lower import lower_case
from hexconv.run.copy_engine import Copies
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case
from hexconv.written import scratch
from reports.kept import keep_all

MOST_PERCENT = 1.0
HUNDRED = 100


@dataclass(frozen=True)
class Row:
    """A case, run by `hexconv run` and called through its library.

    Attributes:
        case: the name of the case.
        threads: how many threads it uses.
        copies: how many copies it starts.
        run_packets: the packets of `hexconv run`.
        call_packets: the packets of `NAME_run`. Those of the platform's callbacks are not counted, just as `run`
            doesn't count those of its copy engine.
        more_percent: how many packets more the call takes, in percent of `run_packets`.
        is_right: whether both results are numpy's.
    """

    case: str
    threads: int
    copies: int
    run_packets: int
    call_packets: int
    more_percent: float
    is_right: bool

    @property
    def holds(self) -> bool:
        """Whether the call is right and takes at most the allowed share of packets more."""
        return self.is_right and self.more_percent <= MOST_PERCENT


def row(case: Case) -> Row:
    """Build a case, call it once, and run it once.

    Raises:
        Unsupported: the case can't be lowered, or can't be called from C.
        RunFailed: a run gives no answer.
    """
    tensors, isa = random_tensors(case.chain), find_qemu().isa
    simulator = Simulator(case.settled.arch, case.settled.vtcm_bytes, copies=Copies("random", 1), slots=False)
    with scratch() as place:
        [built] = build([(case, tensors)], Path(place), "hexagon", isa)
        called = simulated_chain(Path(place), built, tensors.image, simulator)
        is_right = called.outputs[0].tobytes() == (Path(place) / f"{built.name}.output.bin").read_bytes()
    run = run_case(case, lower_case(case), simulator)
    assert called.counts
    assert called.copies
    assert run.counts
    packets = (run.counts.packets, called.counts.packets)
    more = HUNDRED * (packets[1] / packets[0] - 1)
    return Row(case.name, built.threads, called.copies.pieces, *packets, round(more, 3), is_right and run.check.passed)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a result is wrong, or a call takes more than a hundredth more."""
    parser = argparse.ArgumentParser(prog="reports.called", description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path, help="case files of integers")
    parser.add_argument("--csv", type=Path, default=Path("reports/called.csv"), help="the table")
    options = parser.parse_args(arguments)
    return keep_all(options.cases, lambda path: [row(Case.load(path, "hexagon"))], options.csv, ("case",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
