"""The kinds of drawn cases: each stream draws what its prices are for, and none of the table's chains."""

from itertools import islice

from hexconv.analyze import Planned
from hexconv.kernel.depthwise import goes_down
from reports.rate_cases import depthwise_cases, few_channel_cases, scalar_cases


def test_tiles_of_depthwise_convs_go_down_by_turns() -> None:
    found = [
        any(goes_down(case.chain, case.settled, index) for index in range(len(case.chain.conv)))
        for case in islice(depthwise_cases(0), 6)
    ]
    assert found == [True, False] * 3


def test_most_chains_of_few_channels_have_lanes_of_pixels() -> None:
    planned = [Planned.of(case).rows for case in islice(few_channel_cases(0), 8)]
    assert sum(any(conv.form.has_pixels for conv in each.convs) for each in planned) >= 6


def test_scalar_code_and_hvx_serve_convs_of_one_chain() -> None:
    for case in islice(scalar_cases(0), 2):
        assert {choice.used for choice in case.kernels} == {"hvx", "plain"}
