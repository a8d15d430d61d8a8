"""Whether a plan fits VTCM, and what would make it fit: every figure checked another way."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.analyze import Fit, vtcm_fit
from hexconv.cli.app import exit_code
from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.capacities import CAPACITIES_BYTES, granules_bytes

CASE = """
[chain]
input = [1, 64, 16, 32]
[[chain.conv]]
out_channels = 64
kernel = 3
[[chain.conv]]
out_channels = 64
[plan]
k_split = 2
h_split = 4
storage = "vtcm"
arch = "v66"
"""


def fit_of(text: str) -> tuple[Case, Fit]:
    case = Case.parse(text, "case")
    return case, vtcm_fit(case.chain, case.plan)


def test_the_demand_is_what_the_compiled_code_asks_for() -> None:
    case, fit = fit_of(CASE)
    kernel = compile_for_hexagon(lower_case(case).module, "v67")
    assert fit.demand_bytes == sum(map(granules_bytes, kernel.vtcm_bytes))
    assert sorted(term.bytes for term in fit.terms) == sorted(kernel.vtcm_bytes)


def test_demand_capacity_and_gap_add_up() -> None:
    _, fit = fit_of(CASE)
    assert not fit.fits
    assert fit.capacity_bytes == 256 * 1024
    assert fit.demand_bytes == sum(term.vtcm_bytes for term in fit.terms)
    assert fit.gap_bytes == fit.demand_bytes - fit.capacity_bytes


def test_every_lever_brings_it_under_and_one_step_less_does_not() -> None:
    case, fit = fit_of(CASE)
    splits = [lever for lever in fit.levers if "arch" not in lever.knobs]
    assert [lever.knobs for lever in splits] == [{"k_split": 1}, {"h_split": 3}]
    for lever in splits:
        changed = vtcm_fit(case.chain, replace(case.plan, **lever.knobs))
        assert changed.fits
        assert changed.demand_bytes == lever.demand_bytes
        less = {knob: value + 1 for knob, value in lever.knobs.items() if isinstance(value, int)}
        assert not vtcm_fit(case.chain, replace(case.plan, **less)).fits


def test_knobs_that_are_words_are_levers_too() -> None:
    """Whole filters and second slots are given up where that alone is enough; the splits stay on offer."""
    knobs = 'k_split = 2\norder = "h_outer"\nfilters = "resident"\nbuffering = "double"'
    case, fit = fit_of(CASE.replace("k_split = 2", knobs).replace("h_split = 4", "h_split = 2"))
    assert not fit.fits
    levers = [lever for lever in fit.levers if "arch" not in lever.knobs]
    assert {"buffering": "single"} in [lever.knobs for lever in levers]
    for lever in levers:
        changed = vtcm_fit(case.chain, replace(case.plan, **lever.knobs))
        assert changed.fits
        assert changed.demand_bytes == lever.demand_bytes


def test_both_splits_are_offered_where_neither_does_alone() -> None:
    case, fit = fit_of(CASE.replace("64, 16, 32", "64, 48, 32"))
    (both,) = [lever for lever in fit.levers if "arch" not in lever.knobs]
    assert set(both.knobs) == {"k_split", "h_split"}
    assert str(both) == "k_split = 1 with h_split = 1"
    assert vtcm_fit(case.chain, replace(case.plan, **both.knobs)).fits


def test_the_architecture_that_is_offered_is_the_smallest_that_has_room() -> None:
    case, fit = fit_of(CASE)
    (lever,) = [lever for lever in fit.levers if "arch" in lever.knobs]
    assert vtcm_fit(case.chain, replace(case.plan, **lever.knobs)).fits
    assert not any(fit.demand_bytes <= size < lever.capacity_bytes for size in CAPACITIES_BYTES.values())


@pytest.mark.parametrize(
    "knobs",
    [
        'arch = "v66"',
        'arch = "v73"\nvtcm_bytes = 40000',
        'arch = "v68"\nvtcm_bytes = 40000\nkernel = "hvx"\nthreads = 4',
    ],
)
def test_every_lever_can_be_taken_and_makes_the_plan_fit(knobs: str) -> None:
    """A plan that states its bytes of VTCM keeps them on any architecture."""
    text = CASE.replace('arch = "v66"', knobs)
    if "hvx" in knobs:
        scale = "requantize = { multiplier = 1073741824, shift = -8 }"
        text = text.replace("kernel = 3", f"kernel = 3\n{scale}").replace("32]", '32]\ndtype = "uint8"')
    case, fit = fit_of(text)
    assert not fit.fits
    assert fit.levers
    for lever in fit.levers:
        assert vtcm_fit(case.chain, replace(case.plan, **lever.knobs)).fits


def test_a_plan_that_fits_has_no_levers() -> None:
    _, fit = fit_of(CASE.replace("v66", "v75"))
    assert fit.fits
    assert fit.levers == ()


@pytest.mark.parametrize("target", ["llvm", "hexagon"])
def test_run_refuses_before_it_builds(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # neither compiler nor simulator is there to be asked
    path = tmp_path / "large.toml"
    path.write_text(CASE)
    assert exit_code(["run", str(path), "--target", target]) == 1
    said = capsys.readouterr().err
    assert "large: " in said
    assert "of v66's 262144 bytes of VTCM" in said
    assert "brings it under" in said


def test_a_wide_image_fits_in_narrower_strips_and_a_high_stripe_in_fewer_rows() -> None:
    conv = Conv2d(out_channels=32, kernel=(3, 3), requantize=Requantize(multiplier=1 << 24, shift=-8))
    chain = Chain(input=(1, 16, 30000, 32), dtype="uint8", output_layout="NHWC", conv=(conv,))
    plan = Plan(kernel="hvx", storage="vtcm")
    levers = {knob: lever for lever in vtcm_fit(chain, plan).levers for knob in lever.knobs}
    assert {"rows", "w_split"} <= levers.keys()
    for lever in levers.values():
        changed = vtcm_fit(chain, replace(plan, **lever.knobs))
        assert changed.fits
        assert changed.demand_bytes == lever.demand_bytes
