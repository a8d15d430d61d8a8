"""Check a case: predicted caches against allocated ones, predicted work against counts, and each run against numpy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hexconv.analyze.usage import Usage, WorkUsage, beaten, cache_usage, miscounts, other_sizes, work_usage
from hexconv.errors import HexconvError, Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.run.fills import Fills
from hexconv.run.given import Given
from hexconv.run.host import count
from hexconv.run.measure import Run, run_case
from hexconv.run.measurement import Runner
from hexconv.spec import Case


@dataclass(frozen=True)
class Trial:
    """A run to make.

    Attributes:
        runner: where the case runs.
        fills: what its tensors are filled with; random values where this is None.
        seed: the seed of its tensors.
        given: tensors to use instead of filled ones.
        save: the `.npz` file for what goes in and what comes out.
    """

    runner: Runner
    fills: Fills | None = None
    seed: int = 0
    given: Given | None = None
    save: Path | None = None


@dataclass(frozen=True)
class Tried:
    """What came of a run.

    Attributes:
        trial: the run that was asked for.
        run: what it showed; None if it gave no answer.
        error: why it gave none.
    """

    trial: Trial
    run: Run | None = None
    error: HexconvError | None = None

    @property
    def passed(self) -> bool | None:
        """Whether its output is numpy's; None where the run was not made, or ended by its limits."""
        if self.run:
            return self.run.check.passed
        return None if isinstance(self.error, (ToolMissing, Overran, Unsupported)) else False

    @property
    def said(self) -> str:
        """The largest error, or why there is none."""
        if self.run is None:
            return f"not run: {self.error}" if self.passed is None else str(self.error)
        return f"{'largest error' if self.passed else 'wrong by'} {self.run.check.max_abs_error:.3g}"

    def answer(self) -> Run:
        """Return what the run showed.

        Raises:
            HexconvError: why it gave no answer.
        """
        if self.run is None:
            assert self.error, "a run without an answer has a reason"
            raise self.error
        return self.run

    def differences(self) -> Iterator[str]:
        """Say what is wrong with the output, or why there is none."""
        if self.run is None:
            yield f"the run gave no answer: {self.error}"
        elif not self.run.check.fringe_is_zero:
            yield "the fringe of the output is not zero"
        elif not self.run.check.passed:
            relative = f"{self.run.check.max_rel_error:.3g} of the largest"
            yield f"the output differs from numpy by up to {self.run.check.max_abs_error:.6g} ({relative})"


@dataclass(frozen=True)
class Checked:
    """A lowered case, what is predicted of it beside what is true, and its runs.

    Attributes:
        case: the case.
        lowered: its lowered module.
        usage: the caches and allocations as predicted, as TVM made them, and as documented.
        runs: the runs that were asked for, in order.
    """

    case: Case
    lowered: Lowered
    usage: Usage
    runs: tuple[Tried, ...]

    @cached_property
    def work(self) -> WorkUsage:
        """The traffic and the MACs as predicted, and as counted in the lowered loops, when first asked for."""
        return work_usage(self.case, count(self.lowered))

    @property
    def agrees(self) -> bool:
        """Whether prediction, TVM, counts and documents are the same in everything; runs aside."""
        return self.usage.agrees and self.work.agrees

    def other_sizes(self) -> Iterator[str]:
        """Say where caches or allocations differ."""
        return other_sizes(self.usage)

    def other_work(self) -> Iterator[str]:
        """Say where counts differ from the prediction, or beat a lower bound."""
        yield from miscounts(self.work)
        yield from beaten(self.work)


def check(case: Case, trials: Sequence[Trial] = ()) -> Checked:
    """Lower a case and run it; a run that gives no answer is kept with its reason.

    A run that can't be made, or ends by its limits, is the last on its target: the same would become of the others.

    Args:
        case: the case.
        trials: the runs to make.

    Raises:
        Unsupported: TVM or a kernel can't lower the case.
        InputError: the case documents a cache that it doesn't have.
        NotWritten: a run's file can't be written.
    """
    lowered = lower_case(case)
    usage, runs, given_up = cache_usage(case, lowered), list[Tried](), set[str]()
    for trial in trials:
        if trial.runner.target not in given_up:
            runs.append(_tried(case, lowered, trial))
            given_up |= {trial.runner.target} if runs[-1].passed is None else set()
    return Checked(case, lowered, usage, tuple(runs))


def _tried(case: Case, lowered: Lowered, trial: Trial) -> Tried:
    try:
        run = run_case(case, lowered, trial.runner, trial.seed, trial.save, trial.fills, trial.given)
    except (RunFailed, ToolMissing, Unsupported) as error:
        return Tried(trial, error=error)
    return Tried(trial, run)
