"""What the fast kernels move and multiply: predicted = counted in their lowered loops, and a few figures by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
import tvm_ffi
from hypothesis import given
from tvm import tirx

import hexconv
from hexconv.analyze import needed_work, planned_work, work_usage
from hexconv.lower import lower_case
from hexconv.lower.counting import counting_module
from hexconv.run.host import count
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernel_choice import unstated
from tests.deep import one_in
from tests.draws import LOWERED
from tests.schedule.integer_chains import hvx_cases

SCHEDULES = Path(__file__).parents[2] / "schedules"
NAMED = sorted((SCHEDULES / "hvx").glob("*.toml"))
SHIFT = Requantize(multiplier=1 << 20, shift=-4)
POINTWISE = Conv2d(out_channels=128, requantize=SHIFT)
THREE = Conv2d(out_channels=128, kernel=(3, 3), requantize=SHIFT)


def check(case: Case) -> None:
    """Every figure of every tensor and conv, twice; and nothing that is needed is not moved.

    A cache outside VTCM moves too, though nothing needs it.
    """
    work, needed = work_usage(case, count(lower_case(case))), needed_work(case.chain)
    assert {t.name: t.bytes for t in work.traffic} == {t.name: t.predicted_bytes for t in work.traffic}
    assert {c.name: c.macs for c in work.convs} == {c.name: c.predicted_macs for c in work.convs}
    assert work.agrees
    moved = {tensor.name: tensor.bytes for tensor in work.traffic}
    assert all(moved[name] >= least for name, least in needed.traffic_bytes.items())


@pytest.mark.parametrize("path", one_in(6, NAMED), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_closed_form_and_count_agree_on_every_named_case(path: Path) -> None:
    case = Case.load(path)
    assert kernel_of(case.chain, case.plan) == path.parent.name
    check(case)


@pytest.mark.parametrize("name", ["hvx/32-channels", "hvx/a-filter-zero", "baseline-1x1"])
def test_the_public_closed_forms_are_those_of_the_kernel_that_a_case_gets(name: str) -> None:
    case = Case.load(SCHEDULES / f"{name}.toml")
    lowered = lower_case(case)
    caches = hexconv.cache_footprints(case.chain, case.plan)
    assert {cache.name: cache.bytes for cache in caches} == {cache.name: cache.bytes for cache in lowered.caches}
    allocations = hexconv.shared_allocations(case.chain, case.plan)
    assert {one.holds: one.bytes for one in allocations} == {one.holds: one.bytes for one in lowered.allocations}


@LOWERED
@given(hvx_cases())
def test_closed_form_and_count_agree_on_any_integer_chain(case: Case) -> None:
    check(case)


def work_of(*convs: Conv2d, h_split: int = 1, zero_point: int = 0, channels: int = 128) -> tuple[int, int]:
    """Bytes of the input and MACs of the first conv, counted; 64x64, uint8, by the plan of no plan."""
    chain = Chain(input=(1, 64, 64, channels), dtype="uint8", zero_point=zero_point, conv=convs)
    plan = replace(unstated(chain, "hvx"), h_split=h_split)
    counts = count(lower_case(Case("counted", chain, plan)))
    assert counts.traffic_bytes == planned_work(chain, plan).traffic_bytes
    return counts.traffic_bytes["input"], counts.macs["conv1"]


def test_an_image_is_loaded_once_whatever_the_stripes() -> None:
    padded = replace(THREE, padding=Padding(top=1, left=1, bottom=1, right=1))
    for h_split in (1, 3, 8):
        assert work_of(padded, THREE, h_split=h_split) == (64**2 * 128, 64**2 * 9 * 128 * 128)


def test_tiles_that_overlap_start_one_tile_of_eight_channels_in_vain_per_row() -> None:
    vain = 64 * 4 * 8  # rows by pixels by channels
    expected = (64 * 64 * 128, (64 * 64 * 128 + vain) * 128)
    for h_split in (1, 8):
        assert work_of(POINTWISE, POINTWISE, h_split=h_split) == expected


def test_tiles_of_first_words_alone_or_of_long_sums_do_not_overlap() -> None:
    for channels, out_channels in ((8, 128), (520, 128)):
        conv = replace(POINTWISE, out_channels=out_channels)
        pixels = 64 * 64 * channels
        assert work_of(conv, channels=channels) == (pixels, pixels * out_channels)
    for channels in (16, 512):  # the least and the most words that do
        assert work_of(POINTWISE, channels=channels)[1] == (64 * 64 * channels + 64 * 4 * 8) * 128
    # two blocks of output channels have tiles of 8 pixels
    assert work_of(replace(POINTWISE, out_channels=64))[1] == (64 * 64 * 128 + 64 * 8 * 8) * 64


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_conv_of_which_threads_make_no_row_sums_its_filter_all_the_same(threads: int) -> None:
    first = Conv2d(out_channels=8, requantize=replace(SHIFT, zero_point=188))
    unread = Conv2d(out_channels=5, kernel=(2, 1), stride=(2, 2), requantize=SHIFT)
    last = Conv2d(out_channels=1, stride=(2, 1), padding=Padding(top=1, bottom=1), requantize=SHIFT)
    chain = Chain(input=(1, 3, 8, 8), dtype="uint8", conv=(first, unread, last))
    check(Case("unread", chain, Plan(kernel="hvx", threads=threads)))


def test_zero_points_sum_what_they_are_about() -> None:
    plain_bytes, plain_macs = work_of(THREE)
    # of the filter: 64 columns of 128 channels, three rows of taps for each of 62 rows
    sums = 62 * 3 * 64 * 128
    assert work_of(replace(THREE, filter_zero_point=3)) == (plain_bytes, plain_macs + sums)
    # of the input: every channel's filter, which is summed before the run
    assert work_of(THREE, zero_point=5) == (plain_bytes, plain_macs)


def test_channels_that_fill_up_blocks_and_words_are_multiplied_too() -> None:
    bytes_moved, macs = work_of(replace(POINTWISE, out_channels=33, requantize=None), channels=3)
    assert bytes_moved == 64 * 64 * 3
    assert macs == 64 * 64 * 8 * 64


def test_output_channels_fill_nothing_up_where_pixels_are_lanes() -> None:
    bytes_moved, macs = work_of(replace(POINTWISE, out_channels=33), channels=3)
    assert bytes_moved == 64 * 64 * 3
    assert macs == 64 * 64 * 4 * 33


def test_int16_takes_a_pass_for_each_pair_of_bytes() -> None:
    chain = Chain(input=(1, 20, 20, 64), dtype="uint8", conv=(THREE,))
    [narrow] = planned_work(chain, unstated(chain, "hvx")).macs.values()
    limited = replace(THREE, filter_l1=60000)
    forms: tuple[tuple[Dtype, int, int], ...] = (("int8", 2, 2), ("int16", 4, 2))
    for filters, passes, windows in forms:
        wide = Chain(input=(1, 20, 20, 64), dtype="int16", filter_dtype=filters, conv=(limited,))
        [macs] = planned_work(wide, unstated(wide, "hvx")).macs.values()
        assert macs == passes * narrow + windows * 18 * 3 * 20 * 64


def test_bands_are_counted_one_after_the_other() -> None:
    lowered = lower_case(Case.load(SCHEDULES / "hvx" / "b-4-threads.toml"))
    for module, parallel in ((lowered.unmerged, True), (counting_module(lowered), False)):
        kinds: list[int] = []
        tvm_ffi.structural_walk(module["main"].body, (tirx.For, lambda loop, kinds=kinds: kinds.append(loop.kind)))
        assert (tirx.ForKind.PARALLEL in kinds) is parallel


def test_a_second_image_doubles_all_but_the_filters() -> None:
    chain = Chain(input=(1, 20, 20, 64), dtype="uint8", zero_point=3, conv=(POINTWISE, THREE))
    plan = unstated(chain, "hvx")
    one, two = (planned_work(replace(chain, input=(n, 20, 20, 64)), plan) for n in (1, 2))
    for name, moved in one.traffic_bytes.items():
        assert two.traffic_bytes[name] == moved * (1 if name.startswith("filter") else 2)
    assert two.macs["conv1"] == 2 * one.macs["conv1"]
