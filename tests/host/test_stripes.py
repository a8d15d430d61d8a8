"""Rows that the caches of a kernel hold whose stripes roll."""

import pytest

from hexconv.host.stripes import Band, stripes_of
from hexconv.spec import Chain, Conv2d

CONV = Conv2d(out_channels=128, kernel=(3, 3))
CHAIN = Chain(input=(1, 64, 64, 128), conv=(CONV, CONV))


@pytest.mark.parametrize(("ahead", "behind"), [(0, 0), (2, 0), (0, 3), (2, 3)])
def test_rows_ahead_and_behind_are_in_the_first_stripe(ahead: int, behind: int) -> None:
    band = Band(24, 47, ahead, behind)
    tensors = [*zip(*stripes_of(CHAIN, 8, band), strict=True)]
    most = [12 + ahead + behind, 10 + ahead + behind]
    assert [max(rows.held for rows in tensor) for tensor in tensors[:-1]] == most
    assert [max(rows.new for rows in tensor) for tensor in tensors] == [*most, 8]


def test_rows_behind_are_not_new_in_the_next_stripe_and_last_for_more_than_one() -> None:
    stripes = stripes_of(CHAIN, 8, Band(24, 47, behind=11))
    assert [stripe[1].new for stripe in stripes] == [21, 0, 4]
