"""A plan in words and by its short name: no knob of it is left out."""

from dataclasses import fields, replace
from typing import Any

import pytest

from hexconv.report.plots.cost_plots import front_plot
from hexconv.report.words import plan_name, plan_words
from hexconv.search.space import combinations
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.spec.knobs import KNOBS, WHOSE_VTCM


@pytest.mark.parametrize("knob", [field.name for field in fields(Plan)])
def test_a_knob_that_is_turned_is_told(knob: str) -> None:
    beside: dict[str, Any] = {name: value for name, value in KNOBS[knob].beside.items() if name != knob}
    base = Plan(**beside)
    for value in KNOBS[knob].turned:
        turned = replace(base, **{knob: value})
        assert plan_words(turned) != plan_words(base)
        assert f"{knob} = {value}" in plan_words(turned)
        assert turned.slug != base.slug or (knob in WHOSE_VTCM and not base.uses_vtcm)


def test_no_two_plans_of_a_search_have_one_name() -> None:
    plans = combinations(Plan())
    assert len({plan_name(plan) for plan in plans}) == len({plan_words(plan) for plan in plans}) == len(plans)


def test_no_two_plans_of_a_front_are_told_alike() -> None:
    conv = Conv2d(out_channels=64, kernel=(3, 3))
    plot = front_plot(Case("pair", Chain(input=(1, 40, 40, 64), conv=(conv, conv)), Plan()))
    told = [row[0] for row in plot.numbers.rows]
    assert len(set(told)) == len(told)
