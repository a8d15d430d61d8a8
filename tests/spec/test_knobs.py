"""The table of knobs and the fields of a plan are one: a knob in one of them alone would be left out somewhere."""

import re
from dataclasses import fields
from typing import Any

import pytest

from hexconv.spec import Plan
from hexconv.spec.choices import Kernel
from hexconv.spec.kernels import KERNELS
from hexconv.spec.knobs import KNOBS, acts, why_without_effect
from hexconv.spec.places import MIXED


def test_every_field_of_a_plan_has_a_row_and_every_row_a_field() -> None:
    assert KNOBS.keys() == {field.name for field in fields(Plan)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_obeys_knobs_of_the_table(kernel: Kernel) -> None:
    assert set(KERNELS[kernel].knobs) <= KNOBS.keys() - {"kernel"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_says_of_every_other_knob_why_it_has_no_effect(kernel: Kernel) -> None:
    rules = KERNELS[kernel]
    others = KNOBS.keys() - {"kernel", *rules.knobs}
    assert rules.unobeyed.keys() <= others
    for knob in others:
        why = why_without_effect(knob, kernel)
        assert re.fullmatch(rf"{kernel} does not obey {knob}: \w.*\w\)?; .* obeys? it", why), why


@pytest.mark.parametrize("name", sorted(KNOBS.keys() - {"kernel"}))
def test_a_row_holds_values_that_plans_take(name: str) -> None:
    knob = KNOBS[name]
    obeying: list[Kernel] = [kernel for kernel in KERNELS if acts(name, kernel)]
    assert obeying
    assert knob.turned
    assert getattr(Plan, name) not in knob.turned
    assert not knob.searched or knob.searched[0] == getattr(Plan, name)
    smallest = () if knob.smallest is None else (knob.smallest,)
    for value in (*knob.turned, *knob.searched, *knob.drawn, *smallest):
        kernels: list[Kernel] = [kernel for kernel in obeying if kernel != "hmx" or value not in MIXED]
        knobs: list[dict[str, Any]] = [_beside(name, kernel) | {"kernel": kernel, name: value} for kernel in kernels]
        plans = [Plan(**chosen) for chosen in knobs]
        assert all(getattr(plan, name) == value for plan in plans)


def _beside(name: str, kernel: Kernel) -> dict[str, Any]:
    return {other: value for other, value in KNOBS[name].beside.items() if acts(other, kernel)}
