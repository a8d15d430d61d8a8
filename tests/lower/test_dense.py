"""Convs that multiply windows of dense rows, behind an input of few channels: right, and as closed forms have them."""

from dataclasses import replace

import pytest

from hexconv.analyze import cache_usage, work_usage
from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel.dense import DenseForm, window_pixels
from hexconv.kernel.pixels import PixelForm
from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.random_chains import Seeded
from tests.deep import one_in

FIXED = Requantize(multiplier=0x5A7B3C1D, shift=-7, zero_point=3)
EVEN = Requantize(multiplier="per_channel", shift="per_channel", zero_point=9, rounding="even")
UNEVEN = Padding(top=1, left=2, bottom=0, right=1)
FIRST = Conv2d(out_channels=64, kernel=(3, 3), padding=UNEVEN, requantize=FIXED, bias=True)
PLAN = Plan(kernel="hvx", halo="roll", order="h_outer", k_split=2)


def chain(columns: int, channels: int, *convs: Conv2d, dtype: Dtype = "uint8", filters: Dtype = "int8") -> Chain:
    return Chain(input=(1, 9, columns, channels), dtype=dtype, filter_dtype=filters, zero_point=5, conv=convs)


CASES = {
    "7 taps of 3 channels, every second window": (
        chain(61, 3, replace(FIRST, kernel=(7, 7), stride=(2, 2), padding=Padding(top=3, left=3, bottom=3, right=3))),
        PLAN,
    ),
    "windows at odd bytes, 8 copies in tiles of 4 pixels": (
        chain(53, 3, replace(FIRST, out_channels=128, requantize=EVEN), replace(FIRST, out_channels=40)),
        replace(PLAN, k_split=4, storage="vtcm", buffering="double"),
    ),
    "int8, one block of channels, dilated rows": (
        chain(77, 2, replace(FIRST, out_channels=32, dilation=(2, 1), kernel=(2, 5)), dtype="int8"),
        replace(PLAN, k_split=1, storage="filters", filters="resident"),
    ),
    "1 channel, a filter without a zero point": (
        chain(139, 1, replace(FIRST, out_channels=61, kernel=(5, 5), requantize=EVEN), filters="uint8"),
        replace(PLAN, k_split=1, storage="input"),
    ),
    "int8, two tiles of channels, splats": (
        chain(70, 3, replace(FIRST, out_channels=95, stride=(1, 2), requantize=EVEN), dtype="int8"),
        replace(PLAN, k_split=2, activations="splats", storage="filters+output", threads=2),
    ),
    "strips of columns": (
        chain(192, 3, replace(FIRST, padding=Padding(top=1, left=1, bottom=1, right=1), requantize=EVEN), dtype="int8"),
        Plan(kernel="hvx", k_split=2, w_split=8, buffering="double", storage="vtcm"),
    ),
    "halos that are computed again": (
        chain(130, 1, replace(FIRST, kernel=(1, 3)), replace(FIRST, stride=(2, 1))),
        replace(PLAN, halo="recompute"),
    ),
}


def dense(case: Case) -> DenseForm | None:
    form = planned_rows(case.chain, case.settled).convs[0].form
    return form if isinstance(form, DenseForm) else None


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(3, CASES))
def test_results_sizes_and_work_are_what_they_should_be(name: str) -> None:
    case = Case("dense", *CASES[name])
    assert dense(case)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    work = work_usage(case, count(lowered))
    assert work.agrees, work
    assert run_case(case, lowered, Simulator(slots=False)).check.passed


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_every_window_begins_at_a_doubleword_of_its_copy_and_is_copied_whole(channels: int, stride: int) -> None:
    conv = replace(FIRST, kernel=(3, 5), stride=(1, stride))
    case = Case("dense", chain(150, channels, conv), PLAN)
    found = dense(case)
    assert found
    for window in range(found.conv.columns):
        turn, copy = divmod(window, found.copies)
        byte = turn * found.copies * found.apart
        assert byte % 8 == 0
        assert found.left(copy) + byte == (found.planes.left + window) * stride * channels
        assert byte + 5 * channels <= min(found.copied(copy) * 128, found.copy_bytes)
    assert all(pixels % found.copies == 0 or found.copies % pixels == 0 for pixels in map(window_pixels, range(1, 5)))


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_copies_of_rows_are_loops_in_steps_of_one_row_too_not_calls_of_memcpy(channels: int, seed: int) -> None:
    draw = Seeded(seed, channels)
    conv = Conv2d(out_channels=draw.one_of(24, 32, 64), kernel=(1, draw.number(1, 3)), requantize=FIXED)
    plan = replace(PLAN, rows=1, k_split=1, storage=draw.one_of("global", "vtcm"))
    case = Case("one row", chain(draw.number(256, 330) // channels, channels, conv), plan)
    assert dense(case)
    assert "memcpy" not in compile_for_hexagon(lower_case(case).module, "v67").text


@pytest.mark.parametrize(
    "changed",
    [{"dilation": (1, 2)}, {"kernel": (9, 15), "padding": Padding(top=4, left=7, bottom=4, right=7)}],
    ids=["taps apart", "windows whose sums no halfword holds"],
)
def test_what_dense_rows_do_not_serve_has_pixels_as_lanes(changed: dict) -> None:
    case = Case("other", chain(150, 3, replace(FIRST, **changed)), PLAN)
    assert dense(case) is None
    assert isinstance(planned_rows(case.chain, case.settled).convs[0].form, PixelForm)


@pytest.mark.simulator
def test_a_dense_first_layer_takes_six_words_for_seven_taps_of_three_channels() -> None:
    case = Case("first", *CASES["7 taps of 3 channels, every second window"])
    found = dense(case)
    assert found
    assert found.planes.steps == 7 * 6
    run = run_case(case, lower_case(case), Simulator(slots=False))
    needed = 5 * 31 * 64 * 7 * 7 * 3
    assert run.counts
    assert needed / run.counts.packets > 110  # rows are short here
