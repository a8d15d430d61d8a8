"""Fills: what each is, that extremes reach the ends of every sum, and that a result's own words ask for it again."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.cli.app import exit_code
from hexconv.compute.reference import convolution
from hexconv.errors import InputError
from hexconv.run.fills import CORNERS, FILLS, Fills, fills_of, fills_of_run, fills_text, tensor_names
from hexconv.run.tensors import Tensors, bias_limit, filled_tensors, random_tensors
from hexconv.spec import Chain, Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE
from tests.draws import LOWERED
from tests.strategies import chains

INTEGERS = ("uint8", "int8", "int16")


def arrays(tensors: Tensors) -> list[np.ndarray]:
    """The tensors that a run fills: a pool's filter has no elements."""
    filled = (each for each in tensors.filters if each.size)
    return [tensors.image, *filled, *(bias for bias in tensors.biases if bias is not None)]


@given(chains(channels=5), st.data())
@LOWERED
def test_a_run_is_asked_for_again_by_the_words_that_it_printed(chain: Chain, data: st.DataObject) -> None:
    number, seed = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 99))
    fills = fills_of_run(chain, number, seed)
    assert fills_of(chain, fills_text(fills)) == fills
    assert len(fills) == len(tensor_names(chain)) == len(arrays(random_tensors(chain)))


@given(chains(INTEGERS, channels=5), st.data())
@LOWERED
def test_every_fill_keeps_to_the_range_and_the_limit_of_its_tensor(chain: Chain, data: st.DataObject) -> None:
    fills: Fills = tuple(data.draw(st.sampled_from(FILLS)) for _ in tensor_names(chain))
    tensors = filled_tensors(chain, fills, data.draw(st.integers(0, 9)))
    assert tensors.image.dtype == chain.dtype
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, tensors.filters, tensors.biases, strict=True)):
        assert (filter.shape, filter.dtype) == (chain.filter_shapes[index], chain.dtype_of_filters)
        sums = np.abs(filter.astype(np.int64) - conv.filter_zero_point).sum(axis=(1, 2, 3))
        assert conv.filter_l1 is None or sums.max() <= conv.filter_l1
        assert bias is None or np.abs(bias.astype(np.int64)).max() <= bias_limit(chain, index)


@given(chains(INTEGERS, channels=5))
@LOWERED
def test_the_corners_reach_the_largest_and_the_smallest_sum(chain: Chain) -> None:
    conv, source = chain.conv[0], INTEGER_RANGE[chain.dtype]
    first = Chain(
        input=(1, *conv.reach, chain.input[3]),
        dtype=chain.dtype,
        filter_dtype=chain.filter_dtype,
        zero_point=chain.zero_point,
        conv=(Conv2d(
            out_channels=1,
            kernel=conv.kernel,
            dilation=conv.dilation,
            bias=conv.bias,
            filter_zero_point=conv.filter_zero_point,
            filter_l1=None,
        ),),
    )  # fmt: skip
    taps = INTEGER_RANGE[chain.dtype_of_filters]
    products = [(a - chain.zero_point) * (w - conv.filter_zero_point) for a in source for w in taps]
    fan_in, room = int(np.prod(first.filter_shapes[0][1:])), bias_limit(first, 0) * conv.bias
    sums = []
    for number in range(1, len(CORNERS) + 1):
        made = filled_tensors(first, fills_of_run(first, number, 0))
        bias = made.biases[0]
        total = convolution(first.conv[0], made.image, made.filters[0], first.zero_point)
        sums.append(int(total.max()) + (int(bias[0]) if bias is not None else 0))
    assert max(sums) == fan_in * max(products) + room
    assert min(sums) == fan_in * min(products) - room


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fill", FILLS)
def test_floats_stay_of_the_order_of_one_however_deep_and_wide(dtype, fill: str) -> None:
    chain = Chain(input=(1, 9, 9, 64), dtype=dtype, conv=(Conv2d(out_channels=64, kernel=(3, 3), bias=True),) * 4)
    tensors = filled_tensors(chain, fills_of(chain, fill))
    assert all(np.abs(array.astype(np.float64)).max() <= 1.0 for array in arrays(tensors))
    image = tensors.image
    for conv, filter in zip(chain.conv, tensors.filters, strict=True):
        image = convolution(conv, image, filter, 0)
    assert np.abs(image).max() < 10


def test_one_element_is_hot_in_an_image_and_in_the_filter_of_every_output() -> None:
    conv = Conv2d(out_channels=5, kernel=(3, 2), bias=True, filter_zero_point=7)
    chain = Chain(input=(2, 4, 4, 3), dtype="uint8", zero_point=200, conv=(conv,))
    tensors = filled_tensors(chain, fills_of(chain, "one_hot"))
    assert np.sum(tensors.image != 200, axis=(1, 2, 3)).tolist() == [1, 1]
    assert tensors.image.min() == 0  # farther off than 255
    assert np.sum(tensors.filters[0] != 7, axis=(1, 2, 3)).tolist() == [1] * 5
    [bias] = tensors.biases
    assert bias is not None
    assert np.count_nonzero(bias) == 1


def test_what_is_no_fill_is_refused_with_the_names_of_the_tensors() -> None:
    chain = Chain(input=(1, 4, 4, 3), conv=(Conv2d(out_channels=5, bias=True),))
    with pytest.raises(InputError, match="got hot; expected random, least, most, alternating, one_hot"):
        fills_of(chain, "hot")
    with pytest.raises(InputError, match="got 2 words; expected one for all, or 3, for input,filter1,bias1"):
        fills_of(chain, "most,least")


CASE = '[chain]\ninput = [1, 5, 5, 8]\ndtype = "uint8"\n[[chain.conv]]\nout_channels = 4\nkernel = [3, 3]\n[plan]\n'


def test_runs_beyond_the_first_go_through_the_extremes_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(CASE)
    command = ["run", str(tmp_path / "small.toml"), "--json"]
    assert exit_code([*command, "--seeds", "5"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["fill"] for row in rows] == ["random", "most", "least", "most,least", "least,most"]
    assert exit_code([*command, "--fill", "alternating,one_hot"]) == 0
    assert [row["fill"] for row in json.loads(capsys.readouterr().out)] == ["alternating,one_hot"]
    assert exit_code([*command, "--fill", "full"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
