"""The table of calls through C: right results, and packets beside those of a run."""

from pathlib import Path

import pytest

from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from reports.called import MOST_PERCENT, Row, main
from tests.deep import DEEP

BY = Requantize(multiplier=1 << 30, shift=-9)
CONV = Conv2d(out_channels=40, kernel=(3, 3), padding=1, requantize=BY)  # pyright: ignore[reportArgumentType]
CHAIN = Chain(input=(1, 37, 33, 64), dtype="uint8", zero_point=3, conv=(CONV, CONV))
PLAN = Plan(kernel="hvx", order="h_outer", halo="roll", buffering="double", threads=2)


@DEEP
@pytest.mark.simulator
def test_a_row_has_both_counts_and_the_threads(tmp_path: Path) -> None:
    case, table = Case("called", CHAIN, PLAN), tmp_path / "called.csv"
    (tmp_path / "called.toml").write_text(case.to_toml())
    assert main([str(tmp_path / "called.toml"), "--csv", str(table)]) == 0
    names, values = (line.split(",") for line in table.read_text().splitlines())
    said = dict(zip(names, values, strict=True))
    assert (said["case"], said["threads"], said["is_right"]) == ("called", "2", "True")
    assert int(said["copies"]) > 0
    assert float(said["more_percent"]) <= MOST_PERCENT
    assert abs(int(said["call_packets"]) / int(said["run_packets"]) - 1 - float(said["more_percent"]) / 100) < 1e-4


@pytest.mark.parametrize(
    ("more_percent", "is_right", "holds"),
    [(1.0, True, True), (1.001, True, False), (-13.5, True, True), (0.0, False, False)],
)
def test_a_call_holds_if_it_is_right_and_takes_at_most_a_hundredth_more(
    more_percent: float, is_right: bool, holds: bool
) -> None:
    assert Row("called", 1, 3, 100_000, 0, more_percent, is_right).holds == holds
