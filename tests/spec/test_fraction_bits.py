"""Products that are rounded to few binary places first: what goes with them, and what int32 has room for."""

import pytest

from hexconv.errors import InputError
from hexconv.spec import Case, Chain, Conv2d, Requantize
from hexconv.spec.kernel_choice import refusals
from hexconv.spec.requantize import PER_CHANNEL

HOW = {"multiplier": 1339778560, "shift": -9, "rounding": "even", "fraction_bits": 11}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rounding": "up"}, 'rounding = "even"'),
        ({"multiplier": PER_CHANNEL, "shift": PER_CHANNEL}, "one shift for all channels"),
        ({"fraction_bits": 8}, "9 to 30 with this shift"),
        ({"shift": 1, "fraction_bits": 30}, "1 to 29 with this shift"),
    ],
)
def test_what_does_not_go_with_it_is_refused(changed: dict, told: str) -> None:
    with pytest.raises(InputError, match="fraction_bits") as refusal:
        Requantize(**{**HOW, **changed})
    assert told in str(refusal.value)


@pytest.mark.parametrize(("places", "is_served"), [(9, True), (11, True), (17, True), (18, False)])
def test_hvx_serves_what_int32_holds_lifted(places: int, is_served: bool) -> None:
    conv = Conv2d(out_channels=32, requantize=Requantize(**{**HOW, "fraction_bits": places}))
    chain = Chain(input=(1, 8, 8, 127), dtype="uint8", conv=(conv,))  # 127 * 255**2 is below 2**23
    assert ("lifted" not in refusals(chain, "hvx")[0]) is is_served


def test_a_case_says_it() -> None:
    conv = Conv2d(out_channels=32, requantize=Requantize(**HOW))
    case = Case("places", Chain(input=(1, 8, 8, 32), dtype="uint8", conv=(conv,)))
    assert "fraction_bits = 11" in case.to_toml()
    assert Case.parse(case.to_toml(), "places").chain == case.chain
