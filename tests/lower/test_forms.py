"""Forms of the HVX kernel: each has code beside it, and refuses what it can't compute in words."""

from importlib import import_module

import pytest

from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel.form import Form, forms_of_kernel
from hexconv.spec import Chain, Conv2d, Plan, Requantize

HOW = Requantize(multiplier=0x5A7B3C1D, shift=-7)
CONVS = {
    "channels": (64, Conv2d(out_channels=64, kernel=(3, 3), requantize=HOW)),
    "depthwise": (64, Conv2d(out_channels=64, kernel=(3, 3), groups=64, requantize=HOW)),
    "pixels": (4, Conv2d(out_channels=4, kernel=(3, 3), requantize=HOW)),
    "windows of dense rows": (3, Conv2d(out_channels=64, kernel=(7, 7), requantize=HOW)),
    "words of groups": (128, Conv2d(out_channels=128, kernel=(3, 3), groups=32, requantize=HOW)),
}


@pytest.mark.parametrize("form", forms_of_kernel("hvx"), ids=lambda form: form.name)
def test_each_form_has_code_beside_it(form: type[Form]) -> None:
    assert callable(import_module(f"hexconv.lower.hvx.{form.code}").emit_rows)


@pytest.mark.parametrize("name", CONVS)
def test_each_form_computes_what_suits_it_and_says_why_others_do_not(name: str) -> None:
    channels, conv = CONVS[name]
    chain = Chain(input=(1, 20, 96, channels), dtype="uint8", filter_dtype="int8", conv=(conv,))
    [computed] = planned_rows(chain, Plan(kernel="hvx", order="h_outer", k_split=2)).convs
    assert computed.form.name == name
    refusals = {form.name: form.serves(computed) for form in forms_of_kernel("hvx")}
    assert not refusals.pop(name)
    assert all(len(refusal) > 8 for refusal in refusals.values() if refusal)
    assert sum(map(bool, refusals.values())) >= 2
