"""Random cases judged in parallel, each process apart: what one case does to its process is a verdict on it alone."""

from collections.abc import Iterator, Sequence

from hexconv.apart import Ending, Limits, Task, cores, do_all
from hexconv.errors import ToolMissing
from hexconv.spec import Case
from hexconv.sweep.verdict import Verdict, judge

LIMITS = Limits(seconds=300, memory_bytes=4 << 30)
"""The seconds after which a case counts as hanging."""


def judge_all(
    cases: Sequence[Case], workers: int, job: str = "hexconv.sweep.judging:judged", limits: Limits = LIMITS
) -> Iterator[Verdict]:
    """Judge cases in parallel; yield the verdicts in the order of the cases, each as soon as all before it are known.

    Args:
        cases: the cases to judge.
        workers: the number of processes at a time.
        job: what each process does with a case: `judged`, or another function like it.
        limits: the time and memory of a case; its process is ended beyond them.

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


def _verdict(case: Case, ending: Ending) -> Verdict:
    """Return a case's verdict; a process that ended without one is a verdict, too."""
    if ending.how != "answered":
        return Verdict(case, "disagrees", (ending.reason,))
    return Verdict(case, ending.answer["outcome"], tuple(ending.answer["reasons"]))
