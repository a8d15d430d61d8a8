"""One case judged in every respect, and random cases in parallel, each in a process apart."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hexconv.analyze import misfit, vtcm_fit
from hexconv.analyze.usage import other_packets
from hexconv.apart import Ending, Limits, Task, cores, do_all
from hexconv.checked import Checked, Trial, check
from hexconv.errors import ToolMissing, Unsupported
from hexconv.run.copy_engine import ANY_MOMENT, MOMENTS, Copies
from hexconv.run.fills import CORNERS, fills_of_run, fills_text
from hexconv.run.host import Host
from hexconv.run.measure import Run
from hexconv.run.measurement import Runner
from hexconv.run.simulator.made_files import other_code
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_columns
from hexconv.spec.kernels import Kernel

RUNS = 1 + len(CORNERS) + 1
"""The runs of a case: on random tensors, on input and filters at their extremes, and on a mix of fills."""

ON_SIMULATOR: tuple[Kernel, ...] = ("hvx", "hmx")
"""The kernels whose code runs on the simulator alone."""

Outcome = Literal["agrees", "refused", "disagrees"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case.

    Attributes:
        case: the case that was judged.
        outcome: whether all opinions agree; `refused` where TVM or the scheme can't do the case.
        reasons: what differs, or why it was refused; one line each.
    """

    case: Case
    outcome: Outcome
    reasons: tuple[str, ...] = ()


def judge(case: Case) -> Verdict:
    """Lower a case, compare it with the closed form, run it where its kernel runs and compare that with numpy.

    Raises:
        ToolMissing: its kernel runs on the simulator, which isn't there.
    """
    try:
        checked = check(case, list(_trials(case)))
        reasons = (*checked.other_sizes(), *checked.other_work(), *_wrong_runs(checked))
    except Unsupported as refusal:
        return Verdict(case, "refused", (str(refusal),))
    return Verdict(case, "disagrees" if reasons else "agrees", reasons)


def _wrong_runs(checked: Checked) -> Iterator[str]:
    """Say what is wrong with the runs of a case, and which run it is.

    Raises:
        ToolMissing, Unsupported: a run could not be made.
    """
    plan = checked.case.settled
    for tried in checked.runs:
        if isinstance(tried.error, (ToolMissing, Unsupported)):
            tried.answer()
        which = f", filled with {fills_text(tried.trial.fills or ())}"
        runner = tried.trial.runner
        if isinstance(runner, (Host, Simulator)) and plan.buffering == "double":
            which += f", with {runner.copies.moment} copies"
        yield from (f"{error}{which}" for error in tried.differences())
        if plan.kernel == "hvx" and tried.run:
            yield from (f"{fault}{which}" for fault in short_copies(tried.run))
        if plan.kernel == "hmx" and tried.run:
            yield from (f"{fault}{which}" for fault in _other_use_of_engine(checked.case, tried.run))


def _other_use_of_engine(case: Case, run: Run) -> Iterator[str]:
    """Say what a run used of the matrix engine, and of VTCM between its lines, that is not as predicted."""
    yield from other_packets(case, run.engine and run.engine.packets)
    demand = vtcm_fit(case.chain, case.settled).demand_bytes
    if run.vtcm_bytes != demand:
        yield f"VTCM: closed form {demand} bytes, the run placed {run.vtcm_bytes}"


def _trials(case: Case) -> Iterator[Trial]:
    """Yield the runs of a case: on random tensors with every runner, on extremes with the first."""
    fills = [fills_of_run(case.chain, number, 0) for number in range(RUNS)]
    for place, runner in enumerate(_runners(case)):
        yield Trial(runner, fills[0])
        if place == 0:
            yield from (Trial(_quicker(runner), filled) for filled in fills[1:])


def _runners(case: Case) -> tuple[Runner, ...]:
    """Return the runners of a case: where copies are asynchronous, one for each moment at which they may happen.

    There are none where a plan for the simulator does not fit its VTCM.
    """
    plan = case.settled
    moments = [Copies(moment) for moment in MOMENTS] if plan.buffering == "double" else [ANY_MOMENT]
    if plan.kernel not in ON_SIMULATOR:
        return tuple(Host(copies, calls=1) for copies in moments)
    if misfit(case):
        return ()
    first, *others = (Simulator(plan.arch, plan.vtcm_bytes, copies=copies, vtcm_loads=False) for copies in moments)
    return (_quicker(first) if plan.kernel == "hmx" else first, *map(_quicker, others))


def _quicker(runner: Runner) -> Runner:
    """Drop the count of issue slots: no value of a tensor and no moment of a copy changes which packets are run."""
    return replace(runner, slots=False) if isinstance(runner, Simulator) else runner


def short_copies(result: Run) -> Iterator[str]:
    """Say how many copies of a nest of rows are short for no reason.

    Not of a plain kernel's: they end with the columns of a block, of which padding may leave one.
    """
    if result.copies and result.copies.short_pieces:
        yield f"{result.copies.short_pieces} rows below 128 bytes are copies that those before them could hold"


def judge_all(
    cases: Sequence[Case], workers: int, limits: Limits, job: str = "hexconv.sweep.judging:judged"
) -> Iterator[Verdict]:
    """Judge cases in parallel; yield the verdicts in the order of the cases, each as soon as all before it are known.

    Args:
        cases: the cases to judge.
        workers: the number of processes at a time.
        limits: the time and memory of a case; its process is ended beyond them.
        job: what each process does with a case: `judged`, or another function like it.

    Raises:
        ToolMissing: a case runs on the simulator, which is not installed.
    """
    tasks = [{"name": case.name, "toml": case.to_toml()} for case in cases]
    early: dict[int, Ending] = {}
    yielded = 0
    with cores(workers) as executor:
        for place, ending in do_all(job, limits, tasks, executor):
            if "missing" in ending.answer:
                raise ToolMissing(ending.answer["missing"])
            early[place] = ending
            while yielded in early:
                yield _verdict(cases[yielded], early.pop(yielded))
                yielded += 1


def judged(task: Task) -> Task:
    """Judge a case, in a process of its own."""
    try:
        verdict = judge(Case.parse(task["toml"], task["name"]))
    except ToolMissing as missing:  # The machine is at fault, not the case.
        return {"missing": str(missing)}
    return {"outcome": verdict.outcome, "reasons": verdict.reasons}


STATUSES: dict[Outcome, str] = {"agrees": "holds", "refused": "refused", "disagrees": "differs"}
"""The `status` of a row of a table, by the outcome of its case."""


def judged_row(task: Task) -> Task:
    """Judge a case, in a process of its own, for a row of a table."""
    if missing := other_code(task["code"]):
        return {"missing": missing}
    case = Case.parse(task["toml"], task["case"])
    answer = judged({"name": case.name, "toml": task["toml"]})
    if "missing" in answer:
        return answer
    return {
        **kernel_columns(case.kernels),
        "status": STATUSES[answer["outcome"]],
        "reason": "; ".join(answer["reasons"]),
    }


def _verdict(case: Case, ending: Ending) -> Verdict:
    """Return a case's verdict; a process that ended without one is a verdict, too."""
    if ending.how != "answered":
        return Verdict(case, "disagrees", (ending.reason,))
    return Verdict(case, ending.answer["outcome"], tuple(ending.answer["reasons"]))


@dataclass(frozen=True)
class Sweep:
    """The sum of many verdicts.

    Attributes:
        checked: how many cases were lowered and run.
        refused: how many cases TVM or a kernel can't do; they are not among the checked ones.
        disagree: in how many of the checked cases two opinions differ.
        failures: a case file of each case that disagrees, which says in comments what differs.
    """

    checked: int
    refused: int
    disagree: int
    failures: tuple[str, ...]

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Sweep":
        """Count verdicts."""
        verdicts = list(verdicts)
        refused = sum(verdict.outcome == "refused" for verdict in verdicts)
        failures = tuple(case_file(verdict) for verdict in verdicts if verdict.outcome == "disagrees")
        return cls(len(verdicts) - refused, refused, len(failures), failures)


def case_file(verdict: Verdict) -> str:
    """The case as TOML, ready to save and rerun, under comments on what became of it."""
    comments = [f"# {verdict.case.name}: {' '.join(reason.split())}" for reason in verdict.reasons]
    return "\n".join([*comments, verdict.case.to_toml()])
