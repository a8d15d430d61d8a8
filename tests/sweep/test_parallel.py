"""A case that takes its process down, hangs or raises is a disagreement, and no other case notices."""

import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from hexconv.apart import Limits, cores, do_all
from hexconv.apart.parallel import close_all, do_apart
from hexconv.apart.process import TRIES
from hexconv.errors import RunFailed, ToolMissing
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.sweep.judging import Sweep, Verdict, case_file, judge_all
from hexconv.written import temporary_folder
from tests.sweep.faults import FAULTS

CHAIN = Chain(input=(1, 1, 1, 1), conv=(Conv2d(out_channels=1),))
NAMES = ("first", *FAULTS, "refused", "second")
CASES = [Case(name, CHAIN, Plan(kernel="plain")) for name in NAMES]
LIMITS = Limits(seconds=5, memory_bytes=300 << 20)


def test_a_case_answers_for_its_own_process_only() -> None:
    verdicts = list(judge_all(CASES, 2, LIMITS, "tests.sweep.faults:judged"))
    assert [verdict.case.name for verdict in verdicts] == list(NAMES)
    assert {verdict.case.name: verdict.reasons for verdict in verdicts if verdict.outcome != "agrees"} == {
        "crashes": ("its process ended with SIGSEGV",),
        "aborts": ("its process ended with SIGABRT: last words",),
        "hangs": ("it took longer than 5 s",),
        "hogs": ("it took more than 314572800 bytes of memory",),
        "asks for too much": ("it asked for more memory than there is",),
        "is killed": ("its process was killed 3 times, as a system short of memory does",),
        "leaves": ("its process ended with exit code 3",),
        "raises": ("ValueError: line one",),
        "refused": (),
    }
    assert (Sweep.of(verdicts).checked, Sweep.of(verdicts).refused, Sweep.of(verdicts).disagree) == (10, 1, 8)


class Unsteady(ThreadPoolExecutor):
    """An executor that loses every task some times, as a cluster does whose machines go."""

    def __init__(self, losses: int) -> None:
        super().__init__(1)
        self.losses, self.seen = losses, Counter[str]()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        name = arguments[2]["name"]
        self.seen[name] += 1
        if self.seen[name] > self.losses:
            return super().submit(function, *arguments, **options)
        lost: Future[Any] = Future()
        lost.set_exception(OSError("the machine is gone"))
        return lost


def test_what_an_executor_loses_is_handed_in_again() -> None:
    tasks = [{"name": f"case {number}"} for number in range(3)]
    with Unsteady(TRIES - 1) as executor:
        found = dict(do_all("tests.sweep.faults:judged", LIMITS, tasks, executor))
    close_all()
    assert {place: ending.how for place, ending in found.items()} == dict.fromkeys(range(3), "answered")
    with Unsteady(TRIES) as executor, pytest.raises(RunFailed, match="no answer 3 times: OSError: the machine is gone"):
        list(do_all("tests.sweep.faults:judged", LIMITS, tasks, executor))


def process_of(name: str) -> int | None:
    """Do a job by an executor of its own; return the process that did it, unless it had to be ended."""
    with cores(1) as executor:
        [(_, ending)] = do_all("tests.sweep.faults:done_here", LIMITS, [{"name": name}], executor)
    return ending.answer.get("process")


def test_an_idle_process_does_the_same_job_for_a_later_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    first = process_of("first")
    assert process_of("second") == first
    assert process_of("hangs") is None
    second = process_of("third")
    assert second != first
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    third = process_of("fourth")
    assert third not in (first, second)
    monkeypatch.undo()
    assert process_of("fifth") == second
    shutil.rmtree(temporary_folder())
    assert process_of("sixth") not in (first, second, third)


def test_a_process_that_an_executor_leaves_in_the_middle_of_a_job_is_ended() -> None:
    with cores(1) as executor:
        left = executor.submit(do_apart, "tests.sweep.faults:judged", Limits(600, 1 << 40), {"name": "hangs"})
        while not left.running():
            time.sleep(0.01)
    assert left.result().how == "stopped"


def test_a_job_that_is_nowhere_is_an_error_and_no_verdict() -> None:
    with cores(1) as executor, pytest.raises(RunFailed, match=r"No module named .tests\.nowhere"):
        list(do_all("tests.nowhere:job", LIMITS, [{}], executor))


def test_a_failure_is_a_case_file() -> None:
    text = case_file(Verdict(CASES[0], "disagrees", ("one\nthing", "another")))
    assert text.startswith("# first: one thing\n# first: another\n[chain]\n")
    assert Case.parse(text, "first") == CASES[0]


def without_simulator(task: dict[str, Any]) -> dict[str, Any]:
    return {"missing": f"no simulator for {task['name']}"}


def test_a_missing_tool_is_no_verdict_and_ends_the_sweep() -> None:
    with pytest.raises(ToolMissing, match="no simulator for first"):
        list(judge_all(CASES[:1], 1, LIMITS, "tests.sweep.test_parallel:without_simulator"))
