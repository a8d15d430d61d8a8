"""Proof of a recommended case: lower it, count it, run it, and compare every value with the search."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from pydantic import computed_field

from hexconv.run.fills import Fills
from hexconv.search.planned_chains import Winner
from hexconv.spec import Case, Target
from hexconv.spec.kernels import KERNELS

if TYPE_CHECKING:
    from hexconv.checked import Tried
from hexconv.spec.capacities import SCOPE, granules_bytes


@dataclass(frozen=True)
class RunOutcome:
    """The result of one run, or the reason why there was none.

    Attributes:
        target: llvm or hexagon.
        passed: whether the output was right; None where the case was not run.
        said: the largest error, or the reason why it was not run.
        packets: the packets that the simulator counted.
        vtcm_bytes: the most VTCM that was in use on the simulator.
    """

    target: str
    passed: bool | None
    said: str
    packets: int | None = None
    vtcm_bytes: int | None = None


@dataclass(frozen=True)
class Verified:
    """One case, checked.

    Attributes:
        case: the name of the case.
        caches_agree: whether the closed form and TVM agree on the sizes and the sharing of all caches.
        footprint_bytes: the bytes of TVM's allocations in VTCM, in whole granules; of all allocations where none lies
            in VTCM.
        footprint_agrees: whether that equals the search's footprint.
        traffic_bytes: the bytes that were counted in the lowered loops, and biases, vectors and tables once.
        traffic_agrees: whether that equals the search's traffic.
        macs: the MACs that were counted in the lowered loops.
        macs_agree: whether that equals the search's MACs.
        runs: the runs on this machine and on the simulator, wherever its kernel runs.
    """

    case: str
    caches_agree: bool
    footprint_bytes: int
    footprint_agrees: bool
    traffic_bytes: int
    traffic_agrees: bool
    macs: int
    macs_agree: bool
    runs: tuple[RunOutcome, ...]

    @property
    def missing(self) -> tuple[RunOutcome, ...]:
        """The runs that were not made, each with its reason."""
        return tuple(run for run in self.runs if run.passed is None)

    @computed_field
    @property
    def holds(self) -> bool:
        """Whether all figures agree and no run that was made failed."""
        figures = self.caches_agree and self.footprint_agrees and self.traffic_agrees and self.macs_agree
        return figures and all(run.passed is not False for run in self.runs)


def verify(winner: Winner, seconds: float, fills: Fills | None = None) -> Verified:
    """Check a case on the host and on the simulator, wherever its kernel runs, and compare all with the search.

    Args:
        winner: the case, and the figures of the search.
        seconds: the time limit of the run on the simulator.
        fills: what its tensors are filled with; random values where this is left out.
    """
    from hexconv.checked import Trial, check
    from hexconv.run.measure import runner_of

    case, figures = winner.case, winner.figures
    checked = check(case, [Trial(runner_of(case, target, seconds), fills) for target in _targets(case)])
    counting = [each for each in checked.lowered.allocations if each.scope == SCOPE or not case.settled.uses_vtcm]
    footprint = sum(granules_bytes(memory.bytes, memory.copies) for memory in counting)
    return Verified(
        case=case.name,
        caches_agree=checked.usage.agrees,
        footprint_bytes=footprint,
        footprint_agrees=footprint == figures.footprint_bytes,
        traffic_bytes=checked.work.traffic_bytes,
        traffic_agrees=checked.work.traffic_bytes == figures.traffic_bytes,
        macs=checked.work.macs,
        macs_agree=checked.work.macs == figures.macs,
        runs=tuple(map(_outcome, checked.runs)),
    )


def _targets(case: Case) -> tuple[Target, ...]:
    """Return the targets that the nest of a case runs on."""
    home = KERNELS[case.settled.kernel or "plain"].home
    return (home,) if home else get_args(Target)


def _outcome(tried: "Tried") -> RunOutcome:
    run, target = tried.run, tried.trial.runner.target
    if run is None:
        return RunOutcome(target, tried.passed, tried.said)
    return RunOutcome(target, tried.passed, tried.said, run.counts.packets if run.counts else None, run.vtcm_bytes)
