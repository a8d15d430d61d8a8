"""Convs that are alike share their figures, and what is forgotten is computed anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import row_axes
from hexconv.analyze.row_axes import NestAxes
from hexconv.errors import InputError
from hexconv.search import Grid, Question, Space, best_plan, evaluate, grid
from hexconv.search.alike import first_alike
from hexconv.search.cuts import piece_of
from hexconv.search.grid import FIGURES
from hexconv.search.machine import rates
from hexconv.search.space import Strip
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.places import MIXED, Storage
from tests.draws import LOWERED
from tests.strategies import chains

SAME = Conv2d(
    out_channels=64,
    kernel=(3, 3),
    padding=Padding(top=1, left=1, bottom=1, right=1),
    requantize=Requantize(multiplier=1 << 30, shift=-9),
)
CHAIN = Chain(input=(1, 24, 40, 64), dtype="uint8", output_layout="NHWC", conv=(SAME, SAME, SAME))
PLAN = Plan(kernel="hvx", storage="vtcm")


def grid_of(chain: Chain) -> Grid:
    return evaluate(chain, replace(Space.of(chain, PLAN), strips=(None, Strip(2), Strip(3, "keep"))), rates("v68"))


def are_equal(one: Grid, other: Grid) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIGURES)


def test_figures_are_the_same_whatever_was_searched_before() -> None:
    row_axes.forget()
    alone = grid_of(CHAIN)
    taller, wider = replace(CHAIN, input=(2, 90, 40, 64)), replace(CHAIN, input=(1, 24, 56, 64))
    for other in (piece_of(CHAIN, 0, 2), piece_of(CHAIN, 1, 3), taller, wider):
        row_axes.forget()
        grid_of(other)
        assert are_equal(grid_of(CHAIN), alone)


@pytest.mark.parametrize("most", [1, 5, 50])
def test_figures_are_the_same_however_few_are_remembered(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known = grid_of(CHAIN)
    monkeypatch.setattr(row_axes, "MOST_REMEMBERED", most)
    assert are_equal(grid_of(CHAIN), known)


def test_a_number_that_is_forgotten_is_not_given_to_another_conv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_axes, "MOST_REMEMBERED", 1)
    chains = [replace(CHAIN, input=(1, 24, columns, 64)) for columns in (16, 24, 32)]
    assert len({number(chain, index) for chain in chains for index in (0, 2)}) == 6


def number(chain: Chain, index: int, k_split: int = 2) -> int:
    space = Space.of(chain, PLAN)
    tiles = NestAxes(chain, space.plans).tiles[k_split - 1]
    return row_axes.number_of(tiles.planned, index)


def test_convs_are_alike_if_they_take_the_same() -> None:
    taller = replace(CHAIN, input=(3, 80, 40, 64))
    assert number(CHAIN, 1) == number(taller, 1)
    one_block = replace(CHAIN, conv=(replace(SAME, out_channels=32), SAME, SAME))
    assert number(one_block, 0, k_split=1) != number(one_block, 1, k_split=1)


def test_convs_are_not_alike_if_columns_values_or_neighbours_differ() -> None:
    wider = replace(CHAIN, input=(1, 24, 48, 64))
    biased = replace(CHAIN, conv=(SAME, replace(SAME, bias=True), SAME))
    behind_a_zero = replace(
        CHAIN,
        conv=(replace(SAME, requantize=replace(SAME.requantize, zero_point=7)), SAME, SAME),  # pyright: ignore
    )
    # As many columns are stored of what the conv makes, but the image begins elsewhere.
    shifted = replace(CHAIN, conv=(SAME, SAME, replace(SAME, padding=Padding(top=1, left=2, bottom=1))))
    others = [number(chain, 1) for chain in (wider, biased, behind_a_zero, shifted)]
    assert len({number(CHAIN, 1), number(CHAIN, 1, k_split=1), number(CHAIN, 2), *others}) == 7


def test_steps_are_counted_once_wherever_caches_lie() -> None:
    chain = replace(CHAIN, conv=(SAME, SAME))
    places: tuple[Storage, ...] = (PLAN.storage, *MIXED)
    mixed, alone = (NestAxes(chain, Space.of(chain, PLAN, storages).plans) for storages in (places, places[:1]))
    steps, alike = mixed.but_for_places
    assert len(mixed.plans.words) == len(places) * len(steps.plans.words) == len(alike)
    assert len(steps.plans.words) == len(alone.plans.words)
    for plan, which in zip(mixed.plans.words, alike, strict=True):
        assert replace(plan, storage="vtcm") == replace(steps.plans.words[which], storage="vtcm")


def test_questions_that_settle_to_the_same_share_their_search() -> None:
    question = Question(1 << 20, "traffic", target="hexagon")
    placed = replace(question, plan=replace(question.plan, storage="vtcm"))
    found = best_plan(CHAIN, question)
    for other in (placed, replace(placed, caches="as-needed")):
        assert best_plan(CHAIN, other) is found
    assert best_plan(CHAIN, replace(placed, caches="anywhere")) is not found


def searched_alone(chain: Chain) -> Grid:
    """The grid of a chain where nothing was searched before."""
    row_axes.forget()
    grid.forget()
    return evaluate(chain, Space.of(chain, PLAN), rates("v68"))


NUMBERS = {
    "multiplier": st.sampled_from([1 << 30, (1 << 30) + 1, 1_300_000_001, 2_000_000_000]),
    "shift": st.integers(-12, 0),
    "zero_point": st.sampled_from([-128, -5, 0, 7, 100]),
    "clamp": st.sampled_from([None, (0, 90), (3, 4)]),
}
"""What may differ between two requantisations; a draw takes one or several of them."""


@st.composite
def with_other_numbers(draw: st.DrawFn, chain: Chain) -> Chain:
    """The same chain, with other scales, zero points and limits of weights."""

    def other(conv: Conv2d) -> Conv2d:
        how = conv.requantize
        changed = draw(st.sets(st.sampled_from([*NUMBERS]))) if how else ()
        new = {name: draw(NUMBERS[name]) for name in changed if getattr(how, name) != "per_channel"}
        limits = {
            "filter_l1": draw(st.integers(1, 5000)),
            "bias_limit": draw(st.integers(0, 9000)) if conv.bias else None,
        }
        add = conv.add and replace(conv.add, scales=draw(st.sampled_from([(0.5, 0.25, 0.125), (0.1, 0.3, 0.2)])))
        return replace(conv, requantize=how and replace(how, **new), add=add, **draw(st.sampled_from([{}, limits])))

    try:
        zero_point = draw(st.sampled_from([chain.zero_point, -128, 0, 7]))
        return replace(chain, zero_point=zero_point, conv=tuple(map(other, chain.conv)))
    except InputError:
        assume(False)
        raise


@LOWERED
@given(st.data(), chains(("uint8", "int8"), channels=70))
def test_chains_that_are_alike_have_the_same_figures_whatever_their_numbers_are(
    data: st.DataObject, chain: Chain
) -> None:
    other = data.draw(with_other_numbers(chain))
    alike = first_alike(chain, PLAN)
    assume(other != chain and first_alike(other, PLAN) == alike)
    one, of_other = searched_alone(chain), searched_alone(other)
    assert are_equal(one, of_other)
    assert np.array_equal(one.time_packets(8.0), of_other.time_packets(8.0))


def test_a_search_answers_for_all_chains_that_are_alike() -> None:
    how = Requantize(multiplier=1_300_000_001, shift=-9)
    other = replace(SAME, requantize=how, filter_l1=900, add=None)
    first, second, third = (
        replace(CHAIN, conv=(conv, SAME))
        for conv in (replace(SAME, requantize=replace(how, multiplier=1_400_000_001)), other, replace(other, bias=True))
    )
    question = Question(1 << 20, "time")
    assert best_plan(first, question) is best_plan(second, question)
    assert best_plan(third, question) is not best_plan(second, question)
