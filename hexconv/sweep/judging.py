"""Random cases judged in parallel, each process apart: what one case does to its process is a verdict on it alone."""

from collections.abc import Iterator, Sequence

from hexconv.apart import Ending, Limits, Task, cores, do_all
from hexconv.errors import ToolMissing
from hexconv.spec import Case
from hexconv.sweep.verdict import Verdict, judge

LIMITS = Limits(seconds=300, memory_bytes=4 << 30)
"""A case that takes longer hangs."""


def judge_all(
    cases: Sequence[Case], workers: int, job: str = "hexconv.sweep.judging:judged", limits: Limits = LIMITS
) -> Iterator[Verdict]:
    """Verdicts in the order of the cases, each as soon as it and all before it are there.

    Args:
        cases: what to judge.
        workers: processes at a time.
        job: what each process does with a case: `judged`, or another function like it.
        limits: what it may take; its process is ended then.

    Raises:
        ToolMissing: a case runs on the simulator, which isn't there.
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
    """The verdict on a case, in the process apart."""
    try:
        verdict = judge(Case.parse(task["toml"], task["name"]))
    except ToolMissing as missing:  # the machine's fault, and no verdict
        return {"missing": str(missing)}
    return {"outcome": verdict.outcome, "reasons": verdict.reasons}


def _verdict(case: Case, ending: Ending) -> Verdict:
    """A case's verdict; none is one too."""
    if ending.how != "answered":
        return Verdict(case, "disagrees", (ending.reason,))
    return Verdict(case, ending.answer["outcome"], tuple(ending.answer["reasons"]))
