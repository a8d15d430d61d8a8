"""Simulator runs of the candidate plans of a race."""

from dataclasses import dataclass

from hexconv.errors import Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.search.grid import Figures
from hexconv.spec import Case

DEFAULT, PLAN, CUT = "default", "plan", "cut"


@dataclass(frozen=True)
class Contender:
    """A plan or a cut that takes part in a race.

    Attributes:
        kind: `plan`, one of the best of the whole chain; `default`, what a run takes without a plan; `cut`.
        cases: the cases to run: one, or the pieces of a cut.
        figures: the figures of the plan; None for a cut.
        model_packets: the packets of all cases, by the model.
    """

    kind: str
    cases: tuple[Case, ...]
    figures: Figures | None
    model_packets: float


@dataclass(frozen=True)
class Lap:
    """The measurement of one contender.

    Attributes:
        contender: the contender that ran.
        packets: the packets of all its cases; None where a run is missing.
        said: why a run is missing; empty where none is.
    """

    contender: Contender
    packets: int | None
    said: str = ""

    @property
    def model_error(self) -> float | None:
        """The error of the model, as a share of the packets that the run took."""
        return self.contender.model_packets / self.packets - 1 if self.packets else None


@dataclass(frozen=True)
class Race:
    """All laps of one chain, the fastest first, then those that are missing."""

    laps: tuple[Lap, ...]

    @property
    def fastest(self) -> Lap | None:
        """The fastest lap; None where nothing was run."""
        return next((lap for lap in self.laps if lap.packets is not None), None)

    @property
    def whole(self) -> Lap | None:
        """The fastest lap that runs the whole chain as one piece; None where none did."""
        return next((lap for lap in self.laps if lap.packets is not None and lap.contender.figures), None)

    @property
    def default(self) -> Lap | None:
        """The lap of the plan that a run without a plan gets; None where that plan doesn't fit."""
        return next((lap for lap in self.laps if lap.contender.kind == DEFAULT), None)


def lap_of(contender: Contender, seconds: float) -> Lap:
    """Run a contender on the simulator; each of its cases has so many seconds."""
    try:
        return Lap(contender, sum(_packets(case, seconds) for case in contender.cases))
    except (ToolMissing, Overran, Unsupported, RunFailed) as reason:
        return Lap(contender, None, str(reason))


def _packets(case: Case, seconds: float) -> int:
    plan = case.settled
    simulator = Simulator(arch=plan.arch, vtcm_bytes=plan.vtcm_bytes, seconds=seconds, slots=False)
    run = run_case(case, lower_case(case), simulator)
    if not run.check.passed or run.counts is None:
        raise RunFailed(f"wrong by {run.check.max_abs_error:.3g}")
    return run.counts.packets
