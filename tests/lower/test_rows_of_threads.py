"""Threads read few rows out of blocks, far inside of padding: each copies its own rows, and fills the others."""

from dataclasses import replace

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from hexconv.analyze import work_usage
from hexconv.analyze.usage import miscounts
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError, Unsupported
from hexconv.lower import lower_case
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import Halo
from tests.draws import SAME_LOWERED, SAME_RUN

HALVE = Requantize(multiplier=1 << 24)


@st.composite
def deep_in_padding(draw: st.DrawFn) -> Case:
    """Chains over 1 to 11 rows with up to 24 rows of padding above, which two threads read by stripes."""

    def conv() -> Conv2d:
        padding = Padding(top=draw(st.integers(0, 24)), bottom=draw(st.sampled_from([0, 0, 9])))
        kernel, stride = (draw(st.integers(2, 4)), 1), (draw(st.integers(1, 3)), 1)
        return Conv2d(out_channels=3, kernel=kernel, stride=stride, padding=padding, requantize=HALVE)

    convs = tuple(conv() for _ in range(draw(st.integers(1, 2))))
    image = (1, draw(st.sampled_from([1, 2, 3, 8, 11])), 3, 5)
    try:
        chain = Chain(input=image, dtype="uint8", input_layout="NHWC8h8w32c", output_layout="NHWC", conv=convs)
        check_supported(chain)
    except (InputError, Unsupported):  # a kernel higher than its padded input, or one that reads padding alone
        reject()
    halo: Halo = draw(st.sampled_from(["recompute", "roll", "roll"]))
    rows = min(draw(st.integers(1, 2)), chain.shapes[-1][1])
    return Case("deep", chain, Plan(kernel="hvx", order="h_outer", halo=halo, rows=rows, threads=2))


@SAME_LOWERED
@given(deep_in_padding())
def test_chains_deep_in_padding_lower_for_threads(case: Case) -> None:
    """Or they are refused where stripes are made anew: of one block, a load tells no row in padding."""
    try:
        lower_case(case)
    except Unsupported:
        assert case.plan.halo == "recompute"


@pytest.mark.simulator
@SAME_RUN
@given(deep_in_padding())
def test_chains_deep_in_padding_are_right(case: Case) -> None:
    assert run_case(rolled(case), lower_case(rolled(case)), Simulator(slots=False)).check.passed


def rolled(case: Case) -> Case:
    """The same with stripes that roll."""
    return replace(case, plan=replace(case.plan, halo="roll"))


def test_threads_read_their_rows_of_blocks_and_no_more() -> None:
    """Rows in blocks of 8 are written as quotients and rests, of which the guards of a band see one row."""
    pad = Padding(top=1, left=1, bottom=1, right=1)
    conv = Conv2d(out_channels=16, kernel=(3, 3), padding=pad, requantize=Requantize(multiplier=1 << 30, shift=-8))
    chain = Chain(input=(1, 21, 9, 32), dtype="uint8", input_layout="NHWC8h8w32c", conv=(conv, conv))
    case = Case("blocks", chain, Plan(kernel="hvx", order="h_outer", halo="recompute", threads=2))
    assert list(miscounts(work_usage(case, count(lower_case(case))))) == []
