"""A case that takes its process down, hangs or raises is a disagreement, and no other case notices."""

import os
import time

from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.sweep import Sweep, Verdict, case_file, judge_all

CHAIN = Chain(input=(1, 1, 1, 1), conv=(Conv2d(out_channels=1),))
NAMES = ("first", "crashes", "second", "hangs", "raises", "refused", "third")
CASES = [Case(name, CHAIN, Plan()) for name in NAMES]


def judge_by_name(case: Case) -> Verdict:
    """What each name says."""
    if case.name == "crashes":
        os.abort()
    if case.name == "hangs":
        time.sleep(3600)
    if case.name == "raises":
        raise ValueError("line one\nline two")
    return Verdict(case, "refused" if case.name == "refused" else "agrees")


def test_a_case_answers_for_its_own_process_only() -> None:
    verdicts = list(judge_all(CASES, 2, judge_by_name, longest_seconds=10))
    assert [verdict.case.name for verdict in verdicts] == list(NAMES)
    assert {verdict.case.name: verdict.outcome for verdict in verdicts if verdict.outcome != "agrees"} == {
        "crashes": "disagrees",
        "hangs": "disagrees",
        "raises": "disagrees",
        "refused": "refused",
    }
    reasons = {verdict.case.name: verdict.reasons for verdict in verdicts}
    assert reasons["crashes"] == ("its process ended with exit code -6",)
    assert reasons["hangs"] == ("it did not come to an end in time",)
    assert reasons["raises"] == ("ValueError: line one",)
    assert Sweep.of(verdicts).checked == 6
    assert Sweep.of(verdicts).refused == 1
    assert Sweep.of(verdicts).disagree == 3


def test_a_failure_is_a_case_file() -> None:
    text = case_file(Verdict(CASES[0], "disagrees", ("one\nthing", "another")))
    assert text.startswith("# first: one thing\n# first: another\n[chain]\n")
    assert Case.parse(text, "first") == CASES[0]
