"""The stripe on its way: stripes cover the output once, and what is rolled is read once."""

from hypothesis import given

from hexconv.report.page.case_view import stripes
from hexconv.spec import Case
from tests.strategies import cases


@given(cases(kernels=("plain", "hvx")))
def test_stripes_make_every_row_of_the_output_once_and_hold_rows_of_the_tensors_alone(case: Case) -> None:
    found = stripes(case.chain, case.settled)
    rows = [shape[1] for shape in case.chain.shapes]
    made = [row for stripe in found for row in range(stripe[-1].made, stripe[-1].end)]
    assert made == list(range(rows[-1]))
    for stripe in found:
        for held, last in zip(stripe, rows, strict=True):
            assert 0 <= held.start <= held.made <= held.end <= last


@given(cases(kernels=("plain", "hvx")))
def test_a_ring_makes_no_row_twice(case: Case) -> None:
    if case.settled.halo != "roll" or case.settled.threads > 1:
        return
    for tensor in zip(*stripes(case.chain, case.settled), strict=True):
        ends = [held.end for held in tensor]
        assert all(held.made >= end or held.made == held.end for held, end in zip(tensor[1:], ends, strict=False))
