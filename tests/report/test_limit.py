"""Where slots go: shares that are all of them, and help that fits the plan."""

from dataclasses import replace

import pytest

from hexconv.lower import lower_case
from hexconv.report.page.case_view import hot_views
from hexconv.report.page.limit import limit_words, reached, shares
from hexconv.report.plots import roofline_plot, timeline_plot
from hexconv.run.copy_engine import Copies
from hexconv.run.profile import Profile, profile
from hexconv.spec import Case, Plan

pytestmark = pytest.mark.simulator

CHAIN = """[chain]
input = [1, 20, 12, 8]
dtype = "uint8"
[[chain.conv]]
out_channels = 40
kernel = [3, 3]
requantize = { multiplier = 1518500250, shift = -11 }
[[chain.conv]]
out_channels = 32
kernel = [3, 3]
requantize = { multiplier = 1518500250, shift = -11 }
[plan]
kernel = "hvx"
k_split = 2
"""


@pytest.fixture(scope="module")
def ran() -> tuple[Case, Profile]:
    case = Case.parse(CHAIN, "small")
    return case, profile(case, lower_case(case), Copies("early", 0))


def test_shares_are_all_slots_the_largest_first(ran: tuple[Case, Profile]) -> None:
    found = shares(*ran)
    assert sum(share.part for share in found) == pytest.approx(1, abs=0.02)  # marks take slots too
    assert [share.part for share in found] == sorted((share.part for share in found), reverse=True)


def test_help_is_what_the_plan_lacks(ran: tuple[Case, Profile]) -> None:
    case, found = ran
    assert any('buffering = "double"' in share.help for share in shares(case, found))
    assert 'halo = "roll"' in limit_words(case, found)
    assert "40 channels are no multiple of 32" in limit_words(case, found)
    other = replace(case, plan=replace(case.plan, buffering="double", order="h_outer", halo="roll"))
    assert not any("buffering" in share.help for share in shares(other, found))
    assert "halo" not in limit_words(other, found)


def test_plots_say_what_was_run(ran: tuple[Case, Profile]) -> None:
    case, found = ran
    own = reached(case, found)
    line, roof = timeline_plot(found), roofline_plot(own, [])
    assert f"{found.slots.issue_slots:,} issue slots" in line.words
    assert "The kernel copies by itself" in line.words
    assert line.svg().startswith("<svg")
    assert f"{own.macs_per_slot:.4g} of 256 MACs per slot" in roof.words
    assert own.bytes_per_slot * found.slots.issue_slots == pytest.approx(own.moved_bytes)


def test_the_hottest_packets_are_shown_with_their_stalls(ran: tuple[Case, Profile]) -> None:
    _, found = ran
    first = hot_views(found)[0]
    assert len(first.packets) == len(found.slots.hottest[0].packets)
    assert sum(bool(packet.stall) for packet in first.packets) == sum(map(bool, found.slots.hottest[0].stalls))


def test_a_plain_plan_is_not_held_against_vectors(ran: tuple[Case, Profile]) -> None:
    case, found = ran
    plain = replace(case, plan=Plan(kernel="plain"))
    assert any(share.what == "compute convs without vector instructions" for share in shares(plain, found))
