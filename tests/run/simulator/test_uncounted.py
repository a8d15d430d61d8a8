"""What the harness does uncounted isn't traced, and the account of a run is the same as with all of it traced."""

from pathlib import Path

import pytest

from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator import runner
from hexconv.run.simulator.runner import traced_addresses
from hexconv.run.simulator.toolchain import probe_program
from hexconv.spec import Case
from tests.deep import DEEP

CASE = Case.load(Path(__file__).parents[3] / "schedules" / "hvx" / "double-rings.toml")
ALL = "0x0..0xffffffff"


def test_a_program_without_the_section_is_traced_as_a_whole() -> None:
    assert traced_addresses(probe_program()) == ALL


@DEEP
@pytest.mark.simulator
def test_the_account_is_the_same_with_all_of_the_harness_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("copies", CASE.chain, CASE.plan)
    lowered = lower_case(case)
    found: list[str] = []

    def noted(program: Path) -> str:
        found.append(traced_addresses(program))
        return found[-1]

    monkeypatch.setattr(runner, "traced_addresses", noted)
    filtered = run_case(case, lowered, runner.Simulator())
    monkeypatch.setattr(runner, "traced_addresses", lambda _program: ALL)
    whole = run_case(case, lowered, runner.Simulator())
    assert filtered.slots == whole.slots
    assert len(found[0].split(",")) == 2
