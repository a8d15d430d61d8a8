"""A plan in words and by its short name: no knob of it is left out."""

from dataclasses import fields, replace

import pytest

from hexconv.report.plots.front import front_plot
from hexconv.report.words import plan_name, plan_words
from hexconv.search.space import WORDS, combinations
from hexconv.spec import Case, Chain, Conv2d, Plan

BASES = {"threads": Plan(kernel="host"), "simd": Plan(kernel="host"), "kernel": Plan()}
"""Of knobs that the plain kernel doesn't obey."""
BASE = Plan(order="h_outer")
OTHERS = {
    "kernel": "host",
    "threads": 2,
    "simd": "avx2",
    "storage": "vtcm",
    "arch": "v69",
    "vtcm_bytes": 1 << 20,
    "k_split": 2,
    "h_split": 2,
    "order": "k_outer",
    **{knob: values[-1] for knob, values in WORDS.items() if knob != "order"},
}


@pytest.mark.parametrize("knob", [field.name for field in fields(Plan)])
def test_a_knob_that_is_turned_is_told(knob: str) -> None:
    base = BASES.get(knob, BASE)
    turned = replace(base, **{knob: OTHERS[knob]})
    assert plan_words(turned) != plan_words(base)
    if knob == "order":
        return  # at its default it is not told, and BASE tells the other
    assert f"{knob} = {OTHERS[knob]}" in plan_words(turned)


def test_no_two_plans_of_a_search_have_one_name() -> None:
    plans = combinations(Plan())
    assert len({plan_name(plan) for plan in plans}) == len({plan_words(plan) for plan in plans}) == len(plans)


def test_no_two_plans_of_a_front_are_told_alike() -> None:
    conv = Conv2d(out_channels=64, kernel=(3, 3))
    plot = front_plot(Case("pair", Chain(input=(1, 40, 40, 64), conv=(conv, conv)), Plan()))
    told = [row[0] for row in plot.numbers.rows]
    assert len(set(told)) == len(told)
