"""Hostile input is accepted, or refused in one line: some texts of each kind here, 100,000 by `make fuzz`."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.strategies import SEEDS, TEXTS
from tests.fuzz.targets import SHARES, TARGETS, accepts, limit_memory

INPUTS = os.environ.get("HEXCONV_FUZZ_INPUTS")
FEW = 600
CHECKS: Any = list(HealthCheck)  # which iterates as its metaclass, by its types
EVERY_TIME_OTHERS = settings(deadline=None, suppress_health_check=CHECKS, derandomize=INPUTS is None)


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_given_is_accepted_or_refused_in_one_line(name: str) -> None:
    inputs = int(SHARES[name] * int(INPUTS or FEW))
    answers = {True: 0, False: 0}
    if INPUTS:
        limit_memory()

    @settings(EVERY_TIME_OTHERS, max_examples=inputs)
    @given(TEXTS[name])
    def answered(text: str) -> None:
        answers[accepts(TARGETS[name], text)] += 1

    answered()
    print(f"{name}: {answers[True]} accepted, {answers[False]} refused")
    assert min(answers.values()) >= inputs / 100, f"hardly any of one kind: {answers}"


@pytest.mark.parametrize("name", TARGETS)
def test_what_the_fuzzer_starts_from_is_good(name: str) -> None:
    for text in SEEDS[name]:
        assert accepts(TARGETS[name], text), text
