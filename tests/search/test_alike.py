"""Convs that are alike share their figures, and what is forgotten is computed anew."""

from dataclasses import replace

import numpy as np
import pytest

from hexconv.analyze import row_axes
from hexconv.analyze.row_axes import NestAxes
from hexconv.search import Grid, Question, Space, best_plan, evaluate
from hexconv.search.cuts import piece_of
from hexconv.search.grid import FIGURES
from hexconv.search.machine import rates
from hexconv.search.space import Strip
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.places import MIXED, Storage

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
