"""A case that takes its process down, hangs or raises is a disagreement, and no other case notices."""

from hexconv.apart import Limits
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.sweep.judging import judge_all
from hexconv.sweep.sweep import Sweep, case_file
from hexconv.sweep.verdict import Verdict
from tests.sweep.faults import FAULTS

CHAIN = Chain(input=(1, 1, 1, 1), conv=(Conv2d(out_channels=1),))
NAMES = ("first", *FAULTS, "refused", "second")
CASES = [Case(name, CHAIN, Plan()) for name in NAMES]
LIMITS = Limits(seconds=3, memory_bytes=300 << 20)


def test_a_case_answers_for_its_own_process_only() -> None:
    verdicts = list(judge_all(CASES, 2, "tests.sweep.faults:judged", LIMITS))
    assert [verdict.case.name for verdict in verdicts] == list(NAMES)
    assert {verdict.case.name: verdict.reasons for verdict in verdicts if verdict.outcome != "agrees"} == {
        "crashes": ("its process ended with SIGSEGV",),
        "aborts": ("its process ended with SIGABRT: last words",),
        "hangs": ("it took longer than 3 s",),
        "hogs": ("it took more than 314572800 bytes of memory",),
        "asks for too much": ("it asked for more memory than there is",),
        "is killed": ("its process was killed 3 times, as a system short of memory does",),
        "leaves": ("its process ended with exit code 3",),
        "raises": ("ValueError: line one",),
        "refused": (),
    }
    assert (Sweep.of(verdicts).checked, Sweep.of(verdicts).refused, Sweep.of(verdicts).disagree) == (10, 1, 8)


def test_a_failure_is_a_case_file() -> None:
    text = case_file(Verdict(CASES[0], "disagrees", ("one\nthing", "another")))
    assert text.startswith("# first: one thing\n# first: another\n[chain]\n")
    assert Case.parse(text, "first") == CASES[0]
