"""The measure of the search's speed: what it measures, and that it counts the plans of the search. No time is held."""

from pathlib import Path

from hexconv.search import Question, best_cuts
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from reports import planning
from reports.board import NETS

SMALL = Conv2d(out_channels=8, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30))
CHAIN = Chain(input=(1, 16, 40, 8), dtype="uint8", output_layout="NHWC", conv=(SMALL, SMALL))
QUESTION = Question(1 << 13, plan=Plan(kernel="hvx", storage="vtcm"), target="hexagon")


def test_a_net_a_chain_of_it_and_a_case_are_found_by_name(tmp_path: Path) -> None:
    case = tmp_path / "small.toml"
    case.write_text(Case("small", CHAIN, Plan(kernel="hvx")).to_toml(), encoding="utf-8")
    found = list(planning.chains(["fsrcnn", "mobilenetv2/stem", str(case)]))
    assert [name for name, _ in found] == ["fsrcnn/all", "mobilenetv2/stem", "small"]
    assert [chain for _, chain in found] == [NETS["fsrcnn"]["all"], NETS["mobilenetv2"]["stem"], CHAIN]
    assert len(list(planning.chains(["mobilenetv2"]))) == len(NETS["mobilenetv2"])


def test_every_chain_that_is_measured_by_default_is_known() -> None:
    assert len(list(planning.chains(planning.CHAINS))) >= len(planning.CHAINS)


def test_the_plans_that_are_counted_are_those_of_the_search() -> None:
    whole, best = planning.rate_of_space(CHAIN, QUESTION), planning.rate_of_best(CHAIN, QUESTION)
    cuts = best_cuts(CHAIN, QUESTION)
    assert best.evaluated + best.excluded == cuts.plans > whole.evaluated > 0
    assert whole.excluded == 0
    assert best.evaluated > whole.evaluated


def test_a_row_has_the_plans_of_a_second_with_and_without_those_that_are_excluded() -> None:
    row = planning.Rate("best", evaluated=300, excluded=100, seconds=2.0).row("any", "hvx").split()
    assert row == ["any", "hvx", "best", "300", "100", "2.000", "150", "200"]
