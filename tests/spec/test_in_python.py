"""What is made in Python is refused as a case file is: one `InputError`, one line, with the field's path."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from hexconv import Case, Chain, Conv2d, Padding, Plan, Requantize, best_plan
from hexconv.errors import InputError

CONV = Conv2d(out_channels=4)
UNTYPED: Any = {kind.__name__: kind for kind in (Case, Chain, Conv2d, Plan, Requantize)}
"""As code without types calls them."""
CHAIN = Chain(input=(1, 8, 8, 4), conv=(CONV,))
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a list for a shape": (lambda: UNTYPED["Chain"](input=[1, 8, 8, 4], conv=(CONV,)), "chain.input: got [1, 8, 8, 4]"),
    "a dtype that isn't one": (
        lambda: replace(CHAIN, dtype="fp32"),
        "chain.dtype: got 'fp32'",
    ),
    "numpy's integers": (
        lambda: UNTYPED["Chain"](input=(np.int64(1), 8, 8, 4), conv=(CONV,)),
        "chain.input[0]: got np.int64(1)",
    ),
    "a chain without convs": (lambda: UNTYPED["Chain"](input=(1, 8, 8, 4)), "chain.conv is missing; it is required"),
    "a conv without channels": (lambda: UNTYPED["Conv2d"](), "chain.conv.out_channels is missing"),
    "a misspelt field": (lambda: UNTYPED["Conv2d"](out_channels=1, kernal=3), "did you mean kernel?"),
    "an unknown knob": (lambda: UNTYPED["Plan"](ksplit=1), "did you mean k_split?"),
    "a split of numpy's": (lambda: UNTYPED["Plan"](k_split=np.int32(2)), "plan.k_split: got np.int32(2)"),
    "negative padding": (lambda: Padding(top=-1), "padding.top: got -1"),
    "no multiplier": (lambda: UNTYPED["Requantize"](), "requantize.multiplier is missing"),
    "no chain": (lambda: UNTYPED["Case"]("case", 3), "case[1]: got 3"),
    "a number for a question": (lambda: best_plan(CHAIN, cast(Any, 1 << 20)), "Question(vtcm_bytes), from hexconv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_one_line(name: str) -> None:
    make, expected = REFUSED[name]
    with pytest.raises(InputError) as refused:
        make()
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(Case("small", CHAIN, Plan(h_split=1)).to_toml())
    assert Case.load(str(path)) == Case.load(path) == Case("small", CHAIN, Plan())
