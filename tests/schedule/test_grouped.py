"""Convs in groups of several channels: no zeros between groups are stored or multiplied; exact, and as planned."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import conv_forms, planned_work
from hexconv.analyze.planned import Planned
from hexconv.kernel.channels import channel_form
from hexconv.kernel.form import without_groups
from hexconv.kernel.grouped import (
    diagonal_of,
    grouped_words_of,
    spread_way,
)
from hexconv.kernel.layouts import Diagonal
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.judging import Verdict, judge
from hexconv.sweep.random_case import drawn_plan
from hexconv.sweep.random_chains import Kind, grouped
from tests.deep import one_in
from tests.draws import JUDGED
from tests.schedule.judged import check_on_hvx
from tests.search.test_grid import footprint, grid_of
from tests.strategies import SMALL, Shrinking, is_supported

EVEN = Requantize(multiplier="per_channel", shift=-8, rounding="even")
ROLLED = Plan(kernel="hvx", k_split=2, order="h_outer", halo="roll", filters="resident", buffering="double")
SAME = Padding(top=1, left=1, bottom=1, right=1)


def conv(channels: int, groups: int, **fields) -> Conv2d:
    known = {"out_channels": channels, "groups": groups, "kernel": (3, 3), "padding": SAME, "requantize": EVEN}
    return Conv2d(**{**known, "bias": True, "bias_limit": 1000, **fields})


def of(*convs: Conv2d, channels: int, size: tuple[int, int] = (9, 18), **fields) -> Chain:
    known = {"dtype": "uint8", "filter_dtype": "int8", "zero_point": 9}
    return Chain(**{"input": (1, *size, channels), "conv": convs, **known, **fields})


CHAINS = {
    "groups of 4 and of 8, steps that begin at later planes": of(
        conv(160, 40), conv(160, 20, stride=(2, 2)), channels=160
    ),
    "int16, whose rows are taken apart plane by plane": of(
        conv(128, 32, filter_l1=60000), conv(128, 4, filter_l1=60000), channels=128, dtype="int16", zero_point=0
    ),
    "groups of 8, a part of a block, more taps than registers": of(
        conv(56, 7, kernel=(5, 5), dilation=(1, 2)), channels=56, dtype="int8", zero_point=-9
    ),
    "groups of 16, steps that begin at later planes": of(conv(160, 10), conv(160, 10, stride=(2, 2)), channels=160),
    "groups of 4, whose filter has a zero point of its own": of(
        conv(96, 24, filter_zero_point=7), channels=96, filter_dtype="uint8"
    ),
    "groups of 64, two blocks a tile": of(conv(256, 4), channels=256),
    "groups of 24, blocks that begin inside of one": of(conv(144, 6), channels=144),
    "groups of 6": of(conv(96, 16), channels=96, filter_dtype="uint8"),
    "two outputs a channel": of(conv(192, 96), channels=96),
    "sums": of(conv(128, 32, requantize=None), channels=128),
}


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(6, CHAINS))
def test_convs_in_groups_are_exact_and_as_planned(name: str) -> None:
    chain = CHAINS[name]
    is_dense = any(form.made_dense for form in conv_forms(Case("grouped", chain, ROLLED)))
    assert is_dense == (name == "groups of 6")  # whose blocks meet so many planes that filling up is estimated faster
    check_on_hvx(Case("grouped", chain, ROLLED, target="hexagon"))


@pytest.mark.simulator
@pytest.mark.deep
@pytest.mark.parametrize("name", CHAINS)
def test_scalar_code_computes_the_same_diagonal(name: str) -> None:
    case = Case("grouped", CHAINS[name], replace(ROLLED, kernel="plain"), target="hexagon")
    assert judge(case) == Verdict(case, "agrees")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    source, dtype = Shrinking(draw), draw(st.sampled_from(("uint8", "int8", "int16")))
    others: dict[str, tuple[Dtype, ...]] = {"uint8": ("uint8", "int8"), "int8": ("uint8", "int8"), "int16": ("int8",)}
    kind = Kind(dtype, draw(st.sampled_from(others[dtype])), "hvx", is_served=True)
    chain = next(chain for chain in grouped(source, kind, replace(SMALL, channels=192)) if is_supported(chain))
    return Case("drawn", chain, drawn_plan(source, chain, "hvx", SMALL), target="hexagon")


@pytest.mark.simulator
@JUDGED
@given(cases())
def test_drawn_convs_in_groups_are_exact_and_as_planned(case: Case) -> None:
    verdict = judge(case)
    assert verdict.outcome != "disagrees", verdict.reasons


@given(st.integers(2, 60), st.integers(1, 100), st.integers(1, 100))
def test_a_diagonal_has_every_channel_of_its_groups_and_stays_inside(groups: int, inputs: int, outputs: int) -> None:
    diagonal = Diagonal(groups, inputs, outputs)
    for output in range(groups * outputs):
        first = diagonal.first_plane(output // 32) * 32
        group = output // outputs
        assert 0 <= first <= group * inputs
        assert (group + 1) * inputs <= first + diagonal.channels <= diagonal.planes * 32


@given(st.integers(2, 12), st.sampled_from((2, 8, 24, 32, 40)), st.sampled_from((1, 4, 24, 32, 64)))
def test_blocks_of_a_filter_hold_the_weights_of_each_group(groups: int, inputs: int, outputs: int) -> None:
    diagonal, random = Diagonal(groups, inputs, outputs), np.random.default_rng(0)
    whole = np.zeros((groups * outputs, diagonal.planes * 32, 1, 1), np.int64)
    weights = random.integers(1, 100, (groups * outputs, inputs))
    for output, row in enumerate(weights):
        start = output // outputs * inputs
        whole[output, start : start + inputs, 0, 0] = row
    stored = diagonal.blocks_of(whole)
    assert stored.shape == (groups * outputs, diagonal.channels, 1, 1)
    assert (stored.sum(axis=(1, 2, 3)) == weights.sum(axis=1)).all()


@given(st.integers(2, 40), st.sampled_from((32, 64, 96, 128, 256)), st.integers(1, 16))
def test_a_tile_has_blocks_of_one_group(groups: int, outputs: int, k_split: int) -> None:
    diagonal = Diagonal(groups, outputs, outputs)
    blocks = diagonal.tile_blocks(k_split)
    for step in range(0, diagonal.blocks, k_split):
        for first in range(step, min(step + k_split, diagonal.blocks), blocks):
            assert first + blocks <= diagonal.blocks
            planes = {diagonal.first_plane(first + part) for part in range(blocks)}
            assert len(planes) == 1


def test_zeros_between_groups_are_neither_stored_nor_multiplied() -> None:
    """8 groups of 16: 8 words of a tap instead of 32."""
    chain = of(conv(128, 8), channels=128, size=(56, 56))
    dense = replace(chain, conv=(replace(chain.conv[0], groups=1),))
    nests = [Planned.of(Case("any", each, ROLLED)) for each in (chain, dense)]
    convs = [nest.rows.convs[0] for nest in nests]
    windows = [conv.tiles.total() * 3 * channel_form(conv).tile_row_bytes // 128 * 56 for conv in convs]
    products = [nest.work.macs["conv1"] // 128 - summed for nest, summed in zip(nests, windows, strict=True)]
    assert products == [56 * 56 * 4 * 9 * 8, 56 * 56 * 4 * 9 * 32]
    caches = [{cache.name: cache.bytes for cache in rows_of(each)}["filter1_cache"] for each in (chain, dense)]
    assert caches == [128 * 32 * 9, 128 * 128 * 9]


@pytest.mark.parametrize(("channels", "words"), [(4, 1), (8, 2)])
def test_small_groups_store_and_multiply_nothing_but_their_weights(channels: int, words: int) -> None:
    chain = of(conv(128, 128 // channels), channels=128, size=(56, 56))
    assert grouped_words_of(chain, 0) == words
    assert planned_work(chain, ROLLED).macs["conv1"] == 56 * 56 * 128 * 9 * channels
    caches = {cache.name: cache.bytes for cache in rows_of(chain)}
    assert caches["filter1_cache"] == 128 * 9 * channels
    assert "corrections1" not in caches, "no window is summed"
    case = Case("small", chain, ROLLED)
    assert [(form.form, form.products) for form in conv_forms(case)] == [("words of groups", 56 * 56 * 4 * 9 * words)]


@given(st.sampled_from((1, 2)), st.integers(0, 3), st.data())
def test_every_lane_gets_the_word_of_its_own_group(words: int, pixel: int, data: st.DataObject) -> None:
    """`vdelta` as the manual has it: exchanges over 16, 8, .. 1 words, each lane by a bit of its operand."""
    word = data.draw(st.integers(0, words - 1))
    lanes, way = list(range(32)), spread_way(words, pixel, word)
    for over in (16, 8, 4, 2, 1):
        lanes = [lanes[lane ^ over] if way[lane] & over * 4 else lanes[lane] for lane in range(32)]
    assert lanes == [8 * pixel + lane // (4 * words) * words + word for lane in range(32)]


def rows_of(chain: Chain):
    return Planned.of(Case("any", chain, ROLLED)).caches


def test_groups_are_filled_up_where_that_takes_fewer_packets() -> None:
    """18 groups of 2 fill an eighth of the second block of channels; with pixels as lanes no channel is filled up."""
    few = of(Conv2d(out_channels=36, requantize=EVEN), conv(36, 18), channels=32, size=(40, 64))
    assert diagonal_of(few, 1) is None
    assert without_groups(few).conv[1].groups == 1
    _, form = conv_forms(Case("few", few, ROLLED))
    assert (form.form, form.made_dense) == ("pixels", True)
    many = of(conv(128, 8), channels=128)
    assert [(form.form, form.made_dense) for form in conv_forms(Case("many", many, ROLLED))] == [
        ("channels of groups", False)
    ]


@pytest.mark.parametrize(("channels", "groups"), [(128, 32), (128, 8), (256, 4), (240, 10)])
def test_the_grid_of_a_conv_in_groups_is_what_its_scalar_forms_say(channels: int, groups: int) -> None:
    chain = of(conv(channels, groups), conv(channels, 1, kernel=(1, 1), padding=Padding()), channels=channels)
    grid = grid_of(chain, Plan(kernel="hvx"))
    for number in np.random.default_rng(0).choice(grid.space.size, min(40, grid.space.size), replace=False):
        figures = grid.figures(int(number))
        work = planned_work(chain, figures.plan)
        found = (figures.footprint_bytes, figures.traffic_bytes, figures.macs)
        assert found == (footprint(chain, figures.plan), sum(work.traffic_bytes.values()), sum(work.macs.values()))


def test_strips_of_an_image_are_computed_as_the_whole_one_is() -> None:
    for (channels, groups), width in product([(36, 18), (36, 9), (128, 32), (128, 8), (40, 4)], (8, 33, 200)):
        narrow, wide = (of(conv(channels, groups), channels=channels, size=(9, size)) for size in (width, 300))
        assert diagonal_of(narrow, 0) == diagonal_of(wide, 0)
        assert grouped_words_of(narrow, 0) == grouped_words_of(wide, 0)
