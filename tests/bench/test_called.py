"""The table of calls through C: right results, and packets beside those of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.bench.called import MOST_PERCENT, main, row
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
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


@pytest.mark.simulator
def test_what_copies_often_and_computes_little_is_above_the_limit() -> None:
    little = replace(CHAIN, input=(1, 8, 1, 4), conv=(replace(CONV, out_channels=4),))
    found = row(Case("little", little, replace(PLAN, threads=1)))
    assert found.is_right
    assert found.more_percent > MOST_PERCENT
    assert not found.holds
