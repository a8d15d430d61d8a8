"""Keep tables that grow as benches run: new rows replace the old ones that have the same key.

A run is known by its machine code, the VTCM that it may fill, its tensors, and the source of the harness. So a case
whose code stays as it was, although kernels of others changed, is compiled and looked up, not run again. Marks of
stages are in another compilation of the case, so runs with stages are known by the source of the kernels.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.apart import Limits
from hexconv.errors import HexconvError, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.run.given import Given
from hexconv.run.measure import run_case
from hexconv.run.profile import packets_of_stages
from hexconv.run.simulator.made_files import content_key, provenance
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from hexconv.sweep.journal import Journal


def named(path: Path) -> tuple[str, str]:
    """Return the network and the form of a file NAME-FORM.onnx.

    >>> named(Path("q/mobilenet_v2-u8s8-channel.onnx"))
    ('mobilenet_v2', 'u8s8-channel')
    """
    network, _, form = path.stem.partition("-")
    return network, form


def keep(path: Path, rows: Sequence[Any], key: tuple[str, ...] = ("network", "form")) -> None:
    """Put rows into a table, sorted; they are dataclasses with the same key."""
    fresh = pd.DataFrame([asdict(each) for each in rows])
    if path.exists():
        table = pd.read_csv(path)
        other = (table[list(key)] != fresh[list(key)].iloc[0]).any(axis=1)
        fresh = pd.concat([table[other], fresh]) if other.any() else fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = fresh.convert_dtypes()
    whole.sort_values(list(key), kind="stable").to_csv(path, index=False)


def keep_all(paths: Sequence[Path], rows: Callable[[Path], Iterable[Any]], table: Path, key: tuple[str, ...]) -> int:
    """Print the rows of files and put each into a table as soon as it is measured; `rows` measures those of a file.

    Returns:
        0 if all rows hold; 1 if one doesn't, or a file can't be measured: a line says why, and the next file follows.
    """
    all_hold = True
    for path in paths:
        try:
            for row in rows(path):
                print(row, flush=True)
                keep(table, [row], key)
                all_hold &= row.holds
        except HexconvError as error:
            print(f"{path}: {error}", file=sys.stderr)
            all_hold = False
    return 0 if all_hold else 1


LIMITS = Limits(seconds=600, memory_bytes=4 << 30)
KERNELS = ("spec", "layout", "kernel", "compute", "schedule", "lower", "run")
"""The parts of the code that the packets of stages depend on; if one changes, cases are run again."""
HARNESS = ("run",)
"""The parts of the code that drive a run, and draw its tensors."""
NOTHING = Given()


@dataclass(frozen=True)
class Counted:
    """What a run took.

    Attributes:
        packets: the packets that the run took.
        passed: whether its result is numpy's.
        issue_slots: packets and stalls together; None if they weren't asked for.
        stages: the packets of each stage in a run with marks, which take some; None if they weren't asked for, or if
            there are more of them than a run tells.
        critical_packets: those outside of threads and of the slowest thread; None where there are no threads.
    """

    packets: int
    passed: bool
    issue_slots: int | None = None
    stages: dict[str, int] | None = None
    critical_packets: int | None = None


@dataclass(frozen=True)
class Runs:
    """A journal of runs: a known run is looked up, and a new one is made and added."""

    journal: Journal

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator["Runs"]:
        """Open a journal; its folder is made if need be.

        Raises:
            InputError: another bench is writing the journal.
            NotWritten: the journal can't be opened.
        """
        with Journal.opened(path, LIMITS) as journal:
            yield cls(journal)

    def by_stages(self, case: Case) -> Counted:
        """The run of a case by the present code, and the packets of its stages, from the journal if they are there."""
        key = content_key(case.to_toml(), case.settled.slug, provenance(KERNELS), "stages")
        if key not in self.journal.rows:
            self.journal.add(key, asdict(replace(self.of(case), stages=_stages(case))))
        return Counted(**self.journal.rows[key])

    def of(self, case: Case, given: Given = NOTHING, slots: bool = False) -> Counted:
        """Return the run of a case by the present code, from the journal if it is there.

        Args:
            case: the case to run.
            given: the tensors that aren't drawn.
            slots: whether to count issue slots, which takes several times as long.
        """
        told = [word for name, array in sorted((given.weights or {}).items()) for word in (name, array.tobytes())]
        lowered = lower_case(case)
        known = (_code(case, lowered), case.to_toml(), provenance(HARNESS))
        key = content_key(*known, *told, *(["slots"] if slots else []))
        if key not in self.journal.rows:
            self.journal.add(key, asdict(_run(case, lowered, given, slots)))
        return Counted(**self.journal.rows[key])


def _code(case: Case, lowered: Lowered) -> bytes:
    """Return the machine code of a case, and what it may take."""
    kernel = _simulator(case).compiled(lowered.module)
    may = f"{case.settled.arch} {case.settled.vtcm_bytes} {kernel.heap_bytes} {kernel.vtcm_bytes}"
    return kernel.elf + may.encode()


def _simulator(case: Case, slots: bool = False) -> Simulator:
    plan = case.settled
    return Simulator(plan.arch, plan.vtcm_bytes, slots=slots, seconds=LIMITS.seconds)


def _stages(case: Case) -> dict[str, int] | None:
    try:
        return packets_of_stages(case, lower_case(case), _simulator(case))
    except Unsupported:
        return None


def _run(case: Case, lowered: Lowered, given: Given, slots: bool) -> Counted:
    result = run_case(case, lowered, _simulator(case, slots), given=given)
    assert result.counts
    packets, of_threads = result.counts.packets, result.threads.packets if result.threads else ()
    critical = packets - sum(of_threads) + max(of_threads) if of_threads else None
    issue_slots = result.slots.issue_slots if result.slots else None
    return Counted(packets, result.check.passed, issue_slots, critical_packets=critical)
