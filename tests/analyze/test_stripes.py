"""The stripe on its way: stripes cover the output once, and what is rolled is read once."""

from itertools import pairwise

from hypothesis import given, settings

from hexconv.analyze.stripes import stripes
from hexconv.spec import Case, tensor_extents
from tests.strategies import cases


@settings(max_examples=60, deadline=None)
@given(cases())
def test_stripes_of_the_output_follow_each_other_and_end_with_it(case: Case) -> None:
    found = stripes(case.chain, case.settled)
    rows = [extents.rows for extents in tensor_extents(case.chain)]
    output = [stripe[-1] for stripe in found]
    assert output[0].start == 0
    assert output[-1].end == rows[-1]
    assert all(one.end == other.start for one, other in pairwise(output))
    for stripe in found:
        for held, last in zip(stripe, rows, strict=True):
            assert 0 <= held.start <= held.made <= held.end <= last


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_ring_makes_no_row_twice(case: Case) -> None:
    if case.settled.halo != "roll":
        return
    for tensor in zip(*stripes(case.chain, case.settled), strict=True):
        ends = [held.end for held in tensor]
        assert all(held.made >= end or held.made == held.end for held, end in zip(tensor[1:], ends, strict=False))
