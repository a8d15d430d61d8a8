"""Proof of a recommended case: lower it, count it, run it, and compare every value with the search."""

from dataclasses import dataclass
from typing import get_args

from hexconv.analyze.usage import cache_usage, work_usage
from hexconv.errors import Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.lower.vtcm import SCOPE, granules_bytes
from hexconv.run.count import count
from hexconv.run.fills import Fills
from hexconv.run.measure import run_case, runner_of
from hexconv.run.measurement import Runner
from hexconv.search.planned_chains import Winner
from hexconv.spec import Case, Target
from hexconv.spec.kernels import KERNELS


@dataclass(frozen=True)
class Run:
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
    runs: tuple[Run, ...]

    @property
    def missing(self) -> tuple[Run, ...]:
        """The runs that were not made, each with its reason."""
        return tuple(run for run in self.runs if run.passed is None)

    @property
    def holds(self) -> bool:
        """Whether all figures agree and no run that was made failed."""
        figures = self.caches_agree and self.footprint_agrees and self.traffic_agrees and self.macs_agree
        return figures and all(run.passed is not False for run in self.runs)


def verify(winner: Winner, seconds: float, fills: Fills | None = None) -> Verified:
    """Lower a case, compare all figures, and run it on the host and on the simulator, wherever its kernel runs.

    Args:
        winner: the case, and the figures of the search.
        seconds: the time limit of the run on the simulator.
        fills: what its tensors are filled with; random values where this is left out.
    """
    case, figures = winner.case, winner.figures
    lowered = lower_case(case)
    counting = [each for each in lowered.allocations if each.scope == SCOPE or not case.settled.uses_vtcm]
    footprint = sum(granules_bytes(memory.bytes, memory.copies) for memory in counting)
    work = work_usage(case, count(lowered))
    return Verified(
        case=case.name,
        caches_agree=cache_usage(case, lowered).agrees,
        footprint_bytes=footprint,
        footprint_agrees=footprint == figures.footprint_bytes,
        traffic_bytes=work.traffic_bytes,
        traffic_agrees=work.traffic_bytes == figures.traffic_bytes,
        macs=work.macs,
        macs_agree=work.macs == figures.macs,
        runs=tuple(_run(case, lowered, runner_of(case, target, seconds), fills) for target in _targets(case)),
    )


def _targets(case: Case) -> tuple[Target, ...]:
    """Return the targets that the nest of a case runs on."""
    home = KERNELS[case.settled.kernel or "plain"].home
    return (home,) if home else get_args(Target)


def _run(case: Case, lowered: Lowered, runner: Runner, fills: Fills | None) -> Run:
    """Run a case once; where a tool is missing or the time is too short, keep the reason instead."""
    try:
        run = run_case(case, lowered, runner, fills=fills)
    except (ToolMissing, Overran, Unsupported) as reason:
        return Run(runner.target, None, f"not run: {reason}")
    except RunFailed as failure:
        return Run(runner.target, False, str(failure))
    said = (
        f"largest error {run.check.max_abs_error:.3g}"
        if run.check.passed
        else f"wrong by {run.check.max_abs_error:.3g}"
    )
    return Run(runner.target, run.check.passed, said, run.counts.packets if run.counts else None, run.vtcm_bytes)
