"""The bench measures what it says: peers in turns, at their best, exact; what it can't measure is refused by name."""

from pathlib import Path

import numpy as np
import pytest

from hexconv.analyze import needed_macs
from hexconv.errors import Unsupported
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.listing import SUFFIX, digest_of
from hexconv.spec import Case, Chain, Conv2d
from reports import hvx
from reports.halide import pipelines
from reports.halide.two_convs import packed
from tests.deep import one_in

SCHEDULES = Path(__file__).parents[2] / "schedules"
CASES = sorted((SCHEDULES / "hvx").glob("*.toml"))


def test_halide_below_what_it_is_known_to_reach_is_no_fair_measurement() -> None:
    rows = [
        {"case": "good", "halide_published": 200.0, "halide_macs_per_packet": 196.0},
        {"case": "bad", "halide_published": 200.0, "halide_macs_per_packet": 195.9},
        {"case": "ours alone"},
    ]
    assert [complaint.split(":")[0] for complaint in hvx.unfair(rows)] == ["bad"]


def test_every_case_with_a_published_figure_has_a_schedule_and_schedules_serve_their_cases() -> None:
    assert set(hvx.PUBLISHED) <= set(pipelines.SCHEDULES)
    for name, schedule in pipelines.SCHEDULES.items():
        pipelines.check(Case.load(SCHEDULES / "hvx" / f"{name}.toml").chain, schedule)


def test_what_the_peers_have_no_words_for_is_refused() -> None:
    chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=4, bias=True),))
    for schedule, said in (("a-shift", "whole blocks"), ("depthwise", "depthwise"), ("first-layer", "7x7")):
        with pytest.raises(Unsupported, match=said):
            pipelines.check(chain, pipelines.SCHEDULES[schedule])


def test_a_filter_is_packed_four_channels_to_a_word() -> None:
    filter = np.random.default_rng(0).integers(0, 256, (64, 8, 3, 1), np.uint8)
    for o, i, row in ((0, 0, 0), (37, 6, 2)):
        assert packed(filter)[row, 0, o // 32, i // 4, o % 32, i % 4] == filter[o, i, row, 0]
    np.testing.assert_array_equal(packed(filter.view(np.int8)) ^ np.uint8(128), packed(filter))


@pytest.mark.simulator
def test_halide_is_exact_and_at_its_best() -> None:
    pytest.importorskip("halide", reason="make bench installs it")
    slots = pipelines.measured(Case.load(SCHEDULES / "hvx" / "a-shift.toml").chain, pipelines.SCHEDULES["a-shift"])
    assert 134_217_728 / slots.packets >= hvx.FAIR * hvx.PUBLISHED["a-shift"]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "least"),
    [("depthwise", 37), ("depthwise-stride-2", 18), pytest.param("first-layer", 174, marks=pytest.mark.deep)],
)
def test_halide_is_exact_for_single_convs(name: str, least: float) -> None:
    pytest.importorskip("halide", reason="make bench installs it")
    chain = Case.load(SCHEDULES / "hvx" / f"{name}.toml").chain
    slots = pipelines.measured(chain, pipelines.SCHEDULES[name], seed=1, builds=1)
    assert needed_macs(chain) / slots.packets >= least


@pytest.mark.simulator
def test_figures_of_a_kernel_that_differs_from_build_to_build_stay() -> None:
    """The ratio is that of our kernel as it is now."""
    known = dict.fromkeys(hvx.PEER, 1.0) | {"halide_issue_slots": 10.0}
    row = hvx.row(SCHEDULES / "hvx" / "depthwise-stride-2.toml", {"depthwise-stride-2": known})
    assert {name: row[name] for name in hvx.PEER} == known
    assert row["ratio"] == round(10 / row["issue_slots"], 3)


@pytest.mark.parametrize("path", one_in(2, CASES), ids=lambda path: path.stem)
def test_the_committed_listings_are_what_is_built(path: Path) -> None:
    case = Case.load(path)
    built = annotated_tir(case, lower_case(case), "as the closed form predicts")
    whole, short = path.with_suffix(".tir"), path.with_suffix(f".tir{SUFFIX}")
    assert whole.exists() != short.exists(), "a case has a whole listing or a digest"
    if whole.exists():
        assert whole.read_text() == built
    else:
        assert short.read_text() == digest_of(whole.name, built), "make tir writes it again"
