"""What the prices of the model are fitted to: the stages of a run, each with the parts that it is made of."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.analyze import Planned
from hexconv.analyze.row_grid import nest_parts
from hexconv.search.machine import rates
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from reports.kept import Runs
from reports.rates import OF_LANES, Stage, lanes_priced, stages_and_whole

HVX = Plan(kernel="hvx")
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


def test_prices_of_lanes_are_fitted_to_what_others_leave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cases of other convs don't count, other prices stay, and what runs took by them is no error."""
    known = rates("v67").nest
    conv = Conv2d(out_channels=12, kernel=(3, 3), requantize=Requantize(multiplier=0x5A7B3C1D, shift=-7))
    lanes = [Case("", Chain(input=(1, 9, columns, 3), dtype="uint8", conv=(conv,)), HVX) for columns in (60, 90, 140)]
    other = Case("", Chain(input=(1, 9, 9, 64), dtype="uint8", conv=(replace(conv, out_channels=64),)), HVX)
    asked: list[Case] = []

    def stages(case: Case, _: Runs) -> list[Stage]:
        asked.append(case)
        parts = nest_parts(Planned.of(case).axes)
        own = sum(
            known.parts[name] * times for name, times in parts.items() if name in OF_LANES and name in known.parts
        )
        return [Stage.whole(parts, known.packets(parts) + own)]

    monkeypatch.setattr("reports.rates.stages_and_whole", stages)
    with Runs.opened(tmp_path / "runs.journal") as runs:
        found = lanes_priced([*lanes, other], runs, known)
    assert asked == lanes
    assert {name: price for name, price in found.parts.items() if name not in OF_LANES} == {
        name: price for name, price in known.parts.items() if name not in OF_LANES
    }
    for case in lanes:
        parts = nest_parts(Planned.of(case).axes)
        own = [price * parts.get(name, 0) for name, price in known.parts.items() if name in OF_LANES]
        assert found.packets(parts) - known.packets(parts) == pytest.approx(sum(own), rel=0.2)
