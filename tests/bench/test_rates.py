"""What the prices of the model are fitted to: the stages of a run, each with the parts that it is made of."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.analyze import Planned
from hexconv.analyze.row_grid import nest_parts
from hexconv.spec import Case
from reports.kept import Runs
from reports.rates import stages_and_whole

CASE = Path(__file__).parents[2] / "schedules" / "hvx" / "double-stripes.toml"


@pytest.mark.simulator
def test_stages_are_a_whole_run_in_packets_and_in_parts(tmp_path: Path) -> None:
    case = Case.load(CASE)
    with Runs.opened(tmp_path / "runs.journal") as runs:
        *stages, whole = stages_and_whole(case, runs)
        known = runs.by_stages(case)
    with Runs.opened(tmp_path / "runs.journal") as runs:
        assert runs.by_stages(case) == known
    assert known.stages
    assert set(known.stages) == {"set up", "read input", "read filter1", "conv 1", "write output"}
    assert sum(stage.packets for stage in stages) == pytest.approx(whole.packets)
    parts = nest_parts(Planned.of(case).axes)
    assert {name: sum(stage.occurs.get(name, 0) for stage in stages) for name in parts} == pytest.approx(parts)


@pytest.mark.simulator
def test_a_run_is_known_by_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.load(CASE)
    with Runs.opened(tmp_path / "runs.journal") as runs:
        known = runs.of(case)
        monkeypatch.setattr("reports.kept.run_case", None)  # a run would fail now
        assert runs.of(case) == known
        with pytest.raises(TypeError):
            runs.of(replace(case, plan=replace(case.plan, buffering="single")))
