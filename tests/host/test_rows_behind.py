"""Rows that a band's first stripe makes behind those that it reads: later stripes don't hold them as new ones."""

from hexconv.host.loops.rows import Rows
from hexconv.host.loops.stage import stages_of
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.sweep.verdict import judge


def test_caches_of_a_band_are_as_large_as_its_stripes_need_them() -> None:
    """Most rows are padding, so that the second stripe reads fewer than one without rows behind would."""
    convs = (
        Conv2d(out_channels=32, stride=(2, 1), padding=Padding(top=2, left=1, bottom=8, right=0)),
        Conv2d(out_channels=11, padding=Padding(top=3, left=0, bottom=2, right=0)),
        Conv2d(out_channels=10, kernel=(2, 2), stride=(2, 1), padding=Padding(top=0, left=0, bottom=8, right=0)),
        Conv2d(out_channels=9, kernel=(3, 2), padding=Padding(top=9, left=0, bottom=7, right=1)),
    )
    chain = Chain(input=(4, 1, 8, 23), conv=convs)
    verdict = judge(Case("behind", chain, Plan(kernel="host", threads=2)))
    assert verdict.outcome == "agrees", verdict.reasons


def test_rows_behind_are_made_once() -> None:
    conv = Conv2d(out_channels=8, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))
    stages = stages_of(Chain(input=(1, 40, 9, 8), conv=(conv, conv)))
    rows = [Rows(stages, 8, 0, 32, behind) for behind in (0, 2)]
    assert [each.end(1, 0) for each in rows] == [9, 11]
    assert [each.begin(1, 1) for each in rows] == [9, 11]
