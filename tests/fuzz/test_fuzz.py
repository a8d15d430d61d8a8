"""Hostile input is accepted, or refused in one line: a few hundred texts of each kind here, 100,000 by `make fuzz`."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.strategies import SEEDS, TEXTS
from tests.fuzz.targets import TARGETS, accepts

INPUTS = int(os.environ.get("HEXCONV_FUZZ_INPUTS", "300"))
ALL = settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_given_is_accepted_or_refused_in_one_line(name: str) -> None:
    answers = {True: 0, False: 0}

    @ALL
    @given(TEXTS[name])
    def answered(text: str) -> None:
        answers[accepts(TARGETS[name], text)] += 1

    answered()
    print(f"{name}: {answers[True]} accepted, {answers[False]} refused")
    assert min(answers.values()) > INPUTS / 100, (
        answers
    )  # hostile files that are all refused at their first line show little


@pytest.mark.parametrize("name", TARGETS)
def test_what_the_fuzzer_starts_from_is_good(name: str) -> None:
    for text in SEEDS[name]:
        assert accepts(TARGETS[name], text), text
