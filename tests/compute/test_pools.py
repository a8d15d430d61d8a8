"""A max pool as a member of a chain: its definition, what a case file may say of it, sizes, work and runs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.checked import Trial, check
from hexconv.compute.reference import pooled
from hexconv.errors import InputError, Unsupported
from hexconv.mlir.linalg_chain import linalg_text
from hexconv.run.host import Host
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from tests.deep import one_in

CONV = Conv2d(
    out_channels=40,
    kernel=(3, 3),
    padding=Padding(top=1, left=1, bottom=1, right=1),
    requantize=Requantize(multiplier=1 << 30, shift=-7, zero_point=100),
)
POOL = Conv2d(out_channels=40, kernel=(3, 3), stride=(2, 2), padding=CONV.padding, pool="max")
BLOCK = Chain(input=(1, 20, 22, 9), dtype="uint8", filter_dtype="int8", zero_point=7, conv=(CONV, POOL, CONV))
ROLLED = Plan(kernel="plain", order="h_outer", halo="roll", filters="resident", buffering="double")
axes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2))


@given(axes, axes, st.integers(0, 2**32 - 1))
def test_a_pool_takes_the_largest_of_each_window(down, across, seed) -> None:
    kernel, stride, dilation, before, behind = zip(down, across, strict=True)
    pads = [min(each, size - 1) for each, size in zip((*before, *behind), kernel * 2, strict=True)]
    image = np.random.default_rng(seed).integers(-128, 128, (1, 12, 13, 2), np.int8)
    sides = ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0))
    reach = [(size - 1) * apart + 1 for size, apart in zip(kernel, dilation, strict=True)]
    padded = np.pad(image.astype(float), sides, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))[:, :: stride[0], :: stride[1]]
    expected = windows[..., :: dilation[0], :: dilation[1]].max(axis=(-2, -1))
    padding = Padding(top=pads[0], left=pads[1], bottom=pads[2], right=pads[3])
    pool = Conv2d(out_channels=2, kernel=kernel, stride=stride, dilation=dilation, padding=padding, pool="max")
    assert np.array_equal(pooled(pool, image, -128), np.maximum(expected, -128))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"out_channels": 20, "groups": 1}, "chain.conv[1].out_channels: got 20 in a pool; expected 40, or no pool"),
        ({"bias": True}, "chain.conv[1].bias"),
        ({"requantize": CONV.requantize}, "chain.conv[1].requantize"),
        ({"groups": 8}, "chain.conv[1].groups"),
    ],
)
def test_what_a_pool_lacks_is_refused_in_one_line(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        replace(BLOCK, conv=(CONV, replace(POOL, **changed), CONV))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_case_file_states_the_pool_and_no_groups() -> None:
    text = Case("pools", BLOCK).to_toml()
    assert 'pool = "max"' in text
    assert "groups" not in text
    assert Case.parse(text, "pools").chain == BLOCK


def test_a_pool_has_no_filter_and_keeps_its_zero_point() -> None:
    assert BLOCK.filters == (1, 3)
    assert [BLOCK.output_zero_point(tensor) for tensor in range(4)] == [7, 100, 100, 100]
    assert [BLOCK.padding_value(tensor) for tensor in range(3)] == [7, 0, 100]


@pytest.mark.parametrize(
    ("convs", "storage"),
    one_in(
        2,
        [
            *(((CONV, POOL, CONV), storage) for storage in ("filters", "vtcm")),
            *(((CONV, POOL), storage) for storage in ("vtcm", "filters")),
            *(((replace(POOL, out_channels=9, groups=9), CONV), storage) for storage in ("filters", "vtcm")),
        ],
    ),
)
def test_sizes_work_and_results_agree(convs: tuple[Conv2d, ...], storage) -> None:
    case = Case("pools", replace(BLOCK, conv=convs), replace(ROLLED, storage=storage))
    checked = check(case, [Trial(Host())])
    assert checked.agrees
    assert [run.passed for run in checked.runs] == [True]


def test_hvx_leaves_a_chain_with_a_pool_to_scalar_code_and_says_so() -> None:
    choices = Case("pools", BLOCK, Plan(kernel="hvx")).kernels
    assert all(each.used == "plain" and "without pools; chain.conv[1] is one" in each.why for each in choices)


def test_linalg_has_no_pools() -> None:
    with pytest.raises(Unsupported, match="the chain has a pool"):
        linalg_text(Case("pools", BLOCK, ROLLED))
