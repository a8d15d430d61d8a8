"""The HVX kernels: exact on the simulator, as dense as they were written to be, with the caches that were predicted."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.analyze import cache_usage, needed_macs, vtcm_fit
from hexconv.cli.app import exit_code
from hexconv.lower import annotated_tir
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of, refusals
from tests.deep import DEEP, one_in
from tests.lowered import lower_case

CASES = Path(__file__).parents[2] / "schedules" / "hvx"


@DEEP
@pytest.mark.simulator
def test_every_kind_of_cache_lies_in_vtcm_and_takes_no_more_packets_there() -> None:
    case = Case.load(CASES / "vtcm.toml")
    roles = {cache.role for cache in cache_usage(case, lower_case(case)).caches}
    assert roles == {"input", "intermediate", "filter", "offset", "window", "output"}
    elsewhere = replace(case, plan=replace(case.plan, storage="global"))
    outside = run_case(elsewhere, lower_case(elsewhere), Simulator(slots=False)).counts
    assert outside
    assert in_vtcm(case) <= outside.packets * 1.01


def in_vtcm(case: Case) -> int:
    """Packets of a right run, all of whose caches were in VTCM: as many bytes of it as the closed form says."""
    lowered = lower_case(case)
    assert {cache.scope for cache in lowered.caches} == {"global.vtcm"}
    result = run_case(case, lowered, Simulator(arch=case.plan.arch, slots=False))
    assert result.check.passed
    assert result.vtcm_bytes == vtcm_fit(case.chain, case.plan).demand_bytes
    assert result.counts
    return result.counts.packets


def test_caches_that_do_not_fit_vtcm_are_told_with_what_they_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case.load(CASES / "b-shift.toml")
    path = tmp_path / "large.toml"
    path.write_text(replace(case, plan=replace(case.plan, storage="vtcm", arch="v65")).to_toml())
    assert exit_code(["run", str(path), "--target", "hexagon"]) == 1
    assert "653312 of v65's 262144 bytes of VTCM, 391168 too many" in capsys.readouterr().err


@pytest.mark.simulator
def test_rows_that_a_stride_steps_over_between_stripes_are_neither_kept_nor_computed() -> None:
    stepping = Conv2d(
        out_channels=32,
        stride=(2, 2),
        padding=Padding(top=1, left=1, bottom=1, right=1),
        filter_zero_point=7,
        requantize=Requantize(multiplier=1 << 24, shift=-5),
    )
    case = Case("stepping", Chain(input=(1, 60, 9, 32), dtype="uint8", conv=(stepping, stepping)), Plan(kernel="hvx"))
    assert run_case(case, lower_case(case), Simulator(slots=False)).check.passed


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "least"),
    one_in(
        3,
        [
            ("a-shift", 243),
            ("a-multiplier", 221),
            ("a-filter-zero", 232),
            ("a-int16", 114),
            ("a-int8-filters", 232),
            ("b-shift", 250),
        ],
    ),
)
def test_the_kernels_reach_their_figures_and_are_exact(name: str, least: float) -> None:
    case = Case.load(CASES / f"{name}.toml")
    result = run_case(case, lower_case(case), Simulator(slots=False))
    assert result.check.passed
    assert result.counts
    assert needed_macs(case.chain) / result.counts.packets >= least


@pytest.mark.parametrize(
    "chain",
    [
        Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=4),)),
        Chain(
            input=(1, 8, 8, 4),
            dtype="uint8",
            conv=(Conv2d(out_channels=4, requantize=Requantize(multiplier=1 << 30, shift=2)),),
        ),
    ],
    ids=["float32", "a left shift"],
)
def test_what_hvx_does_not_serve_gets_the_plain_kernel_and_the_listing_says_why(chain: Chain) -> None:
    case = Case("plain", chain, Plan(kernel="hvx"))
    assert kernel_of(chain, case.plan) == "plain"
    header = annotated_tir(case, lower_case(case), "")
    assert f"# kernel: plain, hvx asked: {refusals(chain, 'hvx')[0]}" in header
